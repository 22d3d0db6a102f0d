package io.hikv.kafka;

import io.hikv.ClosedException;
import io.hikv.Item;
import io.hikv.Range;
import io.hikv.Tree;
import io.hikv.WriteBatch;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.internals.PositionSerde;

/**
 * The items and the changelog offsets of one state store, in one tree. One thread writes; all threads may read.
 *
 * <p>Writes wait in memory for {@link #commit}, which writes them with the offsets as one batch. Except in
 * transactions, they are written earlier once they are many:
 *
 * <ul>
 *   <li>{@link Mode#AT_LEAST_ONCE}: after a kill, the restored tail of the changelog overwrites them.
 *   <li>{@link Mode#EXACTLY_ONCE}: the batch marks the tree as dirty, and the next commit removes the mark. A tree that
 *       is dirty when it is opened holds writes of an unfinished transaction, so it is cleared and restored completely.
 * </ul>
 *
 * Keys of items begin with the byte 1; those of the offsets, the position and the mark with 0.
 */
final class State implements AutoCloseable {
    /** The bytes of waiting writes from which on they are written without a commit. */
    static final long WAITING_BYTES_MAX = 16 << 20;

    private static final byte META = 0;
    private static final byte ITEM = 1;
    private static final byte[] DIRTY = {META};
    private static final byte[] OFFSETS = {META, 0};
    private static final byte[] POSITION = {META, 1};

    private final SharedStore shared;
    private final Tree tree;
    private final Mode mode;
    private final Position position;
    private volatile boolean isOpen = true;
    private volatile Waiting waiting = new Waiting();
    /** The key behind the items that have expired, or null. */
    private byte[] expired;

    /** Opens the state of a state store, whose task has a directory. */
    State(Mode mode, Path taskDirectory, String name) {
        this.mode = mode;
        shared = SharedStore.open(taskDirectory.toAbsolutePath().getParent());
        try {
            tree = shared.tree(taskDirectory, name);
            if (tree.contains(DIRTY)) {
                tree.clear();
            }
            byte[] committed = tree.get(POSITION);
            position = committed == null
                ? Position.emptyPosition()
                : PositionSerde.deserialize(ByteBuffer.wrap(committed));
        } catch (RuntimeException e) {
            shared.close();
            throw e;
        }
    }

    /** Returns a value, or null if the key is absent. */
    byte[] get(byte[] key) {
        byte[] stored = item(key);
        Waiting writes = waiting;
        return writes.contains(stored) ? writes.get(stored) : read(() -> tree.get(stored));
    }

    /** Puts a value, or deletes the key if the value is null. */
    synchronized void put(byte[] key, byte[] value) {
        waiting.put(item(key), value);
        if (mode != Mode.TRANSACTIONAL && waiting.bytes() > WAITING_BYTES_MAX) {
            WriteBatch batch = new WriteBatch();
            write(mode == Mode.EXACTLY_ONCE ? batch.put(DIRTY, DIRTY) : batch);
        }
    }

    /** Returns the items from {@code lo}, or the first, to before {@code hi}, or to the last. */
    Supplier<KeyValue<byte[], byte[]>> range(byte[] lo, byte[] hi, boolean forward) {
        byte[] from = lo == null ? new byte[] {ITEM} : item(lo);
        byte[] to = hi == null ? new byte[] {ITEM + 1} : item(hi);
        if (Arrays.compareUnsigned(from, to) >= 0) {
            return () -> null;
        }
        // The waiting writes come first: a commit in between moves them to the tree, and not back.
        Waiting writes = waiting;
        Range range = Range.between(from, to);
        Iterator<Item> items = tree.items(forward ? range : range.reversed()).iterator();
        Supplier<KeyValue<byte[], byte[]>> merged = read(() -> writes.over(items, from, to, forward));
        return () -> {
            KeyValue<byte[], byte[]> found = read(merged);
            return found == null
                ? null
                : KeyValue.pair(Arrays.copyOfRange(found.key, 1, found.key.length), found.value);
        };
    }

    /** Deletes the items before a key together with the next writing to the tree. They must not be read until then. */
    synchronized void expireBefore(byte[] hi) {
        expired = item(hi);
    }

    /** Returns the number of items. Those that are written again, and wait for it, count twice. */
    long size() {
        return read(() -> {
            long size = tree.size() + waiting.size();
            for (Item meta : tree.items(Range.prefix(new byte[] {META}).keysOnly())) {
                size--;
            }
            return size;
        });
    }

    /** Returns the bytes of the writes that wait for a commit. */
    long waitingBytes() {
        return waiting.bytes();
    }

    /** Returns the records of the input that the items reflect. It may be changed, and is kept by a commit. */
    Position position() {
        return position;
    }

    /** Writes the waiting writes and the offsets in one batch. Without any offset, those of before are removed. */
    synchronized void commit(Map<TopicPartition, Long> offsets) {
        byte[] seen = PositionSerde.serialize(position).array();
        WriteBatch batch = new WriteBatch().delete(DIRTY).put(POSITION, seen);
        if (offsets.isEmpty()) {
            for (Item old : tree.items(Range.prefix(OFFSETS).keysOnly())) {
                batch.delete(old.key());
            }
        }
        offsets.forEach((partition, offset) -> {
            if (offset == null) {
                batch.delete(offsetKey(partition));
            } else {
                batch.put(offsetKey(partition), ByteBuffer.allocate(Long.BYTES).putLong(offset).array());
            }
        });
        write(batch);
    }

    /** Returns the committed offset of a partition, or null. */
    Long committedOffset(TopicPartition partition) {
        byte[] offset = tree.get(offsetKey(partition));
        return offset == null ? null : ByteBuffer.wrap(offset).getLong();
    }

    /** Returns false once the state is closed. */
    boolean isOpen() {
        return isOpen;
    }

    /** Closes the state. Writes that wait are lost. */
    @Override
    public void close() {
        isOpen = false;
        tree.close();
        shared.close();
    }

    /** Reads the tree, which another thread may close at any time. */
    private static <T> T read(Supplier<T> reading) {
        try {
            return reading.get();
        } catch (ClosedException e) {
            throw new InvalidStateStoreException("the store was closed by another thread", e);
        }
    }

    private void write(WriteBatch batch) {
        waiting.addTo(batch);
        tree.write(batch);
        waiting = new Waiting();
        if (expired != null) {
            tree.deleteRange(new byte[] {ITEM}, expired);
            expired = null;
        }
    }

    private static byte[] item(byte[] key) {
        byte[] stored = new byte[1 + key.length];
        stored[0] = ITEM;
        System.arraycopy(key, 0, stored, 1, key.length);
        return stored;
    }

    private static byte[] offsetKey(TopicPartition partition) {
        byte[] topic = partition.topic().getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(2 + Integer.BYTES + topic.length)
            .put(OFFSETS).putInt(partition.partition()).put(topic).array();
    }
}
