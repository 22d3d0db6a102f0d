package io.hikv.kafka;

import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/** State stores of the DSL in hikv, chosen by the setting {@code dsl.store.suppliers.class}. */
public final class HikvDslStoreSuppliers implements DslStoreSuppliers {
    /** Makes the suppliers. */
    public HikvDslStoreSuppliers() {}

    @Override
    public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams params) {
        String name = params.name();
        return switch (params.dslStoreFormat()) {
            case PLAIN -> HikvStores.keyValueStore(name);
            case TIMESTAMPED -> new KeyValueSupplier(name, () -> new HikvKeyValueStore.Timestamped(name));
            case HEADERS -> new KeyValueSupplier(name, () -> new HikvKeyValueStore.WithHeaders(name));
        };
    }

    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
        String name = params.name();
        long retention = params.retentionPeriod().toMillis();
        long size = params.windowSize().toMillis();
        boolean duplicates = params.retainDuplicates();
        // Joins name no format.
        DslStoreFormat format = params.dslStoreFormat() == null ? DslStoreFormat.TIMESTAMPED : params.dslStoreFormat();
        return new WindowSupplier(name, retention, size, duplicates, () -> switch (format) {
            case PLAIN -> new HikvWindowStore(name, retention, size, duplicates);
            case TIMESTAMPED -> new HikvWindowStore.Timestamped(name, retention, size, duplicates);
            case HEADERS -> new HikvWindowStore.WithHeaders(name, retention, size, duplicates);
        });
    }

    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
        String name = params.name();
        long retention = params.retentionPeriod().toMillis();
        return new SessionSupplier(name, retention, () -> params.storeFormat() == DslStoreFormat.HEADERS
            ? new HikvSessionStore.WithHeaders(name, retention)
            : new HikvSessionStore(name, retention));
    }
}
