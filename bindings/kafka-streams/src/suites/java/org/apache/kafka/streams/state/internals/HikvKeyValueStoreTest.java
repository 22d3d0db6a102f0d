package org.apache.kafka.streams.state.internals;

import io.hikv.kafka.HikvStores;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Kafka's own tests of key-value stores, on hikv. */
public class HikvKeyValueStoreTest extends AbstractKeyValueStoreTest {
    @Override
    @SuppressWarnings("unchecked")
    protected <K, V> KeyValueStore<K, V> createKeyValueStore(StateStoreContext context) {
        Serde<K> keys = (Serde<K>) context.keySerde();
        Serde<V> values = (Serde<V>) context.valueSerde();
        KeyValueStore<K, V> store =
            Stores.keyValueStoreBuilder(HikvStores.keyValueStore("my-store"), keys, values).build();
        store.init(context, store);
        return store;
    }
}
