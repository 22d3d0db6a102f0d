package io.hikv;

import java.util.NoSuchElementException;

/**
 * A place among the items of a tree, which moves in both directions. It sees all writes that were made before it was
 * last placed by a {@code seek}; later ones it may see. One thread uses a cursor. It holds nothing of the store, so it
 * needs no {@code close}.
 */
public final class Cursor {
    private final Source source;
    private Page page;
    private int pageLen;
    private boolean isBackward;
    private boolean isValid;

    Cursor(Source source) {
        this.source = source;
    }

    /** Goes to the first item. */
    public void seekToFirst() {
        place(Range.all(), Page.LEN_FIRST);
    }

    /** Goes to the last item. */
    public void seekToLast() {
        place(Range.all().reversed(), Page.LEN_FIRST);
    }

    /**
     * Goes to the first item whose key is at least this one.
     *
     * @param key the key
     */
    public void seek(byte[] key) {
        place(Range.all().from(key), Page.LEN_FIRST);
    }

    /**
     * Goes to the last item whose key is at most this one.
     *
     * @param key the key
     */
    public void seekForPrev(byte[] key) {
        place(Range.all().through(key).reversed(), Page.LEN_FIRST);
    }

    /** Goes to the next item. */
    public void next() {
        move(false);
    }

    /** Goes to the item before this one. */
    public void prev() {
        move(true);
    }

    /**
     * Returns true if the cursor is at an item.
     *
     * @return false before the first {@code seek}, and behind either end
     */
    public boolean isValid() {
        return isValid;
    }

    /**
     * Returns the key of the item.
     *
     * @return the key
     * @throws NoSuchElementException if the cursor is at no item
     */
    public byte[] key() {
        checkValid();
        return page.key();
    }

    /**
     * Returns the value of the item.
     *
     * @return the value
     * @throws NoSuchElementException if the cursor is at no item
     */
    public byte[] value() {
        checkValid();
        return page.value();
    }

    private void checkValid() {
        if (!isValid) {
            throw new NoSuchElementException("the cursor is at no item");
        }
    }

    private void move(boolean backward) {
        checkValid();
        if (backward == isBackward) {
            if (page.next()) {
                return;
            }
            if (!page.hasMore()) {
                isValid = false;
                return;
            }
        }
        byte[] key = page.key();
        int len = backward == isBackward ? Page.lenAfter(pageLen) : Page.LEN_FIRST;
        place(backward ? Range.all().to(key).reversed() : Range.all().after(key), len);
    }

    private void place(Range range, int len) {
        // If the page cannot be read, the cursor is at no item.
        isValid = false;
        page = source.read(range, len);
        pageLen = len;
        isBackward = range.isReversed();
        isValid = page != null && page.next();
    }
}
