package io.hikv.kafka;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.function.Supplier;
import org.apache.kafka.streams.KeyValue;

/**
 * Items with times in the state of a store, which expire with its retention. A stored key is a segment, a stretch of
 * time, followed by the item's key in the changelog. So expired items lie together and the items of a key lie together
 * within each segment.
 */
final class Segments {
    /** The least length of a segment in milliseconds, as in Kafka's own stores. */
    static final long INTERVAL_MIN = 60_000;

    private final State state;
    private final long retention;
    private final long interval;
    /** The greatest time of an item, or less after opening: the start of its segment. */
    private volatile long streamTime = -1;

    Segments(State state, long retention) {
        this.state = state;
        this.retention = retention;
        interval = interval(retention);
        KeyValue<byte[], byte[]> last = state.range(null, null, false).get();
        if (last != null) {
            streamTime = ByteBuffer.wrap(last.key).getLong() * interval;
        }
    }

    /** Returns the length of a segment for a retention. */
    static long interval(long retention) {
        return Math.max(retention / 2, INTERVAL_MIN);
    }

    /** Puts the value of an item, or deletes it if the value is null. Returns false if its time has expired. */
    boolean put(long time, byte[] key, byte[] value) {
        if (time > streamTime) {
            long before = firstSegment();
            streamTime = time;
            if (firstSegment() > before) {
                state.expireBefore(stored(firstSegment(), new byte[0]));
            }
        }
        if (time < earliest()) {
            return false;
        }
        state.put(stored(segment(time), key), value);
        return true;
    }

    /** Returns the value of an item, or null. */
    byte[] get(long time, byte[] key) {
        return time < earliest() ? null : state.get(stored(segment(time), key));
    }

    /** Returns the earliest time that has not expired. */
    long earliest() {
        return Math.max(0, streamTime - retention + 1);
    }

    /**
     * Returns the items of all segments that have times of a range, and in each the items from {@code lo}, or the
     * first, to before {@code hi}, or to the last. Their times may be outside the range, or have expired.
     */
    Supplier<KeyValue<byte[], byte[]>> range(long from, long to, byte[] lo, byte[] hi, boolean forward) {
        long first = Math.max(segment(Math.max(0, from)), firstSegment());
        long last = streamTime < 0 || to < 0 ? -1 : segment(Math.min(to, streamTime));
        return new Supplier<>() {
            private long next = forward ? first : last;
            private Supplier<KeyValue<byte[], byte[]>> items = () -> null;

            @Override
            public KeyValue<byte[], byte[]> get() {
                KeyValue<byte[], byte[]> item = items.get();
                while (item == null && first <= next && next <= last) {
                    byte[] end = hi == null ? stored(next + 1, new byte[0]) : stored(next, hi);
                    items = state.range(stored(next, lo == null ? new byte[0] : lo), end, forward);
                    next += forward ? 1 : -1;
                    item = items.get();
                }
                return item == null
                    ? null
                    : KeyValue.pair(Arrays.copyOfRange(item.key, Long.BYTES, item.key.length), item.value);
            }
        };
    }

    /** Returns the first segment that is kept. The times at its beginning may have expired. */
    private long firstSegment() {
        return segment(Math.max(0, streamTime - retention));
    }

    private long segment(long time) {
        return time / interval;
    }

    private static byte[] stored(long segment, byte[] key) {
        return ByteBuffer.allocate(Long.BYTES + key.length).putLong(segment).put(key).array();
    }
}
