package io.hikv;

/**
 * A tree, or a view of one, whose ranges can be read.
 *
 * @param op the operation that reads a page
 * @param view the handle of the tree's store, of a snapshot, or of a transaction
 * @param tree the tree
 * @param lock the lock of calls on the view
 */
record Source(int op, Handle view, Tree tree, Object lock) {
    /** A source of which threads may read several pages at the same time. */
    static Source shared(Handle view, Tree tree) {
        return new Source(Op.SCAN, view, tree, null);
    }

    /**
     * Reads the first items of a range that fit into a page.
     *
     * @return the page, or null if the range has none
     */
    Page read(Range range, int bytes) {
        if (lock == null) {
            return page(range, bytes);
        }
        synchronized (lock) {
            return page(range, bytes);
        }
    }

    private Page page(Range range, int bytes) {
        try (Call call = Call.on(view, tree)) {
            int len = call.keyAndValue(range.lo(), range.hi()).fill(op, range.kinds(), bytes);
            return len < 0 ? null : new Page(call.bytes(Long.BYTES, len - Long.BYTES), call.longAt(0) != 0);
        }
    }
}
