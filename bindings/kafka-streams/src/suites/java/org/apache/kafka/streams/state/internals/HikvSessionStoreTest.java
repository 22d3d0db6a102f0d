package org.apache.kafka.streams.state.internals;

import static java.time.Duration.ofMillis;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hikv.kafka.HikvStores;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.junit.jupiter.api.Test;

/** Kafka's own tests of session stores, on hikv. */
public class HikvSessionStoreTest extends AbstractSessionBytesStoreTest {
    @Override
    <K, V> SessionStore<K, V> buildSessionStore(long retention, Serde<K> keys, Serde<V> values) {
        return Stores.sessionStoreBuilder(HikvStores.sessionStore("sessions", ofMillis(retention)), keys, values)
            .build();
    }

    /** The kind whose features hikv has: it finds sessions by time alone, and keeps them for the retention. */
    @Override
    StoreType storeType() {
        return StoreType.RocksDBTimeOrderedSessionStoreWithIndex;
    }

    /** Kafka's test uses a store after closing it. On hikv that is an error, so this opens the store again. */
    @Test
    @Override
    public void shouldRestore() {
        List<KeyValue<byte[], byte[]>> changelog = new ArrayList<>();
        for (long time : new long[] {0, 10, 100, 1000}) {
            byte[] key = SessionKeySchema.toBinary(Bytes.wrap("a".getBytes()), time, time).get();
            changelog.add(KeyValue.pair(key, Serdes.Long().serializer().serialize("", time)));
            sessionStore.put(new Windowed<>("a", new SessionWindow(time, time)), time);
        }
        sessionStore.close();
        assertThrows(InvalidStateStoreException.class, () -> sessionStore.fetch("a"));
        sessionStore.init(context, sessionStore);
        assertFalse(sessionStore.fetch("a").hasNext(), "nothing was committed");
        context.restore(sessionStore.name(), changelog);
        List<Long> values = new ArrayList<>();
        sessionStore.fetch("a").forEachRemaining(item -> values.add(item.value));
        assertEquals(List.of(0L, 10L, 100L, 1000L), values);
    }
}
