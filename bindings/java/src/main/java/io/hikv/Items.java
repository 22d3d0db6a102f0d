package io.hikv;

import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * An iterator that reads a range page by page. It holds nothing of the store between two pages: each page begins behind
 * the last key. So it needs no {@code close}.
 */
final class Items implements Iterator<Item> {
    private final Source source;
    private Range rest;
    private long left;
    private int pageLen = Page.LEN_FIRST;
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
            page = source.read(rest.limit(left), pageLen);
            if (page == null || !page.next()) {
                return null;
            }
            pageLen = Page.lenAfter(pageLen);
        }
        left--;
        return new Item(page.key(), page.value());
    }
}
