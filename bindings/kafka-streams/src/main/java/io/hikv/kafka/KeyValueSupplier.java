package io.hikv.kafka;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;

/** A supplier of key-value stores. */
record KeyValueSupplier(String name, Supplier<KeyValueStore<Bytes, byte[]>> maker)
        implements KeyValueBytesStoreSupplier, Supplies<KeyValueStore<Bytes, byte[]>> {}
