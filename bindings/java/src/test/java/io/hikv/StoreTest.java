package io.hikv;

import static io.hikv.Stores.bytes;
import static io.hikv.Stores.text;
import static io.hikv.Stores.texts;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.List;
import java.util.NoSuchElementException;
import org.junit.jupiter.api.Test;

/** The keys of a store. */
class StoreTest extends WithStore {
    @Test
    void valuesAreReadAsTheyWereWritten() {
        assertNull(store.get(bytes("a")));
        store.put(bytes("a"), bytes("1"));
        store.put(bytes(""), bytes(""));
        assertArrayEquals(bytes("1"), store.get(bytes("a")));
        assertArrayEquals(bytes(""), store.get(bytes("")));
        assertTrue(store.contains(bytes("a")));
        assertFalse(store.contains(bytes("b")));
        assertEquals(2, store.size());
        assertTrue(store.delete(bytes("a")));
        assertFalse(store.delete(bytes("a")));
        assertNull(store.get(bytes("a")));
    }

    @Test
    void longValuesDoNotFitIntoACallsFirstMemory() {
        for (int len : new int[] {4096, 16 << 10, 100_000, 5 << 20}) {
            byte[] value = new byte[len];
            Arrays.fill(value, (byte) len);
            value[len - 1] = 7;
            store.put(bytes("long"), value);
            assertArrayEquals(value, store.get(bytes("long")));
            byte[] part = new byte[100];
            assertEquals(len, store.get(bytes("long"), part));
            assertArrayEquals(Arrays.copyOf(value, 100), part);
            assertArrayEquals(value, store.items(Range.all()).iterator().next().value());
        }
    }

    @Test
    void valuesAreCopiedIntoABuffer() {
        store.put(bytes("a"), bytes("123"));
        byte[] out = new byte[5];
        assertEquals(3, store.get(bytes("a"), out));
        assertArrayEquals(new byte[] {'1', '2', '3', 0, 0}, out);
        assertEquals(-1, store.get(bytes("b"), out));
    }

    @Test
    void rangesHaveBoundsDirectionsAndLimits() {
        for (String key : List.of("a", "b1", "b2", "b3", "c")) {
            store.put(bytes(key), bytes(key.toUpperCase()));
        }
        assertEquals(List.of("a=A", "b1=B1", "b2=B2", "b3=B3", "c=C"), texts(store.items()));
        assertEquals(List.of("b1=B1", "b2=B2", "b3=B3"), texts(store.items(Range.prefix(bytes("b")))));
        assertEquals(List.of("b2=B2", "b3=B3"), texts(store.items(Range.between(bytes("b2"), bytes("c")))));
        assertEquals(List.of("b3=B3", "b2=B2"), texts(store.items(Range.between(bytes("b2"), bytes("c")).reversed())));
        assertEquals(List.of("b3=B3", "c=C"), texts(store.items(Range.all().after(bytes("b2")).through(bytes("c")))));
        assertEquals(List.of("c=", "b3="), texts(store.items(Range.all().reversed().keysOnly().limit(2))));
        assertEquals(List.of(), texts(store.items(Range.all().limit(0))));
        assertEquals(List.of(), texts(store.items(Range.between(bytes("c"), bytes("a")))));
    }

    @Test
    void aPrefixThatCannotGrowHasNoEnd() {
        byte[] key = {(byte) 0xff, (byte) 0xff, 1};
        store.put(key, bytes("v"));
        assertEquals(1, texts(store.items(Range.prefix(new byte[] {(byte) 0xff, (byte) 0xff}))).size());
        assertEquals(0, texts(store.items(Range.prefix(new byte[] {(byte) 0xfe, (byte) 0xff}))).size());
        assertEquals(1, texts(store.items(Range.prefix(new byte[0]))).size());
    }

    @Test
    void aScanGoesOverManyPages() {
        WriteBatch batch = new WriteBatch();
        for (int key = 0; key < 5000; key++) {
            batch.put(bytes(String.format("%05d", key)), new byte[key % 300]);
        }
        store.write(batch);
        for (boolean isReversed : new boolean[] {false, true}) {
            int count = 0;
            for (Item item : store.items(isReversed ? Range.all().reversed() : Range.all())) {
                int key = isReversed ? 4999 - count : count;
                assertEquals(String.format("%05d", key), text(item.key()));
                assertEquals(key % 300, item.value().length);
                count++;
            }
            assertEquals(5000, count);
        }
    }

    @Test
    void aCursorMovesBothWays() {
        int count = 500;
        for (int key = 0; key < count; key++) {
            store.put(bytes(String.format("%04d", 2 * key)), new byte[100]);
        }
        Cursor cursor = store.cursor();
        assertFalse(cursor.isValid());
        assertThrows(NoSuchElementException.class, cursor::key);
        int seen = 0;
        for (cursor.seekToFirst(); cursor.isValid(); cursor.next()) {
            assertEquals(String.format("%04d", 2 * seen++), text(cursor.key()));
            assertEquals(100, cursor.value().length);
        }
        assertEquals(count, seen);
        assertThrows(NoSuchElementException.class, cursor::next);
        for (cursor.seekToLast(); cursor.isValid(); cursor.prev()) {
            assertEquals(String.format("%04d", 2 * --seen), text(cursor.key()));
        }
        assertEquals(0, seen);
        cursor.seek(bytes("0101"));
        assertEquals("0102", text(cursor.key()));
        cursor.prev();
        assertEquals("0100", text(cursor.key()));
        cursor.prev();
        cursor.next();
        cursor.next();
        assertEquals("0102", text(cursor.key()));
        cursor.seekForPrev(bytes("0101"));
        assertEquals("0100", text(cursor.key()));
        cursor.seekForPrev(bytes("0100"));
        assertEquals("0100", text(cursor.key()));
        cursor.seekForPrev(bytes("/"));
        assertFalse(cursor.isValid());
    }

    @Test
    void manyKeysAreReadAtOnce() {
        store.put(bytes("a"), bytes("1"));
        store.put(bytes("c"), bytes(""));
        store.put(bytes("d"), new byte[50_000]);
        List<byte[]> values = store.getAll(List.of(bytes("d"), bytes("a"), bytes("b"), bytes("c")));
        assertEquals(4, values.size());
        assertEquals(50_000, values.get(0).length);
        assertEquals("1", text(values.get(1)));
        assertNull(values.get(2));
        assertEquals("", text(values.get(3)));
        assertEquals(List.of(), store.getAll(List.of()));
    }

    @Test
    void numbersAndFunctionsChangeValues() {
        assertEquals(5, store.increment(bytes("n"), 5));
        assertEquals(-2, store.increment(bytes("n"), -7));
        assertEquals("-2", text(store.get(bytes("n"))));
        assertEquals("-2!", text(store.update(bytes("n"), old -> bytes(text(old) + "!"))));
        assertEquals("new", text(store.update(bytes("m"), old -> old == null ? bytes("new") : old)));
        assertNull(store.update(bytes("m"), old -> null));
        assertNull(store.update(bytes("m"), old -> null));
        assertFalse(store.contains(bytes("m")));
        assertTrue(store.insert(bytes("i"), bytes("1")));
        assertFalse(store.insert(bytes("i"), bytes("2")));
        assertEquals("1", text(store.get(bytes("i"))));
    }

    @Test
    void anUpdateRunsAgainIfTheKeyChanges() {
        store.put(bytes("n"), bytes("1"));
        int[] runs = {0};
        store.update(bytes("n"), old -> {
            if (runs[0]++ == 0) {
                store.put(bytes("n"), bytes("5"));
            }
            return bytes(text(old) + text(old));
        });
        assertEquals("55", text(store.get(bytes("n"))));
        assertEquals(2, runs[0]);
    }

    @Test
    void rangesAreDeleted() {
        for (String key : List.of("a", "b", "c", "d")) {
            store.put(bytes(key), bytes(key));
        }
        assertEquals(2, store.deleteRange(bytes("b"), bytes("d")));
        assertEquals(List.of("a=a", "d=d"), texts(store.items()));
        store.clear();
        assertEquals(0, store.size());
    }

    @Test
    void aBatchIsAllOrNothing() {
        store.put(bytes("a"), bytes("1"));
        Version version = store.getVersion(bytes("a"));
        assertArrayEquals(bytes("1"), version.value());
        store.write(new WriteBatch().delete(bytes("a")).put(bytes("b"), bytes("2")).expect(bytes("a"), version));
        assertEquals(List.of("b=2"), texts(store.items()));
        WriteBatch batch = new WriteBatch().put(bytes("c"), bytes("3"))
                .expectAbsent(bytes("x")).expect(bytes("a"), version);
        HikvException.ConditionFailed unmet = assertThrows(HikvException.ConditionFailed.class, () -> store.write(batch));
        assertEquals(1, unmet.condition());
        assertFalse(unmet.getMessage().isEmpty());
        assertEquals(List.of("b=2"), texts(store.items()));
        Ticket ticket = store.writeDeferred(new WriteBatch().put(bytes("d"), bytes("4")));
        ticket.await();
        assertTrue(ticket.isDurable());
        assertArrayEquals(bytes("4"), store.get(bytes("d")));
    }

    @Test
    void aStoreThatIsOpenedAgainHasItsItems() {
        store.put(bytes("a"), bytes("1"));
        store.close();
        store.close();
        assertThrows(HikvException.Missing.class, () -> Store.open(dir.resolve("none"), new Options().create(false)));
        store = Store.open(dir.resolve("store"), new Options().create(false).durability(Durability.PROCESS));
        assertArrayEquals(bytes("1"), store.get(bytes("a")));
    }
}
