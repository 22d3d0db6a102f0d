package io.hikv;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicIntegerArray;

/**
 * One call of the native half: its memory, and the handles that it uses. Each call is ended, with the parts on which it
 * began.
 *
 * <p>The memory holds the input, and behind it the output. Calls are reused: {@link #TAKEN} says for each of {@link
 * #CALLS} whether a thread has it, which alone then uses it. A thread that finds those of its place taken makes another
 * one. So the number of idle calls is limited, for virtual threads as well.
 *
 * <p>The part is not kept here but by the caller, who names it again at the end. So it is reachable until then, and no
 * reference is stored, which would cost as much as all else (the collector is informed of such a store).
 */
final class Call {
    private static final int SLOTS = 64;
    /** Places that a thread looks at. */
    private static final int TRIES = 4;
    /** Numbers in two cache lines. */
    private static final int STRIDE = 32;
    private static final AtomicIntegerArray TAKEN = new AtomicIntegerArray(SLOTS * STRIDE);
    /** Made by the first thread that takes it. */
    private static final Call[] CALLS = new Call[SLOTS];
    private static final int NO_SLOT = -1;

    /** The memory of a new call. */
    private static final int BYTES_FIRST = 16 << 10;
    /** The most memory of a call that is kept. */
    private static final int BYTES_KEPT = 1 << 20;
    /** Space for a text or for numbers. */
    private static final int OUTPUT_MIN = 1 << 10;

    private long address;
    private int capacity;
    private ByteBuffer memory;

    private final int slot;
    private int hash;
    private long store;
    private long tree;
    private long other;
    private int keyLen;
    private int valueLen;
    private int output;

    private Call(int slot) {
        this.slot = slot;
        allocate(BYTES_FIRST);
    }

    /** Begins a call without a handle. */
    static Call alone() {
        Call call = take();
        call.store = 0;
        call.tree = 0;
        call.other = 0;
        return call;
    }

    /**
     * Begins a call on a part of a store.
     *
     * @throws ClosedException if it is closed
     */
    static Call on(Part part) {
        Call call = take();
        try {
            part.handle.enter(call.hash);
        } catch (ClosedException e) {
            call.end();
            throw e;
        }
        call.use(part.handle);
        return call;
    }

    /**
     * Begins a call on a part of a store for a tree, or for the store's own keys.
     *
     * @throws ClosedException if one of them is closed
     * @throws IllegalArgumentException if they belong to different stores
     */
    static Call on(Part part, Tree tree) {
        Objects.requireNonNull(tree, "the tree is null");
        Call call = on(part);
        try {
            if (!part.handle.isOfSameStore(tree.handle)) {
                throw new IllegalArgumentException("the tree belongs to another store");
            }
            tree.handle.enter(call.hash);
        } catch (RuntimeException e) {
            call.end(part);
            throw e;
        }
        call.tree = tree.handle.tree;
        return call;
    }

    /** Begins the call that frees a handle, whose gate is shut. */
    static Call ending(Handle handle) {
        Call call = take();
        call.use(handle);
        return call;
    }

    private void use(Handle handle) {
        store = handle.store;
        tree = handle.tree;
        other = handle.other;
    }

    private static Call take() {
        // Threads that were made one after the other have different places and counters.
        int hash = (int) Thread.currentThread().getId();
        Call call = null;
        for (int i = 0; call == null && i < TRIES; i++) {
            call = taken(hash + i & SLOTS - 1);
        }
        if (call == null) {
            call = new Call(NO_SLOT);
        }
        call.hash = hash;
        call.output = 0;
        call.keyLen = 0;
        call.valueLen = 0;
        return call;
    }

    /** Takes the call of a place. Returns null if a thread has it. */
    private static Call taken(int slot) {
        if (TAKEN.getAndSet(slot * STRIDE, 1) != 0) {
            return null;
        }
        Call call = CALLS[slot];
        if (call == null) {
            try {
                call = new Call(slot);
                CALLS[slot] = call;
            } finally {
                if (call == null) {
                    TAKEN.setRelease(slot * STRIDE, 0);
                }
            }
        }
        return call;
    }

    /** Ends a call without a part. */
    void end() {
        if (slot == NO_SLOT) {
            free(address);
            return;
        }
        if (capacity > BYTES_KEPT) {
            long old = address;
            allocate(BYTES_FIRST);
            free(old);
        }
        TAKEN.setRelease(slot * STRIDE, 0);
    }

    /** Ends a call on a part. */
    void end(Part part) {
        part.handle.leave(hash);
        end();
    }

    /** Ends a call on a part for a tree. */
    void end(Part part, Tree tree) {
        tree.handle.leave(hash);
        end(part);
    }

    private void allocate(int bytes) {
        long allocated = Native.LIBRARY.call(Op.ALLOCATE, 0, 0, 0, 0, 0, 0, bytes, 0, 0);
        if (allocated == 0) {
            throw new OutOfMemoryError("no native memory for a call of " + bytes + " bytes");
        }
        address = allocated;
        capacity = bytes;
        memory = Native.LIBRARY.view(address, bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static void free(long address) {
        Native.LIBRARY.call(Op.FREE, 0, 0, address, 0, 0, 0, 0, 0, 0);
    }

    /** Makes space for an output behind the input. */
    private void reserve(long outputLen) {
        long needed = output + Math.max(outputLen, OUTPUT_MIN);
        if (needed <= capacity) {
            return;
        }
        long padded = Math.max(needed, 2L * capacity) + 7 & -8;
        if (padded > Integer.MAX_VALUE - 8) {
            padded = needed;
        }
        if (padded > Integer.MAX_VALUE - 8) {
            throw new IllegalArgumentException(
                    "a call has " + needed + " bytes; it can have " + (Integer.MAX_VALUE - 8));
        }
        ByteBuffer old = memory;
        long oldAddress = address;
        allocate((int) padded);
        memory.put(0, old, 0, output);
        free(oldAddress);
    }

    /** Sets the key of the call. */
    Call key(byte[] key) {
        int len = Objects.requireNonNull(key, "the key is null").length;
        place(len, 0);
        memory.put(0, key);
        return this;
    }

    /** Sets the key and the value of the call. */
    Call keyAndValue(byte[] key, byte[] value) {
        int len = Objects.requireNonNull(key, "the key is null").length;
        place(len, Objects.requireNonNull(value, "the value is null").length);
        memory.put(0, key);
        memory.put(len, value);
        return this;
    }

    /** Sets an input of `len` bytes as the key. */
    Call input(byte[] bytes, int len) {
        place(len, 0);
        memory.put(0, bytes, 0, len);
        return this;
    }

    private void place(int keyLen, int valueLen) {
        long end = (long) keyLen + valueLen + 7 & -8;
        if (end > Integer.MAX_VALUE - OUTPUT_MIN) {
            throw new IllegalArgumentException(
                    "a key of " + keyLen + " bytes and a value of " + valueLen + " are too long");
        }
        output = 0;
        reserve(end + OUTPUT_MIN);
        this.keyLen = keyLen;
        this.valueLen = valueLen;
        output = (int) end;
    }

    private long run(int op, long number) {
        return run(op, number, capacity - output);
    }

    private long run(int op, long number, int cap) {
        long result = Native.LIBRARY.call(
                op, store, tree, other, address, keyLen, valueLen, number, address + output, cap);
        if (result < 0 && result > Op.EXISTS) {
            throw failure((int) result, op);
        }
        return result;
    }

    private RuntimeException failure(int code, int op) {
        boolean isNumbered = op == Op.WRITE && code == HikvException.ConditionFailed.CODE;
        int text = output + (isNumbered ? 8 : 0);
        int end = text;
        while (end < capacity && memory.get(end) != 0) {
            end++;
        }
        String message = StandardCharsets.UTF_8.decode(memory.slice(text, end - text)).toString();
        return isNumbered ? new HikvException.ConditionFailed(message, memory.getLong(output)) : HikvException.of(code, message);
    }

    /** Calls an operation without a result. Returns false if a key is absent, or exists that should not. */
    boolean done(int op, long number) {
        return run(op, number) == 0;
    }

    /** Calls an operation whose result is a count or a handle. */
    long number(int op, long number) {
        return run(op, number);
    }

    /** Calls an operation whose result is bytes. Returns their count, or -1 if there are none. */
    int fill(int op, long number) {
        while (true) {
            long len = run(op, number);
            if (len <= capacity - output) {
                return (int) Math.max(len, -1);
            }
            reserve(len);
        }
    }

    /**
     * Calls an operation that fills a page of this length, or of the length that its first item needs. Returns the
     * same.
     */
    int fillPage(int op, long number, int pageLen) {
        reserve(pageLen);
        long len = run(op, number, pageLen);
        while (len > pageLen) {
            pageLen = (int) Math.min(len, Integer.MAX_VALUE - 8);
            reserve(len);
            len = run(op, number, pageLen);
        }
        return (int) Math.max(len, -1);
    }

    /** Calls an operation whose result is a value. Returns null if the key is absent. */
    byte[] value(int op) {
        int len = fill(op, 0);
        return len < 0 ? null : bytes(0, len);
    }

    /** Calls an operation whose result is a word in the output. */
    long word(int op, long number) {
        run(op, number);
        return longAt(0);
    }

    /** Returns a word of the output. */
    long longAt(int at) {
        return memory.getLong(output + at);
    }

    /** Returns bytes of the output. */
    byte[] bytes(int at, int len) {
        byte[] bytes = new byte[len];
        memory.get(output + at, bytes);
        return bytes;
    }

    /** Copies bytes of the output. */
    void copy(int at, byte[] target, int len) {
        memory.get(output + at, target, 0, len);
    }
}
