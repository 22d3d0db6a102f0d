package io.hikv.kafka;

import java.util.NoSuchElementException;
import java.util.function.Supplier;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;

/** An iterator over what a supplier returns until it returns null. It holds nothing that must be released. */
class Peeking<K, V> implements KeyValueIterator<K, V> {
    private final Supplier<KeyValue<K, V>> source;
    private KeyValue<K, V> ahead;

    Peeking(Supplier<KeyValue<K, V>> source) {
        this.source = source;
    }

    @Override
    public boolean hasNext() {
        if (ahead == null) {
            ahead = source.get();
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
