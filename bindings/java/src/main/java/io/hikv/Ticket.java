package io.hikv;

/** A deferred write, whose result may be reported once it is durable. */
public final class Ticket {
    private final Tree tree;
    private final long number;

    Ticket(Tree tree, long number) {
        this.tree = tree;
        this.number = number;
    }

    /**
     * Returns true if the write is durable. Does not wait.
     *
     * @return true if it is durable
     */
    public boolean isDurable() {
        Call call = Call.on(tree);
        try {
            return call.done(Op.IS_DURABLE, number);
        } finally {
            call.end(tree);
        }
    }

    /** Waits until the write is durable. */
    public void await() {
        Call call = Call.on(tree);
        try {
            call.done(Op.WAIT, number);
        } finally {
            call.end(tree);
        }
    }
}
