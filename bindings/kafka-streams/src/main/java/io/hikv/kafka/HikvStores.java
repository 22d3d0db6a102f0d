package io.hikv.kafka;

import java.time.Duration;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/** Suppliers of single state stores, for the builders in {@code Stores} and for {@code Materialized.as}. */
public final class HikvStores {
    private HikvStores() {}

    /**
     * Returns a supplier of a key-value store without timestamps.
     *
     * @param name the store's name
     * @return the supplier
     */
    public static KeyValueBytesStoreSupplier keyValueStore(String name) {
        return new KeyValueSupplier(name, () -> new HikvKeyValueStore(name));
    }

    /**
     * Returns a supplier of a window store without timestamps.
     *
     * @param name the store's name
     * @param retention the time after which windows expire, at least the window's size
     * @param windowSize the size of a window
     * @param retainDuplicates whether a window keeps all values that a key has in it
     * @return the supplier
     */
    public static WindowBytesStoreSupplier windowStore(
            String name, Duration retention, Duration windowSize, boolean retainDuplicates) {
        long kept = notNegative("retention", retention);
        long size = notNegative("windowSize", windowSize);
        if (size > kept) {
            throw new IllegalArgumentException(
                "the retention of " + name + " is " + retention + ", less than the window's size, " + windowSize);
        }
        return new WindowSupplier(name, kept, size, retainDuplicates,
            () -> new HikvWindowStore(name, kept, size, retainDuplicates));
    }

    /**
     * Returns a supplier of a session store.
     *
     * @param name the store's name
     * @param retention the time after which sessions expire
     * @return the supplier
     */
    public static SessionBytesStoreSupplier sessionStore(String name, Duration retention) {
        long kept = notNegative("retention", retention);
        return new SessionSupplier(name, kept, () -> new HikvSessionStore(name, kept));
    }

    private static long notNegative(String name, Duration duration) {
        if (duration.isNegative()) {
            throw new IllegalArgumentException(name + " is " + duration + ", which is negative");
        }
        return duration.toMillis();
    }
}
