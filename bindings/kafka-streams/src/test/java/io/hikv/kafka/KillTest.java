package io.hikv.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A process that commits is killed. Each state's offset and items must then be of the same commit. */
class KillTest {
    private static final int STATES = 3;
    private static final int KEYS = 20;
    private static final int ROUNDS = 8;
    private static final TopicPartition PARTITION = StateTest.PARTITION;

    @TempDir
    Path dir;

    @Test
    void offsetsAndItemsAreOfOneCommit() throws Exception {
        long acknowledged = 0;
        for (int round = 0; round < ROUNDS; round++) {
            acknowledged = runAndKill("commit", new Random(round).nextInt(50, 500));
            assertEquals(List.of(), torn(), "round " + round);
            try (State state = open(dir, 0)) {
                long offset = state.committedOffset(PARTITION);
                assertTrue(offset >= acknowledged, "commit " + acknowledged + " was lost: the offset is " + offset);
            }
        }
    }

    /** A broken variant, which writes an offset after its items, must be noticed in one of the rounds. */
    @Test
    void offsetsThatAreWrittenAloneAreFound() throws Exception {
        List<String> torn = List.of();
        for (int round = 0; round < 4 * ROUNDS && torn.isEmpty(); round++) {
            runAndKill("alone", 200 + round);
            torn = torn();
        }
        assertTrue(!torn.isEmpty(), "the variant passed");
    }

    /** Runs the writer until it has reported some commits, and kills it. Returns the last that it reported. */
    private long runAndKill(String way, int commits) throws Exception {
        List<String> command = new ArrayList<>(List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp",
            System.getProperty("java.class.path"), KillTest.class.getName(), dir.toString(), way));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        long last = 0;
        try (BufferedReader lines = process.inputReader()) {
            for (int i = 0; i < commits; i++) {
                last = Long.parseLong(lines.readLine());
            }
            process.destroyForcibly();
            process.waitFor();
        }
        return last;
    }

    /** Returns the differences between items and offsets. */
    private List<String> torn() {
        List<String> torn = new ArrayList<>();
        for (int i = 0; i < STATES; i++) {
            try (State state = open(dir, i)) {
                Long offset = state.committedOffset(PARTITION);
                for (int key = 0; key < KEYS; key++) {
                    byte[] value = state.get(new byte[] {(byte) key});
                    Long found = value == null ? null : (Long) ByteBuffer.wrap(value).getLong();
                    if (!Objects.equals(found, offset)) {
                        torn.add("state " + i + ", key " + key + ": " + found + " at offset " + offset);
                    }
                }
            }
        }
        return torn;
    }

    private static State open(Path dir, int number) {
        return new State(Mode.AT_LEAST_ONCE, dir.resolve("0_" + number), "store");
    }

    /** Commits for ever. Each commit puts the number of the commit under all keys, and has it as its offset. */
    public static void main(String[] args) {
        List<State> states = new ArrayList<>();
        for (int i = 0; i < STATES; i++) {
            states.add(open(Path.of(args[0]), i));
        }
        Long offset = states.get(0).committedOffset(PARTITION);
        for (long commit = offset == null ? 1 : offset + 1;; commit++) {
            for (State state : states) {
                byte[] value = ByteBuffer.allocate(Long.BYTES).putLong(commit).array();
                for (int key = 0; key < KEYS; key++) {
                    state.put(new byte[] {(byte) key}, value);
                }
                if (args[1].equals("alone")) {
                    Map<TopicPartition, Long> kept = new HashMap<>();
                    kept.put(new TopicPartition("none", 0), null);
                    state.commit(kept);
                }
                state.commit(Map.of(PARTITION, commit));
            }
            System.out.println(commit);
        }
    }
}
