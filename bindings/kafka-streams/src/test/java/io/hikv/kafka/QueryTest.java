package io.hikv.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.query.FailureReason;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.query.WindowKeyQuery;
import org.apache.kafka.streams.query.WindowRangeQuery;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Interactive queries by {@code query}, with and without a position. */
class QueryTest {
    private static final Duration GRACE = Duration.ofSeconds(1);
    private static final PositionBound UNBOUNDED = PositionBound.unbounded();

    @TempDir
    Path dir;

    private TopologyTestDriver driver;

    @BeforeEach
    void count() {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "queries");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, dir.toString());
        settings.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, HikvDslStoreSuppliers.class);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        StreamsBuilder builder = new StreamsBuilder();
        KGroupedStream<String, String> words = builder.<String, String>stream("words").groupByKey();
        words.count(Materialized.as("counts"));
        words.windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMillis(10), GRACE)).count(Materialized.as("windows"));
        words.windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofMillis(5), GRACE))
            .count(Materialized.as("sessions"));
        driver = new TopologyTestDriver(builder.build(settings), settings);
        var input = driver.createInputTopic("words", new StringSerializer(), new StringSerializer());
        input.pipeInput("a", "", 0);
        input.pipeInput("b", "", 1);
        input.pipeInput("a", "", 12);
    }

    @AfterEach
    void close() {
        driver.close();
    }

    @Test
    void keysAndRangesOfKeys() {
        QueryResult<Long> a = query("counts", KeyQuery.withKey("a"), UNBOUNDED);
        assertEquals(2L, a.getResult());
        assertEquals(List.of("a", "b"), keys(query("counts", RangeQuery.<String, Object>withNoBounds(), UNBOUNDED)));
        assertEquals(List.of("b"),
            keys(query("counts", RangeQuery.<String, Object>withLowerBound("aa").withDescendingKeys(), UNBOUNDED)));
    }

    @Test
    void windowsAndSessions() {
        Instant start = Instant.ofEpochMilli(0);
        Instant end = Instant.ofEpochMilli(100);
        assertEquals(List.of(0L, 10L),
            keys(query("windows", WindowKeyQuery.<String, Long>withKeyAndWindowStartRange("a", start, end),
                UNBOUNDED)));
        assertEquals(List.of("[a@0/10]", "[a@10/20]", "[b@0/10]"),
            keys(query("windows", WindowRangeQuery.<String, Long>withWindowStartRange(start, end), UNBOUNDED))
                .stream().map(Object::toString).sorted().toList());
        assertEquals(List.of("[a@0/0]", "[a@12/12]"),
            keys(query("sessions", WindowRangeQuery.<String, Object>withKey("a"), UNBOUNDED)).stream()
                .map(Object::toString).toList());
    }

    @Test
    void aStoreThatHasNotSeenTheRecordSaysSo() {
        Query<Long> a = KeyQuery.withKey("a");
        PositionBound seen = PositionBound.at(Position.emptyPosition().withComponent("words", 0, 2));
        assertTrue(query("counts", a, seen).isSuccess());
        PositionBound unseen = PositionBound.at(Position.emptyPosition().withComponent("words", 0, 3));
        assertEquals(FailureReason.NOT_UP_TO_BOUND, query("counts", a, unseen).getFailureReason());
    }

    private <R> QueryResult<R> query(String name, Query<R> query, PositionBound bound) {
        StateStore store = driver.getAllStateStores().get(name);
        return store.query(query, bound, new QueryConfig(false));
    }

    private static <K> List<K> keys(QueryResult<? extends KeyValueIterator<K, ?>> result) {
        assertTrue(result.isSuccess(), result::toString);
        List<K> keys = new ArrayList<>();
        try (KeyValueIterator<K, ?> items = result.getResult()) {
            items.forEachRemaining(item -> keys.add(item.key));
        }
        return keys;
    }
}
