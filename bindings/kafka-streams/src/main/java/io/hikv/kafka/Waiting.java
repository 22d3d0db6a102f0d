package io.hikv.kafka;

import io.hikv.Item;
import io.hikv.WriteBatch;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.Supplier;
import org.apache.kafka.streams.KeyValue;

/**
 * The writes of a state store that wait for a commit, over the items of its tree. One thread writes; all threads may
 * read at the same time.
 *
 * <p>A commit writes the items to the tree and then uses a new object, so an iterator over this one and the tree
 * finds each write in at least one of both.
 */
final class Waiting {
    /** The value of a deleted key; compared by identity. */
    private static final byte[] DELETED = {};

    private final ConcurrentNavigableMap<byte[], byte[]> writes = new ConcurrentSkipListMap<>(Arrays::compareUnsigned);
    private volatile long bytes;

    /** Puts a value, or deletes the key if the value is null. */
    void put(byte[] key, byte[] value) {
        byte[] stored = value == null ? DELETED : value;
        byte[] old = writes.put(key, stored);
        bytes += old == null ? key.length + stored.length : stored.length - old.length;
    }

    /** Returns true if the key was written or deleted. */
    boolean contains(byte[] key) {
        return writes.containsKey(key);
    }

    /** Returns the value that was put, or null if the key was deleted or not written. */
    byte[] get(byte[] key) {
        byte[] value = writes.get(key);
        return value == DELETED ? null : value;
    }

    /** Returns the bytes of the keys and values. */
    long bytes() {
        return bytes;
    }

    /** Returns the number of keys. */
    int size() {
        return writes.size();
    }

    /** Adds the writes to a batch. */
    void addTo(WriteBatch batch) {
        writes.forEach((key, value) -> {
            if (value == DELETED) {
                batch.delete(key);
            } else {
                batch.put(key, value);
            }
        });
    }

    /**
     * Merges the writes of a range with the items of a tree, which are of the same range and in the same order.
     *
     * @param hi the key behind the range
     */
    Supplier<KeyValue<byte[], byte[]>> over(Iterator<Item> tree, byte[] lo, byte[] hi, boolean forward) {
        ConcurrentNavigableMap<byte[], byte[]> range = writes.subMap(lo, true, hi, false);
        Iterator<Map.Entry<byte[], byte[]>> upper = (forward ? range : range.descendingMap()).entrySet().iterator();
        return new Supplier<>() {
            private Map.Entry<byte[], byte[]> write = following(upper);
            private Item item = following(tree);

            @Override
            public KeyValue<byte[], byte[]> get() {
                while (write != null || item != null) {
                    int order = write == null ? 1 : item == null ? -1
                        : forward ? Arrays.compareUnsigned(write.getKey(), item.key())
                        : Arrays.compareUnsigned(item.key(), write.getKey());
                    if (order > 0) {
                        KeyValue<byte[], byte[]> found = KeyValue.pair(item.key(), item.value());
                        item = following(tree);
                        return found;
                    }
                    if (order == 0) {
                        item = following(tree);
                    }
                    Map.Entry<byte[], byte[]> found = write;
                    write = following(upper);
                    if (found.getValue() != DELETED) {
                        return KeyValue.pair(found.getKey(), found.getValue());
                    }
                }
                return null;
            }
        };
    }

    private static <T> T following(Iterator<T> items) {
        return items.hasNext() ? items.next() : null;
    }
}
