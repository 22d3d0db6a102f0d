package io.hikv.kafka;

import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
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
            case TIMESTAMPED -> HikvStores.keyValue(name, () -> new HikvKeyValueStore.Timestamped(name));
            case HEADERS -> HikvStores.keyValue(name, () -> new HikvKeyValueStore.WithHeaders(name));
        };
    }

    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams params) {
        return BuiltInDslStoreSuppliers.ROCKS_DB.windowStore(params);
    }

    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams params) {
        return BuiltInDslStoreSuppliers.ROCKS_DB.sessionStore(params);
    }
}
