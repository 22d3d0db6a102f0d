package io.hikv.kafka;

import java.util.function.Supplier;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.StoreSupplier;

/** The part that the suppliers of all kinds of state stores share. */
interface Supplies<S extends StateStore> extends StoreSupplier<S> {
    /** Returns the maker of state stores. */
    Supplier<S> maker();

    @Override
    default S get() {
        return maker().get();
    }

    @Override
    default String metricsScope() {
        return "hikv";
    }
}
