package io.hikv.kafka;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.query.Position;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a state holds after it was closed in the middle of its work, in each mode. */
class StateTest {
    static final TopicPartition PARTITION = new TopicPartition("changelog", 0);

    @TempDir
    Path dir;

    @Test
    void writesWaitForTheirCommit() {
        for (Mode mode : Mode.values()) {
            String name = "store" + mode;
            try (State state = open(mode, name)) {
                state.put(bytes("kept"), bytes("1"));
                state.commit(Map.of(PARTITION, 7L));
                state.put(bytes("kept"), bytes("2"));
                state.put(bytes("lost"), bytes("3"));
                assertArrayEquals(bytes("2"), state.get(bytes("kept")));
            }
            try (State state = open(mode, name)) {
                assertEquals(7L, state.committedOffset(PARTITION), name);
                assertArrayEquals(bytes("1"), state.get(bytes("kept")), name);
                assertNull(state.get(bytes("lost")), name);
            }
        }
    }

    @Test
    void theModeIsThatOfTheSettings() {
        Map<String, Object> settings = new HashMap<>(Map.of("enable.transactional.statestores", true));
        assertEquals(Mode.AT_LEAST_ONCE, Mode.of(settings));
        settings.put("processing.guarantee", "exactly_once_v2");
        // Kafka Streams before 4.4.0 ignores the setting.
        assertEquals(Mode.hasTransactions() ? Mode.TRANSACTIONAL : Mode.EXACTLY_ONCE, Mode.of(settings));
        settings.put("enable.transactional.statestores", "false");
        assertEquals(Mode.EXACTLY_ONCE, Mode.of(settings));
    }

    @Test
    void manyWritesAreWrittenEarlyUnlessTheyAreOfATransaction() {
        byte[] value = new byte[1 << 20];
        for (Mode mode : Mode.values()) {
            try (State state = open(mode, "store")) {
                state.commit(Map.of(PARTITION, 7L));
                for (int i = 0; i < 20; i++) {
                    state.put(bytes("key" + i), value);
                }
                boolean waits = mode == Mode.TRANSACTIONAL;
                assertEquals(waits, state.waitingBytes() > State.WAITING_BYTES_MAX, mode.toString());
            }
            try (State state = open(mode, "store")) {
                boolean isWritten = mode == Mode.AT_LEAST_ONCE;
                assertEquals(isWritten, state.get(bytes("key0")) != null, mode.toString());
                // Writes of an unfinished transaction are in the tree: all of it is restored.
                assertEquals(mode == Mode.EXACTLY_ONCE ? null : 7L, state.committedOffset(PARTITION), mode.toString());
                for (int i = 0; i < 20; i++) {
                    state.put(bytes("key" + i), null);
                }
                state.commit(Map.of());
            }
        }
    }

    @Test
    void aCommitWithoutOffsetsRemovesThem() {
        TopicPartition other = new TopicPartition("changelog", 1);
        try (State state = open(Mode.AT_LEAST_ONCE, "store")) {
            state.commit(Map.of(PARTITION, 1L, other, 2L));
            Map<TopicPartition, Long> removed = new HashMap<>();
            removed.put(other, null);
            state.commit(removed);
            assertEquals(1L, state.committedOffset(PARTITION));
            assertNull(state.committedOffset(other));
            state.commit(Map.of());
            assertNull(state.committedOffset(PARTITION));
        }
    }

    @Test
    void thePositionIsThatOfTheCommit() {
        try (State state = open(Mode.AT_LEAST_ONCE, "store")) {
            state.position().withComponent("input", 0, 5);
            state.commit(Map.of(PARTITION, 1L));
            state.position().withComponent("input", 0, 6);
        }
        try (State state = open(Mode.AT_LEAST_ONCE, "store")) {
            assertEquals(Position.emptyPosition().withComponent("input", 0, 5), state.position());
        }
    }

    @Test
    void aTreeWhoseTaskWasDeletedIsDropped() throws Exception {
        try (State state = open(Mode.AT_LEAST_ONCE, "deleted"); State other = open(Mode.AT_LEAST_ONCE, "kept")) {
            state.put(bytes("a"), bytes("1"));
            state.commit(Map.of(PARTITION, 1L));
            other.commit(Map.of(PARTITION, 2L));
        }
        Files.delete(dir.resolve("0_0/hikv/deleted"));
        try (State other = open(Mode.AT_LEAST_ONCE, "kept")) {
            assertEquals(2L, other.committedOffset(PARTITION));
            SharedStore shared = SharedStore.open(dir);
            assertEquals(List.of("0_0/hikv/kept"), shared.trees());
            shared.close();
        }
    }

    /** A process that was killed while it made its store has left a directory without one. */
    @Test
    void aStoreThatWasNotMadeIsMade() throws Exception {
        Files.createDirectory(dir.resolve("state.hikv"));
        try (State state = open(Mode.AT_LEAST_ONCE, "store")) {
            state.commit(Map.of(PARTITION, 1L));
        }
        try (State state = open(Mode.AT_LEAST_ONCE, "store")) {
            assertEquals(1L, state.committedOffset(PARTITION));
        }
    }

    @Test
    void aTaskThatIsDeletedWhileTheProcessRunsBeginsAnew() throws Exception {
        try (State other = open(Mode.AT_LEAST_ONCE, "other")) {
            try (State state = open(Mode.AT_LEAST_ONCE, "store")) {
                state.put(bytes("a"), bytes("1"));
                state.commit(Map.of(PARTITION, 1L));
            }
            Files.delete(dir.resolve("0_0/hikv/store"));
            try (State state = open(Mode.AT_LEAST_ONCE, "store")) {
                assertNull(state.get(bytes("a")));
                assertNull(state.committedOffset(PARTITION));
            }
            assertEquals(0, other.size());
        }
    }

    /** A reader that has found the state open reads on while another thread closes it. */
    @Test
    void aStateThatIsClosedDuringAReadIsReportedAsKafkaStreamsExpectsIt() {
        State state = open(Mode.AT_LEAST_ONCE, "store");
        for (int i = 0; i < 2_000; i++) {
            state.put(bytes("key" + i), bytes("value"));
        }
        state.commit(Map.of());
        var items = state.range(null, null, true);
        var iterator = new Peeking<>(state, () -> {
            state.close();
            for (var item = items.get(); item != null; item = items.get()) {
                // Those of the page that was read before.
            }
            return KeyValue.pair(1, 1);
        });
        assertFalse(iterator.hasNext());
        assertThrows(InvalidStateStoreException.class, () -> state.get(bytes("key1")));
        assertThrows(InvalidStateStoreException.class, () -> state.range(null, null, true));
        assertThrows(InvalidStateStoreException.class, state::size);
    }

    @Test
    void rangesAreThoseOfASortedMap() {
        Random random = new Random(7);
        TreeMap<byte[], byte[]> model = new TreeMap<>(Arrays::compareUnsigned);
        try (State state = open(Mode.AT_LEAST_ONCE, "store")) {
            for (int step = 0; step < 3_000; step++) {
                byte[] key = key(random);
                byte[] value = random.nextInt(3) == 0 ? null : bytes("" + step);
                state.put(key, value);
                if (value == null) {
                    model.remove(key);
                } else {
                    model.put(key, value);
                }
                if (random.nextInt(50) == 0) {
                    state.commit(Map.of(PARTITION, (long) step));
                }
                if (random.nextInt(10) == 0) {
                    byte[] a = key(random);
                    byte[] b = key(random);
                    byte[] lo = Arrays.compareUnsigned(a, b) < 0 ? a : b;
                    byte[] hi = lo == a ? b : a;
                    boolean isForward = random.nextBoolean();
                    var expected = model.subMap(lo, true, hi, false);
                    assertEquals(
                        text((isForward ? expected : expected.descendingMap()).entrySet().stream()
                            .map(item -> KeyValue.pair(item.getKey(), item.getValue())).toList()),
                        text(all(state, lo, hi, isForward)));
                }
                assertArrayEquals(model.get(key), state.get(key));
            }
        }
    }

    private static byte[] key(Random random) {
        byte[] key = new byte[random.nextInt(3)];
        for (int i = 0; i < key.length; i++) {
            key[i] = (byte) random.nextInt(-4, 4);
        }
        return key;
    }

    private static List<KeyValue<byte[], byte[]>> all(State state, byte[] lo, byte[] hi, boolean isForward) {
        List<KeyValue<byte[], byte[]>> items = new ArrayList<>();
        new Peeking<>(state, state.range(lo, hi, isForward)).forEachRemaining(items::add);
        return items;
    }

    private static List<String> text(List<KeyValue<byte[], byte[]>> items) {
        return items.stream().map(item -> Arrays.toString(item.key) + new String(item.value, UTF_8)).toList();
    }

    private State open(Mode mode, String name) {
        return new State(mode, dir.resolve("0_0"), name);
    }

    static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }
}
