package io.hikv.kafka;

import java.util.List;
import java.util.Objects;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;

/** A key-value store in a tree. */
class HikvKeyValueStore extends HikvStateStore implements KeyValueStore<Bytes, byte[]> {
    HikvKeyValueStore(String name) {
        super(name);
    }

    @Override
    void restore(byte[] key, byte[] value) {
        state().put(key, value);
    }

    @Override
    public byte[] get(Bytes key) {
        return state().get(Objects.requireNonNull(key, "the key is null").get());
    }

    @Override
    public void put(Bytes key, byte[] value) {
        state().put(Objects.requireNonNull(key, "the key is null").get(), value);
        advancePosition();
    }

    @Override
    public byte[] putIfAbsent(Bytes key, byte[] value) {
        byte[] old = get(key);
        if (old == null && value != null) {
            put(key, value);
        }
        return old;
    }

    @Override
    public void putAll(List<KeyValue<Bytes, byte[]>> entries) {
        entries.forEach(entry -> put(entry.key, entry.value));
    }

    @Override
    public byte[] delete(Bytes key) {
        byte[] old = get(key);
        put(key, null);
        return old;
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        return range(from, to, true);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        return range(from, to, false);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        return range(null, null, true);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseAll() {
        return range(null, null, false);
    }

    @Override
    public <PS extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(P prefix, PS serializer) {
        byte[] lo = serializer.serialize(null, prefix);
        return items(lo, Keys.behindPrefix(lo), true);
    }

    @Override
    public long approximateNumEntries() {
        return state().size();
    }

    private KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to, boolean forward) {
        if (Keys.isEmpty(from, to)) {
            return new Peeking<>(state(), () -> null);
        }
        return items(from == null ? null : from.get(), to == null ? null : Keys.behind(to.get()), forward);
    }

    private KeyValueIterator<Bytes, byte[]> items(byte[] lo, byte[] hi, boolean forward) {
        State open = state();
        return Peeking.select(open, open.range(lo, hi, forward), key -> true, Bytes::wrap);
    }

    /** A store whose values begin with a timestamp. */
    static final class Timestamped extends HikvKeyValueStore implements TimestampedBytesStore {
        Timestamped(String name) {
            super(name);
        }
    }

    /** A store whose values begin with headers and a timestamp. */
    static final class WithHeaders extends HikvKeyValueStore implements HeadersBytesStore {
        WithHeaders(String name) {
            super(name);
        }
    }
}
