package io.hikv;

import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * An iterator that reads a range page by page. It holds nothing of the store between two pages: each page begins behind
 * the last key. So it needs no {@code close}.
 */
final class Items implements Iterator<Item> {
    /** The first page is small, for a caller that needs only an item. */
    private static final int PAGE_FIRST = 1 << 10;
    private static final int PAGE_MAX = 64 << 10;

    private final Source source;
    private Range rest;
    private long left;
    private int pageBytes = PAGE_FIRST;
    private Page page;
    private Item next;
    private boolean hasEnded;

    Items(Source source, Range range) {
        this.source = source;
        rest = range;
        left = range.limit();
    }

    @Override
    public boolean hasNext() {
        if (next == null && !hasEnded) {
            next = read();
            hasEnded = next == null;
        }
        return next != null;
    }

    @Override
    public Item next() {
        if (!hasNext()) {
            throw new NoSuchElementException("the range has no more items");
        }
        Item item = next;
        next = null;
        return item;
    }

    private Item read() {
        if (left == 0) {
            return null;
        }
        if (page == null || !page.next()) {
            if (page != null && !page.hasMore()) {
                return null;
            }
            if (page != null) {
                rest = rest.behind(page.key());
            }
            page = source.read(rest.limit(left), pageBytes);
            if (page == null || !page.next()) {
                return null;
            }
            pageBytes = Math.min(4 * pageBytes, PAGE_MAX);
        }
        left--;
        return new Item(page.key(), page.value());
    }
}
