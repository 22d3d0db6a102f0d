package io.hikv.kafka;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;

/** Suppliers of single state stores, for {@code Stores.keyValueStoreBuilder} and {@code Materialized.as}. */
public final class HikvStores {
    static final String METRICS_SCOPE = "hikv";

    private HikvStores() {}

    /**
     * Returns a supplier of a key-value store without timestamps.
     *
     * @param name the store's name
     * @return the supplier
     */
    public static KeyValueBytesStoreSupplier keyValueStore(String name) {
        return keyValue(name, () -> new HikvKeyValueStore(name));
    }

    static KeyValueBytesStoreSupplier keyValue(String name, Supplier<KeyValueStore<Bytes, byte[]>> stores) {
        return new KeyValueBytesStoreSupplier() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public KeyValueStore<Bytes, byte[]> get() {
                return stores.get();
            }

            @Override
            public String metricsScope() {
                return METRICS_SCOPE;
            }
        };
    }
}
