package io.hikv;

import static io.hikv.Stores.bytes;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.AbstractCollection;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Arguments and calls that are refused, with a text that names the cause. */
class RefusalsTest extends WithStore {
    private static final byte[] A = bytes("a");

    private static void refused(Class<? extends Exception> kind, String text, Executable call) {
        Exception e = assertThrows(kind, call);
        assertTrue(e.getMessage().contains(text), () -> "'" + e.getMessage() + "' does not contain '" + text + "'");
    }

    /** A set that another thread changes may count other keys than it returns. */
    @Test
    void aCollectionWithAWrongSizeIsReadAsItsIteratorReturnsIt() {
        store.put(A, A);
        for (int size : new int[] {0, 1 << 20}) {
            List<byte[]> found = store.getAll(new AbstractCollection<>() {
                @Override
                public Iterator<byte[]> iterator() {
                    return List.of(A, bytes("b")).iterator();
                }

                @Override
                public int size() {
                    return size;
                }
            });
            assertEquals(2, found.size());
            assertArrayEquals(A, found.get(0));
            assertNull(found.get(1));
        }
    }

    @Test
    void nullIsNamed() {
        refused(NullPointerException.class, "key", () -> store.get(null));
        refused(NullPointerException.class, "buffer", () -> store.get(A, null));
        refused(NullPointerException.class, "key", () -> store.put(null, A));
        refused(NullPointerException.class, "value", () -> store.put(A, (byte[]) null));
        refused(NullPointerException.class, "key", () -> store.delete(null));
        refused(NullPointerException.class, "key", () -> store.getAll(Arrays.asList(A, null)));
        refused(NullPointerException.class, "key", () -> new WriteBatch().delete(null));
        refused(NullPointerException.class, "value", () -> new WriteBatch().put(A, null));
        refused(NullPointerException.class, "key", () -> Range.all().from(null));
        refused(NullPointerException.class, "range", () -> store.items(null));
        refused(NullPointerException.class, "tree", () -> store.transact(tx -> tx.get(null, A)));
        refused(NullPointerException.class, "engine", () -> new Options().engine(null));
        assertEquals(0, store.size());
        store.put(A, A);
    }

    @Test
    void sizesAndNumbersAreNamed() {
        byte[] key = new byte[65_536];
        refused(IllegalArgumentException.class, "65536", () -> store.put(key, A));
        refused(IllegalArgumentException.class, "65536", () -> store.write(new WriteBatch().put(key, A)));
        refused(IllegalArgumentException.class, "-1", () -> new Options().regionBytesMax(-1));
        refused(IllegalArgumentException.class, "-2", () -> new Options().backgroundThreads(-2));
        refused(IllegalArgumentException.class, "-3", () -> Range.all().limit(-3));
        refused(IllegalArgumentException.class, "0", () -> store.transact(0, tx -> null));
        refused(IllegalArgumentException.class, "PT0S", () -> new Options().syncInterval(Duration.ZERO));
        refused(IllegalArgumentException.class, "1969", 
                () -> new WriteBatch().put(A, A, Instant.parse("1969-01-01T00:00:00Z")));
        store.put(A, bytes("text"));
        refused(IllegalArgumentException.class, "", () -> store.increment(A, 1));
        refused(IllegalArgumentException.class, "", () -> store.tree(""));
        assertEquals(1, store.size());
    }

    /** Half of a character has no bytes of its own, and would name another tree. */
    @Test
    void textThatIsNotUnicodeIsNamed() {
        store.tree("?").close();
        refused(IllegalArgumentException.class, "\uD800", () -> store.tree("\uD800"));
        refused(IllegalArgumentException.class, "\uD800", () -> store.dropTree("\uD800"));
        refused(IllegalArgumentException.class, "\uD800", () -> new WriteBatch().in("\uD800"));
        refused(NullPointerException.class, "name", () -> store.tree(null));
        assertEquals(List.of("?"), store.trees());
    }

    @Test
    void aPathThatJavaCannotDecodeIsRefused() throws Exception {
        Path parent = Files.createDirectory(dir.resolve("parent"));
        new ProcessBuilder("sh", "-c", "mkdir \"$(printf 'd\\377')\"").directory(parent.toFile()).start().waitFor();
        try (Stream<Path> found = Files.list(parent)) {
            Path undecoded = found.findFirst().orElseThrow();
            refused(IllegalArgumentException.class, "cannot decode", () -> Stores.open(undecoded));
            refused(IllegalArgumentException.class, "cannot decode", () -> store.backup(undecoded.resolve("copy")));
        }
        try (Stream<Path> found = Files.list(parent)) {
            assertEquals(1, found.count());
        }
    }

    @Test
    void pathsAndOptionsAreNamed() throws Exception {
        Path file = Files.writeString(dir.resolve("file"), "text");
        refused(HikvException.class, "file", () -> Store.open(file));
        refused(HikvException.Missing.class, "none",
                () -> Store.open(dir.resolve("none"), new Options().create(false)));
        refused(HikvException.Locked.class, "store", () -> Stores.open(dir.resolve("store")));
        refused(HikvException.Unusable.class, "", () -> {
            Store.open(dir.resolve("ink"), new Options().engine(Engine.INK)).close();
            Store.open(dir.resolve("ink"), new Options().engine(Engine.PMEKV)).close();
        });
        try (Store hash = Store.open(dir.resolve("hash"), new Options().engine(Engine.REWO_HASH))) {
            refused(HikvException.Unsupported.class, "", () -> hash.items().iterator().hasNext());
            refused(HikvException.Unsupported.class, "", hash::snapshot);
        }
    }

    @Test
    void whatIsClosedRefusesCalls() {
        Tree tree = store.tree("tree");
        Snapshot snapshot = store.snapshot();
        Transaction tx = store.begin();
        store.put(A, A);
        Iterator<Item> items = store.items().iterator();
        Cursor cursor = store.cursor();
        Ticket ticket = store.writeDeferred(new WriteBatch().put(A, A));
        Tree closedTree = store.tree("closed");
        closedTree.close();
        refused(ClosedException.class, "tree is closed", () -> closedTree.get(A));
        refused(ClosedException.class, "tree is closed", () -> tx.get(closedTree, A));
        Snapshot closedSnapshot = store.snapshot();
        closedSnapshot.close();
        closedSnapshot.close();
        refused(ClosedException.class, "snapshot is closed", () -> closedSnapshot.get(A));

        store.close();
        store.close();
        refused(ClosedException.class, "store is closed", () -> store.get(A));
        refused(ClosedException.class, "store is closed", () -> store.put(A, A));
        refused(ClosedException.class, "store is closed", () -> store.write(new WriteBatch()));
        refused(ClosedException.class, "store is closed", store::snapshot);
        refused(ClosedException.class, "store is closed", store::begin);
        refused(ClosedException.class, "store is closed", () -> store.tree("x"));
        refused(ClosedException.class, "store is closed", items::hasNext);
        refused(ClosedException.class, "store is closed", cursor::seekToFirst);
        refused(ClosedException.class, "store is closed", ticket::await);
        refused(ClosedException.class, "tree is closed", () -> tree.get(A));
        refused(ClosedException.class, "snapshot is closed", () -> snapshot.get(A));
        refused(ClosedException.class, "transaction is closed", () -> tx.get(A));
        refused(ClosedException.class, "transaction is closed", tx::commit);
        tree.close();
        snapshot.close();
        tx.close();
    }

    @Test
    void aTransactionTakesNoTreeOfAnotherStore() {
        try (Store other = Stores.open(dir.resolve("other")); Snapshot snapshot = store.snapshot()) {
            store.put(A, A);
            refused(IllegalArgumentException.class, "another store", () -> store.transact(tx -> tx.get(other, A)));
            refused(IllegalArgumentException.class, "another store", () -> snapshot.get(other.tree("tree"), A));
            assertThrows(IllegalArgumentException.class, () -> snapshot.items(other, Range.all()).iterator().hasNext());
        }
        // Nothing waits for the refused calls.
        store.close();
    }

    @Test
    void aBodyMayCloseItsStore() {
        assertThrows(ClosedException.class, () -> store.transact(tx -> {
            tx.put(A, A);
            store.close();
            return null;
        }));
        store = Stores.open(dir.resolve("store"));
        assertEquals(0, store.size());
    }

    @Test
    void aStoreThatIsUnreachableIsClosed() {
        Path place = dir.resolve("left");
        leave(place);
        try (Store again = openedOnceCollected(place)) {
            assertEquals(1, again.size());
        }
    }

    private static Store openedOnceCollected(Path place) {
        for (int attempt = 0; attempt < 1000; attempt++) {
            System.gc();
            try {
                return Stores.open(place);
            } catch (HikvException.Locked e) {
                Thread.onSpinWait();
            }
        }
        throw new AssertionError("the store was not closed by the collector");
    }

    private static void leave(Path place) {
        Store left = Stores.open(place);
        left.snapshot();
        left.begin();
        left.tree("tree").put(A, A);
        left.put(A, A);
    }

    @Test
    void anIteratorKeepsItsSnapshotOpen() {
        for (int key = 0; key < 1000; key++) {
            store.put(bytes(String.format("%04d", key)), new byte[100]);
        }
        int count = 0;
        for (Item item : store.snapshot().items(Range.all())) {
            if (count++ % 100 == 0) {
                System.gc();
            }
            assertEquals(100, item.value().length);
        }
        assertEquals(1000, count);
    }

    @Test
    void aTreeKeepsItsStoreOpen() {
        Path place = dir.resolve("kept");
        useTree(Stores.open(place).tree("tree"));
        openedOnceCollected(place).close();
    }

    private static void useTree(Tree tree) {
        tree.put(A, A);
        for (int i = 0; i < 5; i++) {
            System.gc();
        }
        assertEquals(List.of("a=a"), Stores.texts(tree.items()));
    }
}
