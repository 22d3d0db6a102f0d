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
        try (Call call = Call.on(tree)) {
            return call.done(Op.IS_DURABLE, number);
        }
    }

    /** Waits until the write is durable. */
    public void await() {
        try (Call call = Call.on(tree)) {
            call.done(Op.WAIT, number);
        }
    }
}
