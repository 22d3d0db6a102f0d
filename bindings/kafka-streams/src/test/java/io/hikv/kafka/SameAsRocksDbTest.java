package io.hikv.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Operators of the DSL give the same results on hikv as on RocksDB, with records that are late and expired. */
class SameAsRocksDbTest {
    private static final Duration SIZE = Duration.ofSeconds(20);
    private static final Duration GRACE = Duration.ofSeconds(30);
    private static final int RECORDS = 2_000;

    @TempDir
    Path dir;

    @ParameterizedTest
    @CsvSource({
        "table", "tableJoin", "hopping", "sliding", "session", "hoppingAtEnd", "slidingAtEnd", "sessionAtEnd", "join",
        "leftJoin",
    })
    void resultsAreThoseOfRocksDb(String operator) {
        for (String format : List.of("default", "headers")) {
            List<String> expected =
                run(operator, format, BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers.class, "rocksdb");
            List<String> found = run(operator, format, HikvDslStoreSuppliers.class, "hikv");
            assertTrue(expected.size() > 100, operator + " has " + expected.size() + " results");
            if (operator.endsWith("AtEnd")) {
                // Windows that end together have no order among themselves.
                Collections.sort(expected);
                Collections.sort(found);
            }
            assertEquals(expected, found, operator + ", " + format);
        }
    }

    private List<String> run(String operator, String format, Class<? extends DslStoreSuppliers> stores, String name) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, name + format);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "none:1");
        settings.put(StreamsConfig.STATE_DIR_CONFIG, dir.toString());
        settings.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, stores);
        settings.put("dsl.store.format", format);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        // At the end of a window, results come at once and not once a second.
        settings.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0L);
        settings.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0L);
        List<String> results = new ArrayList<>();
        Random random = new Random(11);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> in = builder.stream("in");
        results(operator, in).to("out");
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(settings), settings)) {
            var input = driver.createInputTopic("in", new StringSerializer(), new StringSerializer());
            var output = driver.createOutputTopic("out", new StringDeserializer(), new StringDeserializer());
            long now = 1_000_000;
            for (int i = 0; i < RECORDS; i++) {
                now += random.nextInt(3_000);
                // Some records are late, and a few are so late that they are dropped.
                long late = random.nextInt(10) == 0 ? random.nextInt(400_000) : random.nextInt(20_000);
                input.pipeInput("k".repeat(1 + random.nextInt(3)), "v" + i, now - late);
                while (!output.isEmpty()) {
                    results.add(output.readRecord().toString());
                }
            }
        }
        return results;
    }

    private static KStream<String, String> results(String operator, KStream<String, String> in) {
        KGroupedStream<String, String> byKey = in.groupByKey();
        TimeWindows hopping = TimeWindows.ofSizeAndGrace(SIZE, GRACE).advanceBy(SIZE.dividedBy(4));
        SlidingWindows sliding = SlidingWindows.ofTimeDifferenceAndGrace(SIZE, GRACE);
        SessionWindows sessions = SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(3), GRACE);
        EmitStrategy atEnd = EmitStrategy.onWindowClose();
        return switch (operator) {
            case "table" -> text(byKey.count());
            case "tableJoin" -> in.join(in.mapValues(value -> value + "!").toTable(), (a, b) -> a + b);
            case "hopping" -> text(byKey.windowedBy(hopping).count());
            case "sliding" -> text(byKey.windowedBy(sliding).count());
            case "session" -> text(byKey.windowedBy(sessions).count());
            case "hoppingAtEnd" -> text(byKey.windowedBy(hopping).emitStrategy(atEnd).count());
            case "slidingAtEnd" -> text(byKey.windowedBy(sliding).emitStrategy(atEnd).count());
            case "sessionAtEnd" -> text(byKey.windowedBy(sessions).emitStrategy(atEnd).count());
            case "join" -> in.join(in.mapValues(value -> value + "!"), (a, b) -> a + b,
                JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(2), GRACE));
            case "leftJoin" -> in.filter((key, value) -> value.endsWith("3")).leftJoin(
                in.filter((key, value) -> value.endsWith("4")), (a, b) -> a + b,
                JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(2), GRACE));
            default -> throw new IllegalArgumentException(operator);
        };
    }

    private static <K> KStream<String, String> text(KTable<K, Long> table) {
        return table.toStream().map((key, count) -> new KeyValue<>("" + key, "" + count));
    }
}
