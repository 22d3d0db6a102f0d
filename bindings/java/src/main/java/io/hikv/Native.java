package io.hikv;

import java.nio.ByteBuffer;

/**
 * The native half of hikv. {@link Jni} and, from Java 22 on, {@code Ffm} reach the same function, whose arguments are
 * integers: addresses, handles and lengths. So everything above this class is the same for both.
 */
abstract class Native {
    /** The way of this process. */
    static final Native LIBRARY = Way.choose();

    /**
     * Calls the native half.
     *
     * @param in the address of the key, which the value follows
     * @param out the address of {@code cap} bytes for results and texts
     * @return a result as {@code native/hikv_java.c} describes it
     */
    abstract long call(
            int op, long store, long tree, long other, long in, long keyLen, long valueLen, long number, long out,
            long cap);

    /** Returns a buffer over native memory, which stays the owner's. */
    abstract ByteBuffer view(long address, int len);

    /**
     * Returns this way if the library is the one for these classes.
     *
     * @throws UnsatisfiedLinkError if it is another version's
     */
    final Native checked() {
        long found = call(Op.PROTOCOL, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        if (found != Op.PROTOCOL_VERSION) {
            throw new UnsatisfiedLinkError(
                    "the library speaks version " + found + " of hikv's protocol, this jar version "
                            + Op.PROTOCOL_VERSION);
        }
        return this;
    }
}
