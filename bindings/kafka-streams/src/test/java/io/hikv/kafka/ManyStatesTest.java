package io.hikv.kafka;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A thousand states in one process, which a hundred threads use. */
class ManyStatesTest {
    private static final int THREADS = 100;
    private static final int STATES = 1_000;
    private static final int COMMITS = 5;
    private static final int PUTS = 20;

    private final ExecutorService threads = Executors.newFixedThreadPool(THREADS);

    @TempDir
    Path dir;

    @AfterEach
    void stop() {
        threads.shutdownNow();
    }

    @Test
    void eachStateHoldsItsOwnCommits() throws Exception {
        List<State> states = new ArrayList<>();
        for (int i = 0; i < STATES; i++) {
            states.add(open(i));
        }
        forAll(i -> {
            for (long commit = 1; commit <= COMMITS; commit++) {
                for (int key = 0; key < PUTS; key++) {
                    states.get(i).put(new byte[] {(byte) key}, value(i, commit));
                }
                states.get(i).commit(Map.of(StateTest.PARTITION, commit));
            }
            states.get(i).put(new byte[] {0}, value(i, COMMITS + 1));
            states.get(i).close();
        });
        forAll(i -> {
            try (State state = open(i)) {
                assertEquals((long) COMMITS, state.committedOffset(StateTest.PARTITION), "state " + i);
                for (int key = 0; key < PUTS; key++) {
                    assertArrayEquals(value(i, COMMITS), state.get(new byte[] {(byte) key}), "state " + i);
                }
            }
        });
    }

    private interface Body {
        void run(int state) throws Exception;
    }

    private void forAll(Body body) throws Exception {
        List<Callable<Void>> tasks = new ArrayList<>();
        for (int i = 0; i < STATES; i++) {
            int state = i;
            tasks.add(() -> {
                body.run(state);
                return null;
            });
        }
        for (Future<Void> task : threads.invokeAll(tasks)) {
            task.get();
        }
    }

    private State open(int number) {
        return new State(Mode.AT_LEAST_ONCE, dir.resolve("0_" + number / 4), "store" + number % 4);
    }

    private static byte[] value(int state, long commit) {
        return ByteBuffer.allocate(Integer.BYTES + Long.BYTES).putInt(state).putLong(commit).array();
    }
}
