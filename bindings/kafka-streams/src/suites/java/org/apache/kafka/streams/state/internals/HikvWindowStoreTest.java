package org.apache.kafka.streams.state.internals;

import static java.time.Duration.ofMillis;

import io.hikv.kafka.HikvStores;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** Kafka's own tests of window stores, on hikv. */
public class HikvWindowStoreTest extends AbstractWindowBytesStoreTest {
    @Override
    <K, V> WindowStore<K, V> buildWindowStore(
            long retention, long size, boolean retainDuplicates, Serde<K> keys, Serde<V> values) {
        return Stores.windowStoreBuilder(
            HikvStores.windowStore("windows", ofMillis(retention), ofMillis(size), retainDuplicates), keys, values)
            .build();
    }
}
