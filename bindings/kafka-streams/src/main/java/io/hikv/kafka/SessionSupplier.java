package io.hikv.kafka;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;

/** A supplier of session stores. */
record SessionSupplier(String name, long retentionPeriod, Supplier<SessionStore<Bytes, byte[]>> maker)
        implements SessionBytesStoreSupplier, Supplies<SessionStore<Bytes, byte[]>> {
    @Override
    public long segmentIntervalMs() {
        return Segments.interval(retentionPeriod);
    }
}
