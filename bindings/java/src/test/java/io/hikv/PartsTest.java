package io.hikv;

import static io.hikv.Stores.bytes;
import static io.hikv.Stores.text;
import static io.hikv.Stores.texts;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.time.Instant;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Trees, snapshots, transactions, expiry, backups. */
class PartsTest extends WithStore {
    @Test
    void treesHaveTheirOwnKeys() {
        try (Tree jobs = store.tree("jobs"); Tree users = store.tree("users")) {
            jobs.put(bytes("1"), bytes("resize"));
            users.put(bytes("1"), bytes("ann"));
            assertEquals(0, store.size());
            assertEquals("resize", text(jobs.get(bytes("1"))));
            jobs.write(new WriteBatch().delete(bytes("1")).in("users").put(bytes("2"), bytes("bob")));
            assertEquals(0, jobs.size());
            assertEquals(List.of("1=ann", "2=bob"), texts(users.items()));
            assertEquals(List.of("jobs", "users"), store.trees());
            store.swapTrees("jobs", "users");
            assertEquals(2, jobs.size());
            store.renameTree("users", "people");
            store.dropTree("people");
            assertEquals(List.of("jobs"), store.trees());
            assertThrows(HikvException.NoSuchTree.class, () -> users.get(bytes("1")));
            assertThrows(HikvException.NoSuchTree.class, () -> store.existingTree("people"));
            assertThrows(HikvException.TreeExists.class, () -> {
                store.tree("a").close();
                store.renameTree("a", "jobs");
            });
        }
    }

    @Test
    void aSnapshotShowsOneMoment() {
        try (Tree tree = store.tree("tree")) {
            store.put(bytes("a"), bytes("1"));
            tree.put(bytes("b"), bytes("2"));
            try (Snapshot snapshot = store.snapshot()) {
                store.put(bytes("a"), bytes("9"));
                tree.clear();
                assertEquals("1", text(snapshot.get(bytes("a"))));
                assertEquals("2", text(snapshot.get(tree, bytes("b"))));
                assertNull(snapshot.get(bytes("b")));
                assertEquals(List.of("a=1"), texts(snapshot.items(Range.all())));
                assertEquals(List.of("b=2"), texts(snapshot.items(tree, Range.all())));
                Cursor cursor = snapshot.cursor(tree);
                cursor.seekToLast();
                assertEquals("b", text(cursor.key()));
                try (Tree late = store.tree("late")) {
                    assertThrows(HikvException.NoSuchTree.class, () -> snapshot.get(late, bytes("b")));
                }
            }
            assertEquals(List.of(), texts(tree.items()));
        }
    }

    @Test
    void aTransactionIsOneStep() {
        try (Tree tree = store.tree("tree")) {
            store.put(bytes("left"), bytes("1"));
            int result = store.transact(tx -> {
                tx.put(tree, bytes("right"), tx.get(bytes("left")));
                tx.delete(bytes("left"));
                assertNull(tx.get(bytes("left")));
                assertEquals(List.of("right=1"), texts(tx.items(tree, Range.all())));
                assertFalse(tree.contains(bytes("right")));
                return 7;
            });
            assertEquals(7, result);
            assertEquals(List.of("right=1"), texts(tree.items()));
            assertEquals(0, store.size());
        }
    }

    @Test
    void aBodyThatThrowsWritesNothing() {
        IllegalStateException thrown = assertThrows(IllegalStateException.class, () -> store.transact(tx -> {
            tx.put(bytes("a"), bytes("1"));
            throw new IllegalStateException("no");
        }));
        assertEquals("no", thrown.getMessage());
        assertEquals(0, store.size());
    }

    @Test
    void aConflictRunsTheBodyAgain() {
        store.put(bytes("a"), bytes("1"));
        int[] runs = {0};
        store.transact(tx -> {
            String found = text(tx.get(bytes("a")));
            if (runs[0]++ == 0) {
                store.put(bytes("a"), bytes("2"));
            }
            tx.put(bytes("b"), bytes(found));
            return null;
        });
        assertEquals(2, runs[0]);
        assertEquals("2", text(store.get(bytes("b"))));
        assertThrows(HikvException.Contended.class, () -> store.transact(3, tx -> {
            tx.get(bytes("a"));
            store.increment(bytes("a"), 1);
            tx.put(bytes("b"), bytes("x"));
            return null;
        }));
        assertEquals("5", text(store.get(bytes("a"))));
        assertEquals("2", text(store.get(bytes("b"))));
        Transaction own = store.begin();
        own.get(bytes("a"));
        own.check();
        store.put(bytes("a"), bytes("0"));
        assertThrows(HikvException.Conflict.class, own::check);
        own.put(bytes("b"), bytes("x"));
        assertThrows(HikvException.Conflict.class, own::commit);
        assertThrows(ClosedException.class, own::commit);
        assertThrows(ClosedException.class, () -> own.get(bytes("a")));
        own.close();
    }

    @Test
    void aLimitedRangeOfATransactionReadsNoFurther() {
        for (long limit = 1; limit <= 2; limit++) {
            for (String job : List.of("1", "2", "3")) {
                store.put(bytes(job), bytes("job"));
            }
            try (Transaction tx = store.begin()) {
                Iterator<Item> items = tx.items(Range.all().limit(limit)).iterator();
                assertEquals("1", text(items.next().key()));
                store.delete(bytes("2"));
                tx.delete(bytes("1"));
                if (limit == 1) {
                    tx.commit();
                } else {
                    assertThrows(HikvException.Conflict.class, tx::commit);
                }
            }
        }
    }

    @Test
    void transfersKeepTheSum() throws Exception {
        int accounts = 8;
        int threads = 4;
        for (int account = 0; account < accounts; account++) {
            store.put(bytes("" + account), bytes("100"));
        }
        CyclicBarrier start = new CyclicBarrier(threads);
        List<Thread> running = IntStream.range(0, threads).mapToObj(number -> new Thread(() -> {
            try {
                start.await();
            } catch (Exception e) {
                throw new AssertionError(e);
            }
            for (int i = 0; i < 200; i++) {
                byte[] from = bytes("" + (i + number) % accounts);
                byte[] to = bytes("" + (i * 3 + 1) % accounts);
                store.transact(tx -> {
                    tx.put(from, bytes("" + (Integer.parseInt(text(tx.get(from))) - 1)));
                    tx.put(to, bytes("" + (Integer.parseInt(text(tx.get(to))) + 1)));
                    return null;
                });
            }
        })).toList();
        running.forEach(Thread::start);
        for (Thread thread : running) {
            thread.join();
        }
        int sum = 0;
        for (Item item : store.items()) {
            sum += Integer.parseInt(text(item.value()));
        }
        assertEquals(100 * accounts, sum);
    }

    @Test
    void keysExpire() {
        store.put(bytes("past"), bytes("1"));
        store.write(new WriteBatch().put(bytes("past"), bytes("1"), Instant.now().minusSeconds(1)));
        assertNull(store.get(bytes("past")));
        store.write(new WriteBatch().put(bytes("future"), bytes("1"), Instant.now().plusSeconds(1000)));
        store.put(bytes("later"), bytes("1"), Duration.ofHours(1));
        assertEquals("1", text(store.get(bytes("later"))));
        store.put(bytes("soon"), bytes("1"), Duration.ofMillis(1));
        while (store.contains(bytes("soon"))) {
            Thread.onSpinWait();
        }
        assertEquals(List.of("future=1", "later=1"), texts(store.items()));
        assertThrows(IllegalArgumentException.class, () -> store.put(bytes("a"), bytes("1"), Duration.ZERO));
    }

    @Test
    void aBackupIsAStore() {
        store.put(bytes("a"), bytes("1"));
        try (Tree tree = store.tree("tree")) {
            tree.put(bytes("b"), bytes("2"));
        }
        store.sync();
        store.backup(dir.resolve("copy"));
        store.put(bytes("a"), bytes("9"));
        try (Store copy = Store.open(dir.resolve("copy"), new Options().readOnly(true))) {
            assertEquals("1", text(copy.get(bytes("a"))));
            assertEquals("2", text(copy.existingTree("tree").get(bytes("b"))));
            assertThrows(HikvException.ReadOnly.class, () -> copy.put(bytes("a"), bytes("1")));
        }
        assertTrue(store.stats().startsWith("{"), store.stats());
    }
}
