package io.hikv;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * The count of the calls that use a handle, which keeps the handle until the last of them has ended.
 *
 * <p>A call increments a counter and then reads {@code isShut}; it proceeds only if that is false. {@link #shut} sets
 * {@code isShut} and then waits until it has seen each counter at 0. All of these accesses are in one total order, so a
 * call that proceeds has incremented its counter before {@code isShut} was set, and its counter is not 0 until it ends.
 * A call that does not proceed takes its increment back, and only delays {@code shut}.
 *
 * <p>A call that ends decrements and then reads {@code isShut}. If it reads false, {@code shut} begins to wait later,
 * and sees the decrement. If it reads true, it notifies; {@code shut} looks at the counters with the same lock before
 * it waits, so no notice is lost.
 *
 * <p>Threads count in different cache lines. No call waits for another one.
 */
final class Gate {
    /** Longs in a cache line and in the one that the processor fetches with it. */
    private static final int STRIDE = 16;

    private final AtomicLongArray counts;
    private final int mask;
    private volatile boolean isShut;

    /**
     * Makes an open gate.
     *
     * @param stripes the number of counters, a power of two
     */
    Gate(int stripes) {
        counts = new AtomicLongArray(stripes * STRIDE);
        mask = stripes - 1;
    }

    /** Begins a call of a thread with this hash. Returns false if the gate is shut; then nothing is to be left. */
    boolean enter(int hash) {
        counts.getAndIncrement((hash & mask) * STRIDE);
        if (isShut) {
            leave(hash);
            return false;
        }
        return true;
    }

    /** Ends a call that has entered with this hash. */
    void leave(int hash) {
        counts.getAndDecrement((hash & mask) * STRIDE);
        if (isShut) {
            synchronized (this) {
                notifyAll();
            }
        }
    }

    /** Refuses further calls, and waits for those that run. */
    void shut() {
        isShut = true;
        boolean isInterrupted = false;
        synchronized (this) {
            while (isUsed()) {
                try {
                    wait();
                } catch (InterruptedException e) {
                    isInterrupted = true;
                }
            }
        }
        if (isInterrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private boolean isUsed() {
        for (int stripe = 0; stripe <= mask; stripe++) {
            if (counts.get(stripe * STRIDE) != 0) {
                return true;
            }
        }
        return false;
    }
}
