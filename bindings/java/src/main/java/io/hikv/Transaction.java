package io.hikv;

/**
 * Reads and writes that happen as one step. Its reads see its own writes. {@link #commit} fails with
 * {@link HikvException.Conflict} if a key or range that it has read has changed.
 *
 * <p>One thread at a time uses a transaction; calls of several wait for each other. A transaction that is closed
 * without a commit writes nothing.
 */
public final class Transaction extends Part implements AutoCloseable {
    private final Store store;

    Transaction(Handle handle, Store store) {
        super(handle);
        this.store = store;
    }

    /**
     * Returns the value of a key.
     *
     * @param key the key
     * @return the value, or null if the key is absent
     */
    public byte[] get(byte[] key) {
        return get(store, key);
    }

    /**
     * Returns the value of a key of a tree.
     *
     * @param tree the tree
     * @param key the key
     * @return the value, or null if the key is absent
     */
    public synchronized byte[] get(Tree tree, byte[] key) {
        Call call = Call.on(this, tree);
        try {
            return call.key(key).value(Op.TX_GET);
        } finally {
            call.end(this, tree);
        }
    }

    /**
     * Puts a value.
     *
     * @param key the key
     * @param value the value
     */
    public void put(byte[] key, byte[] value) {
        put(store, key, value);
    }

    /**
     * Puts a value into a tree.
     *
     * @param tree the tree
     * @param key the key
     * @param value the value
     */
    public synchronized void put(Tree tree, byte[] key, byte[] value) {
        Call call = Call.on(this, tree);
        try {
            call.keyAndValue(key, value).done(Op.TX_PUT, 0);
        } finally {
            call.end(this, tree);
        }
    }

    /**
     * Deletes a key, which may be absent.
     *
     * @param key the key
     */
    public void delete(byte[] key) {
        delete(store, key);
    }

    /**
     * Deletes a key of a tree, which may be absent.
     *
     * @param tree the tree
     * @param key the key
     */
    public synchronized void delete(Tree tree, byte[] key) {
        Call call = Call.on(this, tree);
        try {
            call.key(key).done(Op.TX_DELETE, 0);
        } finally {
            call.end(this, tree);
        }
    }

    /**
     * Returns the items of a range. They are read page by page, and all that were read count for conflicts; a limit of
     * the range is never exceeded.
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
        return Source.of(this, tree).items(range);
    }

    /**
     * Checks that the transaction can still commit.
     *
     * @throws HikvException.Conflict if another thread has changed what it has read
     */
    public synchronized void check() {
        Call call = Call.on(this);
        try {
            call.done(Op.TX_CHECK, 0);
        } finally {
            call.end(this);
        }
    }

    /**
     * Writes everything as one step. The transaction has ended then, whatever the result.
     *
     * @throws HikvException.Conflict if another thread has changed what it has read
     */
    public synchronized void commit() {
        if (!handle.end(Op.TX_COMMIT)) {
            throw new ClosedException("the transaction is closed");
        }
    }

    /** Ends the transaction without a change, if it was not committed. */
    @Override
    public void close() {
        handle.end();
    }
}
