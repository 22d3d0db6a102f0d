package io.hikv;

/**
 * A view of one moment of a store. All threads may use it at the same time. The engine {@link Engine#HIKV} has
 * snapshots.
 */
public final class Snapshot extends Part implements AutoCloseable {
    private final Store store;

    Snapshot(Handle handle, Store store) {
        super(handle);
        this.store = store;
    }

    /**
     * Returns the value that a key had.
     *
     * @param key the key
     * @return the value, or null if the key was absent
     */
    public byte[] get(byte[] key) {
        return get(store, key);
    }

    /**
     * Returns the value that a key of a tree had.
     *
     * @param tree the tree
     * @param key the key
     * @return the value, or null if the key was absent
     * @throws HikvException.NoSuchTree if there was no tree of this name
     */
    public byte[] get(Tree tree, byte[] key) {
        Call call = Call.on(this, tree);
        try {
            return call.key(key).value(Op.SNAPSHOT_GET);
        } finally {
            call.end(this, tree);
        }
    }

    /**
     * Returns the items of a range.
     *
     * @param range the range
     * @return the items
     */
    public Iterable<Item> items(Range range) {
        return items(store, range);
    }

    /**
     * Returns the items of a range of a tree.
     *
     * @param tree the tree
     * @param range the range
     * @return the items
     */
    public Iterable<Item> items(Tree tree, Range range) {
        return Source.shared(this, tree).items(range);
    }

    /**
     * Returns a cursor over the items of a tree, which is at no item yet.
     *
     * @param tree the tree
     * @return the cursor
     */
    public Cursor cursor(Tree tree) {
        return new Cursor(Source.shared(this, tree));
    }

    /** Closes the snapshot, after the calls of other threads on it have ended. */
    @Override
    public void close() {
        handle.end();
    }
}
