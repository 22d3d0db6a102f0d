package io.hikv;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * An open store. It is the tree of its own keys, and has further trees with names.
 *
 * <p>All threads may use a store at the same time. {@link #close} waits for the calls of other threads, and then closes
 * all trees, snapshots and transactions of the store. Calls on any of them throw {@link ClosedException} from then on.
 */
public final class Store extends Tree {
    /** hikv.h's HIKV_CREATE. */
    private static final int CREATE = 1;

    private Store(Handle handle) {
        super(handle, null);
    }

    /**
     * Opens the store in a directory, and makes it if it is missing.
     *
     * @param path the directory, or a DAX device
     * @return the store
     * @throws HikvException if it cannot be opened
     */
    public static Store open(Path path) {
        return open(path, new Options());
    }

    /**
     * Opens the store in a directory.
     *
     * @param path the directory, or a DAX device
     * @param options the options
     * @return the store
     * @throws HikvException if it cannot be opened
     */
    public static Store open(Path path, Options options) {
        byte[] encoded = options.encoded();
        Call call = Call.alone();
        try {
            long store = call.keyAndValue(Text.path(path), encoded).number(Op.OPEN, 0);
            return new Store(Handle.ofStore(store));
        } finally {
            call.end();
        }
    }

    /**
     * Opens a tree, and makes it if it is missing.
     *
     * @param name its name, of 1 to 255 bytes
     * @return the tree
     */
    public Tree tree(String name) {
        return tree(name, CREATE);
    }

    /**
     * Opens a tree that exists.
     *
     * @param name its name
     * @return the tree
     * @throws HikvException.NoSuchTree if there is none
     */
    public Tree existingTree(String name) {
        return tree(name, 0);
    }

    private Tree tree(String name, int flags) {
        Call call = Call.on(this);
        try {
            return new Tree(handle.tree(call.key(Text.name(name)).number(Op.TREE_OPEN, flags)), this);
        } finally {
            call.end(this);
        }
    }

    /**
     * Returns the names of the trees, in their order.
     *
     * @return the names
     */
    public List<String> trees() {
        List<String> names = new ArrayList<>();
        Call call = Call.on(this);
        try {
            Page page = new Page(call.bytes(0, call.fill(Op.TREE_LIST, 0)), false);
            while (page.next()) {
                names.add(new String(page.key(), StandardCharsets.UTF_8));
            }
        } finally {
            call.end(this);
        }
        return names;
    }

    /**
     * Gives a tree another name.
     *
     * @param from its name
     * @param to its new name
     */
    public void renameTree(String from, String to) {
        Call call = Call.on(this);
        try {
            call.keyAndValue(Text.name(from), Text.name(to)).done(Op.TREE_RENAME, 0);
        } finally {
            call.end(this);
        }
    }

    /**
     * Exchanges the keys of two trees in one step.
     *
     * @param a the name of one
     * @param b the name of the other
     */
    public void swapTrees(String a, String b) {
        Call call = Call.on(this);
        try {
            call.keyAndValue(Text.name(a), Text.name(b)).done(Op.TREE_SWAP, 0);
        } finally {
            call.end(this);
        }
    }

    /**
     * Deletes a tree with its keys.
     *
     * @param name its name
     */
    public void dropTree(String name) {
        Call call = Call.on(this);
        try {
            call.key(Text.name(name)).done(Op.TREE_DROP, 0);
        } finally {
            call.end(this);
        }
    }

    /**
     * Returns a view of the present moment.
     *
     * @return the snapshot
     */
    public Snapshot snapshot() {
        Call call = Call.on(this);
        try {
            return new Snapshot(handle.snapshot(call.number(Op.SNAPSHOT_NEW, 0)), this);
        } finally {
            call.end(this);
        }
    }

    /**
     * Begins a transaction that its owner commits; a conflict is for the owner to repeat.
     *
     * @return the transaction
     */
    public Transaction begin() {
        Call call = Call.on(this);
        try {
            return new Transaction(handle.transaction(call.number(Op.BEGIN, 0)), this);
        } finally {
            call.end(this);
        }
    }

    /**
     * Runs a body in a transaction and commits it. After a conflict, the body runs again, so it must have no effects
     * but those on the transaction. If it throws, nothing is written.
     *
     * @param body the body
     * @param <R> its result
     * @return the result of the run that was committed
     */
    public <R> R transact(Function<? super Transaction, ? extends R> body) {
        return transact(Integer.MAX_VALUE, body);
    }

    /**
     * Like {@link #transact(Function)}, with a limit.
     *
     * @param attempts the most runs of the body
     * @param body the body
     * @param <R> its result
     * @return the result of the run that was committed
     * @throws HikvException.Contended if each of them had a conflict
     */
    public <R> R transact(int attempts, Function<? super Transaction, ? extends R> body) {
        if (attempts <= 0) {
            throw new IllegalArgumentException("the limit of attempts is " + attempts + "; it is at least 1");
        }
        for (int attempt = 0; attempt < attempts; attempt++) {
            try (Transaction transaction = begin()) {
                R result = body.apply(transaction);
                transaction.commit();
                return result;
            } catch (HikvException.Conflict e) {
                Thread.onSpinWait();
            }
        }
        throw new HikvException.Contended("the transaction had a conflict in each of " + attempts + " attempts");
    }

    /** Makes every write that has returned as durable as the storage allows. */
    public void sync() {
        Call call = Call.on(this);
        try {
            call.done(Op.SYNC, 0);
        } finally {
            call.end(this);
        }
    }

    /**
     * Copies the store to a new directory, while it is in use.
     *
     * @param place the directory
     */
    public void backup(Path place) {
        Call call = Call.on(this);
        try {
            call.key(Text.path(place)).done(Op.BACKUP, 0);
        } finally {
            call.end(this);
        }
    }

    /**
     * Returns figures of the store.
     *
     * @return the figures, as JSON
     */
    public String stats() {
        Call call = Call.on(this);
        try {
            return new String(call.value(Op.STATS), StandardCharsets.UTF_8);
        } finally {
            call.end(this);
        }
    }

    /**
     * Closes the store. Waits for running calls first. A store that is closed stays so.
     *
     * @throws HikvException if the last writes may not be durable; the store is closed nevertheless
     */
    @Override
    public void close() {
        super.close();
    }
}
