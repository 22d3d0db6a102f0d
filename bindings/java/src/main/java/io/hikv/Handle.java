package io.hikv;

import java.lang.ref.Cleaner;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A handle of the native half, which is freed once, and not while a call uses it.
 *
 * <p>Every call enters the gates of the handles that it uses. {@link #end} shuts the gate, which waits for those calls,
 * and then frees the handle. A store ends its children first: its own gate is shut by then, so no child can be added,
 * and each child waits for its calls. The order of waiting is store, then child; a call waits for no gate, so nothing
 * waits in a circle. A child that another thread is ending has its monitor until it is freed, and the store waits for
 * that.
 *
 * <p>An object of a user that becomes unreachable without {@code close} ends its handle through {@link #CLEANER}. The
 * handle does not refer to that object. A call on the object has entered the gate, so the cleaner waits for it.
 */
final class Handle {
    private static final Cleaner CLEANER = Cleaner.create();
    /** Enough for threads that run at once. */
    private static final int STRIPES = stripes(Runtime.getRuntime().availableProcessors());

    /** The pointers that a call on this handle passes, each of which may be 0. */
    final long store;
    final long tree;
    final long other;

    private final String name;
    private final int freeing;
    private final Gate gate;
    private final Handle root;
    /** Of a store. */
    private final Set<Handle> children = ConcurrentHashMap.newKeySet();
    /** Guarded by this. */
    private boolean isFreed;

    private Handle(String name, Handle root, long store, long tree, long other, int freeing, int stripes) {
        this.name = name;
        this.root = root == null ? this : root;
        this.store = store;
        this.tree = tree;
        this.other = other;
        this.freeing = freeing;
        this.gate = new Gate(stripes);
    }

    static Handle ofStore(long store) {
        return new Handle("store", null, store, 0, 0, Op.CLOSE, STRIPES);
    }

    /** Returns the handle of a tree. The caller has entered this store, and so do those of the next functions. */
    Handle tree(long tree) {
        return child(new Handle("tree", this, store, tree, 0, Op.TREE_CLOSE, STRIPES));
    }

    Handle snapshot(long snapshot) {
        return child(new Handle("snapshot", this, store, 0, snapshot, Op.SNAPSHOT_FREE, STRIPES));
    }

    /** Returns the handle of a transaction, which one thread uses. */
    Handle transaction(long transaction) {
        return child(new Handle("transaction", this, store, 0, transaction, Op.TX_ABORT, 1));
    }

    private Handle child(Handle child) {
        children.add(child);
        return child;
    }

    private static int stripes(int processors) {
        return Math.min(Integer.highestOneBit(Math.max(processors, 1)) * 4, 64);
    }

    /** Ends this handle, at the latest when `owner` is unreachable. */
    void endWith(Object owner) {
        CLEANER.register(owner, this::endQuietly);
    }

    /**
     * Begins a call.
     *
     * @throws ClosedException if the handle has ended
     */
    void enter(int hash) {
        if (!gate.enter(hash)) {
            throw new ClosedException("the " + name + " is closed");
        }
    }

    /** Ends a call. */
    void leave(int hash) {
        gate.leave(hash);
    }

    /** Returns true if the handles belong to the same store. */
    boolean isOfSameStore(Handle other) {
        return root == other.root;
    }

    /** Frees the handle if that has not happened, as its kind demands. */
    void end() {
        end(freeing);
    }

    /**
     * Frees the handle by an operation. Returns false if it was freed before.
     *
     * @throws HikvException if the operation fails; the handle is freed nevertheless
     */
    boolean end(int operation) {
        gate.shut();
        for (Handle child : children) {
            child.endQuietly();
        }
        synchronized (this) {
            if (isFreed) {
                return false;
            }
            isFreed = true;
            Call call = Call.ending(this);
            try {
                call.done(operation, 0);
            } finally {
                call.end();
                root.children.remove(this);
            }
            return true;
        }
    }

    /** Ends a handle where no caller can take an error: a child's end writes nothing. */
    private void endQuietly() {
        try {
            end();
        } catch (HikvException e) {
            System.getLogger("io.hikv").log(
                    System.Logger.Level.WARNING, "closing the " + name + " that was left open", e);
        }
    }
}
