package io.hikv;

import java.util.Objects;

/**
 * A tree, or a view of one, whose ranges can be read.
 *
 * @param op the operation that reads a page
 * @param view the tree itself, a snapshot, or a transaction
 * @param tree the tree
 * @param isLocked true if one thread at a time may use the view
 */
record Source(int op, Part view, Tree tree, boolean isLocked) {
    Source {
        Objects.requireNonNull(tree, "the tree is null");
    }

    /** A source of which threads may read several pages at the same time. */
    static Source shared(Part view, Tree tree) {
        return new Source(Op.SCAN, view, tree, false);
    }

    static Source of(Transaction transaction, Tree tree) {
        return new Source(Op.TX_SCAN, transaction, tree, true);
    }

    /** Returns the items of a range. */
    Iterable<Item> items(Range range) {
        Objects.requireNonNull(range, "the range is null");
        return () -> new Items(this, range);
    }

    /**
     * Reads the first items of a range that fit into a page.
     *
     * @return the page, or null if the range has none
     */
    Page read(Range range, int bytes) {
        if (!isLocked) {
            return page(range, bytes);
        }
        synchronized (view) {
            return page(range, bytes);
        }
    }

    private Page page(Range range, int bytes) {
        Call call = Call.on(view, tree);
        try {
            int len = call.keyAndValue(range.lo(), range.hi()).fillPage(op, range.kinds(), bytes);
            return len < 0 ? null : new Page(call.bytes(Long.BYTES, len - Long.BYTES), call.longAt(0) != 0);
        } finally {
            call.end(view, tree);
        }
    }
}
