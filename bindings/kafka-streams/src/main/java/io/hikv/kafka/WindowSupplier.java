package io.hikv.kafka;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

/** A supplier of window stores. */
record WindowSupplier(
        String name, long retentionPeriod, long windowSize, boolean retainDuplicates,
        Supplier<WindowStore<Bytes, byte[]>> maker)
        implements WindowBytesStoreSupplier, Supplies<WindowStore<Bytes, byte[]>> {
    @Override
    public long segmentIntervalMs() {
        return Segments.interval(retentionPeriod);
    }
}
