package io.hikv;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.time.Instant;
import java.util.Arrays;
import java.util.Objects;

/**
 * Writes that happen as one step, for readers and for a crash, if all of the batch's conditions hold before it. One
 * thread uses a batch. It can be written several times, and holds nothing of a store. Each method returns this batch.
 */
public final class WriteBatch {
    private static final VarHandle LEN = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle WORD = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final byte[] NONE = {};

    private static final int PUT = 1;
    private static final int DELETE = 2;
    private static final int PUT_UNTIL = 3;
    private static final int EXPECT_ABSENT = 16;
    private static final int EXPECT_VERSION = 17;
    private static final int TREE = 32;
    private static final int HEAD = 1 + 2 * Integer.BYTES;

    private byte[] ops = new byte[256];
    private int len;

    /** Makes an empty batch. */
    public WriteBatch() {}

    /**
     * Puts a value.
     *
     * @param key the key
     * @param value the value
     * @return this
     */
    public WriteBatch put(byte[] key, byte[] value) {
        return add(PUT, key, Objects.requireNonNull(value, "the value is null"));
    }

    /**
     * Puts a value that expires.
     *
     * @param key the key
     * @param value the value
     * @param end the time from which the key is absent
     * @return this
     */
    public WriteBatch put(byte[] key, byte[] value, Instant end) {
        long millis = end.toEpochMilli();
        if (millis < 0) {
            throw new IllegalArgumentException("the time is " + end + ", before 1970");
        }
        int at = head(PUT_UNTIL, key, Objects.requireNonNull(value, "the value is null").length, Long.BYTES);
        WORD.set(ops, at, millis);
        System.arraycopy(value, 0, ops, at + Long.BYTES, value.length);
        return this;
    }

    /**
     * Deletes a key, which may be absent.
     *
     * @param key the key
     * @return this
     */
    public WriteBatch delete(byte[] key) {
        return add(DELETE, key, NONE);
    }

    /**
     * Adds the condition that the key is absent.
     *
     * @param key the key
     * @return this
     */
    public WriteBatch expectAbsent(byte[] key) {
        return add(EXPECT_ABSENT, key, NONE);
    }

    /**
     * Adds the condition that the key was not written since its version was read.
     *
     * @param key the key
     * @param version the version
     * @return this
     */
    public WriteBatch expect(byte[] key, Version version) {
        int at = head(EXPECT_VERSION, key, 2 * Long.BYTES, 0);
        WORD.set(ops, at, version.high());
        WORD.set(ops, at + Long.BYTES, version.low());
        return this;
    }

    /**
     * Goes on with another tree. What was added before this applies to the tree that writes the batch.
     *
     * @param tree the tree's name
     * @return this
     */
    public WriteBatch in(String tree) {
        return add(TREE, Text.name(tree), NONE);
    }

    /**
     * Removes all writes and conditions.
     *
     * @return this
     */
    public WriteBatch clear() {
        len = 0;
        return this;
    }

    /**
     * Returns the bytes that the batch takes.
     *
     * @return the bytes
     */
    public int byteLength() {
        return len;
    }

    private WriteBatch add(int kind, byte[] key, byte[] value) {
        int at = head(kind, key, value.length, 0);
        System.arraycopy(value, 0, ops, at, value.length);
        return this;
    }

    /** Adds an operation without its value. Returns the place of the value, with as many uncounted bytes before it. */
    private int head(int kind, byte[] key, int valueLen, int uncounted) {
        int keyLen = Objects.requireNonNull(key, "the key is null").length;
        long end = (long) len + HEAD + keyLen + uncounted + valueLen;
        if (end > ops.length) {
            grow(end);
        }
        ops[len] = (byte) kind;
        LEN.set(ops, len + 1, keyLen);
        LEN.set(ops, len + 1 + Integer.BYTES, valueLen);
        int at = len + HEAD;
        System.arraycopy(key, 0, ops, at, keyLen);
        len = (int) end;
        return at + keyLen;
    }

    private void grow(long end) {
        if (end > Integer.MAX_VALUE - 8) {
            throw new IllegalArgumentException("a batch of " + end + " bytes is too long");
        }
        ops = Arrays.copyOf(ops, (int) Math.min(Math.max(end, 2L * ops.length), Integer.MAX_VALUE - 8));
    }

    /** Sets the operations as the input of a call. */
    Call input(Call call) {
        return call.input(ops, len);
    }
}
