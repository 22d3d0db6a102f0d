package io.hikv.kafka;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.TimeWindow;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/** A window store in a tree. The key of an item is that of the changelog: key, window start, duplicate. */
class HikvWindowStore extends HikvStateStore implements WindowStore<Bytes, byte[]> {
    private static final int SUFFIX = Long.BYTES + Integer.BYTES;

    private final long retention;
    private final long windowSize;
    private final boolean retainsDuplicates;
    private int duplicates;
    private Segments segments;

    HikvWindowStore(String name, long retention, long windowSize, boolean retainsDuplicates) {
        super(name);
        this.retention = retention;
        this.windowSize = windowSize;
        this.retainsDuplicates = retainsDuplicates;
    }

    @Override
    void opened(State state) {
        segments = new Segments(state, retention);
    }

    @Override
    void restore(byte[] key, byte[] value) {
        segments.put(start(key), key, value);
    }

    @Override
    public void put(Bytes key, byte[] value, long start) {
        Objects.requireNonNull(key, "the key is null");
        state();
        if (value != null || !retainsDuplicates) {
            if (retainsDuplicates) {
                duplicates = duplicates + 1 & Integer.MAX_VALUE;
            }
            if (!segments.put(start, stored(key, start, duplicates), value)) {
                countDropped();
            }
        }
        advancePosition();
    }

    @Override
    public byte[] fetch(Bytes key, long start) {
        state();
        return segments.get(start, stored(Objects.requireNonNull(key, "the key is null"), start, duplicates));
    }

    @Override
    public WindowStoreIterator<byte[]> fetch(Bytes key, long from, long to) {
        return values(key, from, to, true);
    }

    @Override
    public WindowStoreIterator<byte[]> backwardFetch(Bytes key, long from, long to) {
        return values(key, from, to, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo, long from, long to) {
        return windows(keyFrom, keyTo, from, to, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes keyFrom, Bytes keyTo, long from, long to) {
        return windows(keyFrom, keyTo, from, to, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetchAll(long from, long to) {
        return windows(null, null, from, to, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetchAll(long from, long to) {
        return windows(null, null, from, to, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> all() {
        return windows(null, null, 0, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardAll() {
        return windows(null, null, 0, Long.MAX_VALUE, false);
    }

    private WindowStoreIterator<byte[]> values(Bytes key, long from, long to, boolean forward) {
        Objects.requireNonNull(key, "the key is null");
        byte[] hi = Keys.behind(stored(key, Math.max(0, to), Integer.MAX_VALUE));
        byte[] lo = stored(key, Math.max(0, from), 0);
        return new Values(state(), items(key, key, lo, hi, from, to, forward, HikvWindowStore::start));
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> windows(
            Bytes keyFrom, Bytes keyTo, long from, long to, boolean forward) {
        if (Keys.isEmpty(keyFrom, keyTo)) {
            return new Peeking<>(state(), () -> null);
        }
        byte[] lo = keyFrom == null ? null : keyFrom.get();
        return new Peeking<>(
            state(),
            items(keyFrom, keyTo, lo, Keys.behindTimes(keyTo), from, to, forward, stored -> {
                long start = start(stored);
                long end = start + windowSize;
                return new Windowed<>(key(stored), new TimeWindow(start, end < 0 ? Long.MAX_VALUE : end));
            }));
    }

    private <K> Supplier<KeyValue<K, byte[]>> items(
            Bytes keyFrom, Bytes keyTo, byte[] lo, byte[] hi, long from, long to, boolean forward,
            Function<byte[], K> key) {
        long earliest = Math.max(from, segments.earliest());
        Predicate<byte[]> accepts = stored -> {
            long start = start(stored);
            return earliest <= start && start <= to && Keys.isWithin(key(stored), keyFrom, keyTo);
        };
        return Peeking.selected(segments.range(earliest, to, lo, hi, forward), accepts, key);
    }

    private static byte[] stored(Bytes key, long start, int duplicate) {
        byte[] bytes = key.get();
        return ByteBuffer.allocate(bytes.length + SUFFIX).put(bytes).putLong(start).putInt(duplicate).array();
    }

    private static Bytes key(byte[] stored) {
        return Bytes.wrap(Arrays.copyOf(stored, stored.length - SUFFIX));
    }

    private static long start(byte[] stored) {
        return ByteBuffer.wrap(stored).getLong(stored.length - SUFFIX);
    }

    /** The values of a key, with the starts of their windows. */
    private static final class Values extends Peeking<Long, byte[]> implements WindowStoreIterator<byte[]> {
        Values(State state, Supplier<KeyValue<Long, byte[]>> source) {
            super(state, source);
        }
    }

    /** A store whose values begin with a timestamp. */
    static final class Timestamped extends HikvWindowStore implements TimestampedBytesStore {
        Timestamped(String name, long retention, long windowSize, boolean retainsDuplicates) {
            super(name, retention, windowSize, retainsDuplicates);
        }
    }

    /** A store whose values begin with headers and a timestamp. */
    static final class WithHeaders extends HikvWindowStore implements TimestampedBytesStore, HeadersBytesStore {
        WithHeaders(String name, long retention, long windowSize, boolean retainsDuplicates) {
            super(name, retention, windowSize, retainsDuplicates);
        }
    }
}
