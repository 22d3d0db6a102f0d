package io.hikv;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Items as the native half returns them, one of which is the present one. */
final class Page {
    private static final VarHandle LEN = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final int HEAD = 2 * Integer.BYTES;
    private static final int LEN_MAX = 64 << 10;

    /** The length of a first page: small, for a caller that needs only an item. */
    static final int LEN_FIRST = 1 << 10;

    private final byte[] bytes;
    private final boolean hasMore;
    private int at;
    private int next;

    /**
     * Makes a page before its first item.
     *
     * @param hasMore false if the range ends with this page
     */
    Page(byte[] bytes, boolean hasMore) {
        this.bytes = bytes;
        this.hasMore = hasMore;
    }

    /** Returns the length of the page behind one of this length. */
    static int lenAfter(int len) {
        return Math.min(4 * len, LEN_MAX);
    }

    /** Goes to the next item. Returns false if there is none. */
    boolean next() {
        if (next == bytes.length) {
            return false;
        }
        at = next;
        next = at + HEAD + keyLen() + Math.max(valueLen(), 0);
        return true;
    }

    boolean hasMore() {
        return hasMore;
    }

    byte[] key() {
        return Arrays.copyOfRange(bytes, at + HEAD, at + HEAD + keyLen());
    }

    /** Returns the value, or null for an absent key of a call with many keys. */
    byte[] value() {
        return valueLen() < 0 ? null : Arrays.copyOfRange(bytes, next - valueLen(), next);
    }

    private int keyLen() {
        return (int) LEN.get(bytes, at);
    }

    private int valueLen() {
        return (int) LEN.get(bytes, at + Integer.BYTES);
    }
}
