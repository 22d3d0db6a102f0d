package io.hikv.kafka;

import java.util.NoSuchElementException;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.KeyValueIterator;

/** An iterator over the items of a supplier. It ends at null, or when the state is closed; it holds nothing. */
class Peeking<K, V> implements KeyValueIterator<K, V> {
    private final State state;
    private final Supplier<KeyValue<K, V>> source;
    private KeyValue<K, V> ahead;

    Peeking(State state, Supplier<KeyValue<K, V>> source) {
        this.state = state;
        this.source = source;
    }

    /** Returns an iterator over the items whose keys a predicate accepts, with their keys changed. */
    static <K> Peeking<K, byte[]> select(
            State state, Supplier<KeyValue<byte[], byte[]>> items, Predicate<byte[]> accepts, Function<byte[], K> key) {
        return new Peeking<>(state, selected(items, accepts, key));
    }

    /** Returns the source of such an iterator. */
    static <K> Supplier<KeyValue<K, byte[]>> selected(
            Supplier<KeyValue<byte[], byte[]>> items, Predicate<byte[]> accepts, Function<byte[], K> key) {
        return () -> {
            KeyValue<byte[], byte[]> item = items.get();
            while (item != null && !accepts.test(item.key)) {
                item = items.get();
            }
            return item == null ? null : KeyValue.pair(key.apply(item.key), item.value);
        };
    }

    @Override
    public boolean hasNext() {
        if (!state.isOpen()) {
            return false;
        }
        if (ahead == null) {
            try {
                ahead = source.get();
            } catch (InvalidStateStoreException e) {
                // Closed since the question above.
                return false;
            }
        }
        return ahead != null;
    }

    @Override
    public K peekNextKey() {
        return peek().key;
    }

    @Override
    public KeyValue<K, V> next() {
        KeyValue<K, V> item = peek();
        ahead = null;
        return item;
    }

    @Override
    public void close() {
        ahead = null;
    }

    private KeyValue<K, V> peek() {
        if (!hasNext()) {
            throw new NoSuchElementException("the iterator is at its end");
        }
        return ahead;
    }
}
