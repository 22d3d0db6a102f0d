package io.hikv;

/** A call on a store, tree, snapshot or transaction that was closed, or whose store was. */
public final class ClosedException extends IllegalStateException {
    private static final long serialVersionUID = 1;

    ClosedException(String message) {
        super(message);
    }
}
