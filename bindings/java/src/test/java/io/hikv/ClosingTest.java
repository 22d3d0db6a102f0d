package io.hikv;

import static io.hikv.Stores.bytes;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Closing next to calls of other threads: each call has its result or a {@link ClosedException}. A crash ends the whole
 * run.
 */
class ClosingTest {
    private static final int READERS = 8;
    private static final byte[] KEY = bytes("key");
    private static final byte[] VALUE = new byte[300];

    private Path dir;

    @BeforeEach
    void makeDir() throws Exception {
        dir = Stores.inMemory();
    }

    @AfterEach
    void deleteDir() throws Exception {
        Stores.delete(dir);
    }

    /** A store with all kinds of handles. */
    private static final class Opened {
        final Store store;
        final Tree tree;
        final Snapshot snapshot;
        final Transaction transaction;

        Opened(Path dir) {
            store = Store.open(dir, new Options().durability(Durability.PROCESS));
            store.put(KEY, VALUE);
            tree = store.tree("tree");
            tree.put(KEY, VALUE);
            snapshot = store.snapshot();
            transaction = store.begin();
        }

        /** Makes a call of the kind with this number. */
        void call(int kind) {
            switch (kind) {
                case 0 -> assertArrayEquals(VALUE, store.get(KEY));
                case 1 -> assertArrayEquals(VALUE, tree.get(KEY));
                case 2 -> assertArrayEquals(VALUE, snapshot.get(tree, KEY));
                case 3 -> assertArrayEquals(VALUE, transaction.get(tree, KEY));
                case 4 -> assertArrayEquals(VALUE, tree.items().iterator().next().value());
                case 5 -> store.put(KEY, VALUE);
                case 6 -> assertNull(store.transact(tx -> tx.get(tree, bytes("absent"))));
                default -> {
                    try (Snapshot other = store.snapshot(); Tree again = store.tree("tree")) {
                        assertArrayEquals(VALUE, other.get(again, KEY));
                    }
                }
            }
        }

        /** Closes the handles that the bits name, then the store. */
        void close(int bits) {
            if ((bits & 1) != 0) {
                tree.close();
            }
            if ((bits & 2) != 0) {
                snapshot.close();
            }
            if ((bits & 4) != 0) {
                transaction.commit();
            }
            store.close();
        }
    }

    @Test
    void closeWaitsForEightReaders() throws Exception {
        int rounds = Stores.isSlice() ? 150 : 10_000;
        Opened[] current = new Opened[1];
        CyclicBarrier barrier = new CyclicBarrier(READERS + 1);
        AtomicLong calls = new AtomicLong();
        ExecutorService threads = Executors.newFixedThreadPool(READERS);
        List<Future<?>> readers = IntStream.range(0, READERS).<Future<?>>mapToObj(kind -> threads.submit(() -> {
            for (int round = 0; round < rounds; round++) {
                barrier.await();
                Opened opened = current[0];
                try {
                    while (true) {
                        opened.call(kind);
                        calls.incrementAndGet();
                    }
                } catch (ClosedException e) {
                    barrier.await();
                }
            }
            return null;
        })).toList();
        Random random = new Random(7);
        for (int round = 0; round < rounds; round++) {
            current[0] = new Opened(dir);
            int spins = random.nextInt(3000);
            barrier.await();
            for (int i = 0; i < spins; i++) {
                Thread.onSpinWait();
            }
            current[0].close(random.nextInt(8));
            barrier.await();
        }
        for (Future<?> reader : readers) {
            reader.get();
        }
        threads.shutdown();
        assertEquals(1, Math.min(1, calls.get()), "no call had a result");
    }

    @Test
    void twoThreadsMayCloseAStore() throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(2);
        for (int round = 0; round < (Stores.isSlice() ? 20 : 200); round++) {
            Opened opened = new Opened(dir);
            CyclicBarrier barrier = new CyclicBarrier(2);
            List<Future<?>> closers = IntStream.range(0, 2).<Future<?>>mapToObj(number -> threads.submit(() -> {
                barrier.await();
                opened.store.close();
                // Whichever closes first, the store is closed for both.
                return null;
            })).toList();
            for (Future<?> closer : closers) {
                closer.get();
            }
        }
        threads.shutdown();
        Store.open(dir, new Options().create(false)).close();
    }

    @Test
    void anInterruptDoesNotEndClose() {
        Opened opened = new Opened(dir);
        Thread.currentThread().interrupt();
        opened.store.close();
        assertEquals(true, Thread.interrupted());
        Store.open(dir).close();
    }

    @Test
    void aMillionIteratorsHoldNothing() {
        try (Store store = Stores.open(dir)) {
            for (int key = 0; key < 100; key++) {
                store.put(bytes("" + key), VALUE);
            }
            int count = Stores.isSlice() ? 50_000 : 1_000_000;
            for (int i = 0; i < count; i++) {
                store.items().iterator().next();
            }
        }
    }

    @Test
    void manyThreadsShareTheMemoryOfCalls() throws Exception {
        try (Store store = Stores.open(dir)) {
            List<Thread> threads = new ArrayList<>();
            AtomicLong equal = new AtomicLong();
            for (int number = 0; number < 400; number++) {
                byte[] key = bytes("key " + number);
                int len = number * 100;
                threads.add(started(number % 2 == 0, () -> {
                    for (int i = 0; i < 50; i++) {
                        byte[] value = new byte[len + i];
                        Arrays.fill(value, (byte) i);
                        store.put(key, value);
                        equal.addAndGet(Arrays.equals(value, store.get(key)) ? 1 : 0);
                    }
                }));
            }
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(400 * 50, equal.get());
            assertEquals(400, store.size());
        }
    }

    /** Starts a thread; a virtual one, if that is wanted and Java has them. */
    private static Thread started(boolean isVirtual, Runnable body) throws Exception {
        if (isVirtual && Runtime.version().feature() >= 21) {
            return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, body);
        }
        Thread thread = new Thread(body);
        thread.start();
        return thread;
    }
}
