package io.hikv;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.function.UnaryOperator;

/**
 * Keys with values, in the order of the keys' unsigned bytes. All threads may use a tree at the same time. A write that
 * has returned is durable at the store's level.
 */
public sealed class Tree extends Part implements AutoCloseable permits Store {
    /** Keeps the store from being closed as unreachable; null in the store itself. */
    private final Store store;

    Tree(Handle handle, Store store) {
        super(handle);
        this.store = store;
    }

    /**
     * Returns the value of a key.
     *
     * @param key the key
     * @return the value, or null if the key is absent
     */
    public byte[] get(byte[] key) {
        Call call = Call.on(this);
        try {
            return call.key(key).value(Op.GET);
        } finally {
            call.end(this);
        }
    }

    /**
     * Copies the value of a key, or as much of it as fits.
     *
     * @param key the key
     * @param out the buffer
     * @return the length of the whole value, or -1 if the key is absent
     */
    public int get(byte[] key, byte[] out) {
        Objects.requireNonNull(out, "the buffer is null");
        Call call = Call.on(this);
        try {
            int len = call.key(key).fill(Op.GET, 0);
            if (len > 0) {
                call.copy(0, out, Math.min(len, out.length));
            }
            return len;
        } finally {
            call.end(this);
        }
    }

    /**
     * Returns the values of several keys.
     *
     * @param keys the keys
     * @return a value for each key, in their order, which is null if the key is absent
     */
    public List<byte[]> getAll(Collection<byte[]> keys) {
        ByteArrayOutputStream packed = new ByteArrayOutputStream();
        ByteBuffer len = ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.nativeOrder());
        // Not keys.size(), which another thread may change: the native half reads as many keys as it is promised.
        int count = 0;
        for (byte[] key : keys) {
            count++;
            len.putInt(0, Objects.requireNonNull(key, "a key is null").length);
            packed.writeBytes(len.array());
            packed.writeBytes(key);
        }
        Page page;
        Call call = Call.on(this);
        try {
            int found = call.key(packed.toByteArray()).fill(Op.MULTI_GET, count);
            page = new Page(call.bytes(0, found), false);
        } finally {
            call.end(this);
        }
        List<byte[]> values = new ArrayList<>(count);
        while (page.next()) {
            values.add(page.value());
        }
        return values;
    }

    /**
     * Returns the value of a key with its version.
     *
     * @param key the key
     * @return the value, or null if the key is absent
     */
    public Version getVersion(byte[] key) {
        Call call = Call.on(this);
        try {
            int len = call.key(key).fill(Op.GET_VERSION, 0);
            if (len < 0) {
                return null;
            }
            byte[] value = call.bytes(2 * Long.BYTES, len - 2 * Long.BYTES);
            return new Version(value, call.longAt(0), call.longAt(Long.BYTES));
        } finally {
            call.end(this);
        }
    }

    /**
     * Returns true if the key is present.
     *
     * @param key the key
     * @return true if it is present
     */
    public boolean contains(byte[] key) {
        Call call = Call.on(this);
        try {
            return call.key(key).done(Op.CONTAINS, 0);
        } finally {
            call.end(this);
        }
    }

    /**
     * Returns the number of keys.
     *
     * @return the number
     */
    public long size() {
        Call call = Call.on(this);
        try {
            return call.number(Op.LEN, 0);
        } finally {
            call.end(this);
        }
    }

    /**
     * Puts a value.
     *
     * @param key the key
     * @param value the value
     */
    public void put(byte[] key, byte[] value) {
        Call call = Call.on(this);
        try {
            call.keyAndValue(key, value).done(Op.PUT, 0);
        } finally {
            call.end(this);
        }
    }

    /**
     * Puts a value that expires.
     *
     * @param key the key
     * @param value the value
     * @param ttl the time after which the key is absent, of at least a millisecond
     */
    public void put(byte[] key, byte[] value, Duration ttl) {
        long millis = ttl.toMillis();
        if (millis <= 0) {
            throw new IllegalArgumentException("the time to live is " + ttl + ", less than a millisecond");
        }
        Call call = Call.on(this);
        try {
            call.keyAndValue(key, value).done(Op.PUT_TTL, millis);
        } finally {
            call.end(this);
        }
    }

    /**
     * Puts a value if the key is absent.
     *
     * @param key the key
     * @param value the value
     * @return true if it was absent
     */
    public boolean insert(byte[] key, byte[] value) {
        Call call = Call.on(this);
        try {
            return call.keyAndValue(key, value).done(Op.INSERT, 0);
        } finally {
            call.end(this);
        }
    }

    /**
     * Deletes a key.
     *
     * @param key the key
     * @return true if it was present
     */
    public boolean delete(byte[] key) {
        Call call = Call.on(this);
        try {
            return call.key(key).done(Op.DELETE, 0);
        } finally {
            call.end(this);
        }
    }

    /**
     * Adds to a number, which is a value in decimal text. An absent key counts as 0.
     *
     * @param key the key
     * @param by the number to add
     * @return the sum
     */
    public long increment(byte[] key, long by) {
        Call call = Call.on(this);
        try {
            return call.key(key).word(Op.INCREMENT, by);
        } finally {
            call.end(this);
        }
    }

    /**
     * Changes a value by a function, which runs again if another thread writes the key at the same time. So it must
     * have no effects.
     *
     * @param key the key
     * @param change takes the value, or null if the key is absent; returns the new value, or null to delete the key
     * @return the new value
     */
    public byte[] update(byte[] key, UnaryOperator<byte[]> change) {
        while (true) {
            Version old = getVersion(key);
            byte[] value = change.apply(old == null ? null : old.value());
            if (old == null && value == null) {
                return null;
            }
            WriteBatch batch = new WriteBatch();
            batch = old == null ? batch.expectAbsent(key) : batch.expect(key, old);
            try {
                write(value == null ? batch.delete(key) : batch.put(key, value));
                return value;
            } catch (HikvException.ConditionFailed e) {
                Thread.onSpinWait();
            }
        }
    }

    /** Deletes all keys in one step. */
    public void clear() {
        Call call = Call.on(this);
        try {
            call.done(Op.CLEAR, 0);
        } finally {
            call.end(this);
        }
    }

    /**
     * Deletes the keys that are at least {@code lo} and less than {@code hi}, one by one.
     *
     * @param lo the least key
     * @param hi the key behind the range
     * @return the number of deleted keys
     */
    public long deleteRange(byte[] lo, byte[] hi) {
        Call call = Call.on(this);
        try {
            return call.keyAndValue(lo, hi).number(Op.DELETE_RANGE, 0);
        } finally {
            call.end(this);
        }
    }

    /**
     * Writes a batch to this tree.
     *
     * @param batch the batch
     * @throws HikvException.ConditionFailed if a condition does not hold
     */
    public void write(WriteBatch batch) {
        Call call = Call.on(this);
        try {
            batch.input(call).done(Op.WRITE, 0);
        } finally {
            call.end(this);
        }
    }

    /**
     * Writes a batch to this tree, without a wait for the disk.
     *
     * @param batch the batch
     * @return a ticket, which is durable when the writes are
     * @throws HikvException.ConditionFailed if a condition does not hold
     */
    public Ticket writeDeferred(WriteBatch batch) {
        Call call = Call.on(this);
        try {
            return new Ticket(this, batch.input(call).word(Op.DEFERRED_WRITE, 0));
        } finally {
            call.end(this);
        }
    }

    /**
     * Returns the items of a range, in its order. Each loop reads them page by page, and sees all writes that were made
     * before it began; later ones it may see.
     *
     * @param range the range
     * @return the items
     */
    public Iterable<Item> items(Range range) {
        return Source.shared(this, this).items(range);
    }

    /**
     * Returns all items.
     *
     * @return the items
     */
    public Iterable<Item> items() {
        return items(Range.all());
    }

    /**
     * Returns a cursor, which is at no item yet.
     *
     * @return the cursor
     */
    public Cursor cursor() {
        return new Cursor(Source.shared(this, this));
    }

    /**
     * Closes the tree, after the calls of other threads on it have ended. Further calls throw {@link ClosedException}.
     */
    @Override
    public void close() {
        handle.end();
    }
}
