package io.hikv;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import net.jqwik.api.Tuple.Tuple2;
import net.jqwik.api.lifecycle.AfterTry;
import net.jqwik.api.lifecycle.BeforeTry;

/** Random calls on a store and on a {@link TreeMap}, whose results are compared. */
class ModelTest {
    /** A call on both. */
    private interface Step {
        void run(ModelTest test);
    }

    private Path dir;
    private Engine engine;
    private Store store;
    private Tree tree;
    private NavigableMap<byte[], byte[]> model;

    @BeforeTry
    void begin() throws Exception {
        dir = Stores.inMemory();
        model = new TreeMap<>(Arrays::compareUnsigned);
    }

    @AfterTry
    void end() throws Exception {
        store.close();
        Stores.delete(dir);
    }

    @Property
    void aStoreIsASortedMap(@ForAll("engines") Engine engine, @ForAll("steps") List<Step> steps) {
        this.engine = engine;
        open();
        for (Step step : steps) {
            step.run(this);
        }
        assertEquals(model.size(), tree.size());
        assertItems(model, Range.all());
        assertCursor();
    }

    private void open() {
        store = Store.open(dir, new Options().engine(engine).durability(Durability.PROCESS));
        tree = store.tree("tree");
    }

    private void assertItems(NavigableMap<byte[], byte[]> expected, Range range) {
        Iterator<Item> found = tree.items(range).iterator();
        for (Map.Entry<byte[], byte[]> entry : expected.entrySet()) {
            Item item = found.next();
            assertArrayEquals(entry.getKey(), item.key());
            assertArrayEquals(entry.getValue(), item.value());
        }
        assertEquals(false, found.hasNext());
    }

    /** Two steps forward and one back, to the end. */
    private void assertCursor() {
        Cursor cursor = tree.cursor();
        cursor.seekToFirst();
        for (byte[] key : model.keySet()) {
            assertArrayEquals(key, cursor.key());
            cursor.next();
            if (cursor.isValid()) {
                cursor.prev();
                assertArrayEquals(key, cursor.key());
                cursor.next();
            }
        }
        assertEquals(false, cursor.isValid());
    }

    private void get(byte[] key) {
        assertArrayEquals(model.get(key), tree.get(key));
        assertEquals(model.containsKey(key), tree.contains(key));
        byte[] out = new byte[10];
        byte[] value = model.get(key);
        assertEquals(value == null ? -1 : value.length, tree.get(key, out));
    }

    private void put(byte[] key, byte[] value) {
        tree.put(key, value);
        model.put(key, value);
    }

    private void insert(byte[] key, byte[] value) {
        assertEquals(model.putIfAbsent(key, value) == null, tree.insert(key, value));
    }

    private void delete(byte[] key) {
        assertEquals(model.remove(key) != null, tree.delete(key));
    }

    private void deleteRange(byte[] lo, byte[] hi) {
        NavigableMap<byte[], byte[]> range = between(lo, hi);
        assertEquals(range.size(), tree.deleteRange(lo, hi));
        range.clear();
    }

    private NavigableMap<byte[], byte[]> between(byte[] lo, byte[] hi) {
        return Arrays.compareUnsigned(lo, hi) < 0 ? model.subMap(lo, true, hi, false)
                : new TreeMap<>(Arrays::compareUnsigned);
    }

    private void scan(byte[] lo, byte[] hi) {
        assertItems(between(lo, hi), Range.between(lo, hi));
        assertItems(between(lo, hi).descendingMap(), Range.between(lo, hi).reversed());
        assertItems(model.tailMap(lo, false), Range.all().after(lo));
        assertItems(model.headMap(hi, true), Range.all().through(hi));
        NavigableMap<byte[], byte[]> first = new TreeMap<>(Arrays::compareUnsigned);
        model.entrySet().stream().limit(2).forEach(entry -> first.put(entry.getKey(), entry.getValue()));
        assertItems(first, Range.all().limit(2));
    }

    private void prefix(byte[] prefix) {
        NavigableMap<byte[], byte[]> expected = new TreeMap<>(model);
        expected.keySet().removeIf(key -> key.length < prefix.length
                || !Arrays.equals(key, 0, prefix.length, prefix, 0, prefix.length));
        assertItems(expected, Range.prefix(prefix));
    }

    private void seek(byte[] key) {
        Cursor cursor = tree.cursor();
        cursor.seek(key);
        assertArrayEquals(model.ceilingKey(key), cursor.isValid() ? cursor.key() : null);
        cursor.seekForPrev(key);
        assertArrayEquals(model.floorKey(key), cursor.isValid() ? cursor.key() : null);
    }

    private void batch(byte[] a, byte[] b, byte[] value) {
        tree.write(new WriteBatch().put(a, value).delete(b));
        model.put(a, value);
        model.remove(b);
    }

    private void transact(byte[] a, byte[] b, byte[] value) {
        byte[] found = store.transact(tx -> {
            tx.put(tree, a, value);
            tx.delete(tree, b);
            Iterator<Item> items = tx.items(tree, Range.all().from(a)).iterator();
            return items.hasNext() ? items.next().key() : null;
        });
        model.put(a, value);
        model.remove(b);
        assertArrayEquals(model.ceilingKey(a), found);
    }

    private void reopen() {
        store.close();
        open();
    }

    @Provide
    Arbitrary<Engine> engines() {
        return Arbitraries.of(Engine.HIKV, Engine.INK, Engine.PMEKV);
    }

    @Provide
    Arbitrary<List<Step>> steps() {
        Arbitrary<byte[]> keys = Arbitraries.of((byte) 0, (byte) 1, (byte) 'a', (byte) 0x7f, (byte) 0x80, (byte) 0xff)
                .array(byte[].class)
                .ofMaxSize(3);
        Arbitrary<byte[]> values = Arbitraries.oneOf(
                Arbitraries.bytes().array(byte[].class).ofMaxSize(20),
                Arbitraries.integers().between(900, 40_000).map(byte[]::new));
        Arbitrary<Step> steps = Arbitraries.frequencyOf(List.of(
                entry(4, keys.map(key -> test -> test.get(key))),
                entry(8, Combinators.combine(keys, values).as((key, value) -> test -> test.put(key, value))),
                entry(3, Combinators.combine(keys, values).as((key, value) -> test -> test.insert(key, value))),
                entry(4, keys.map(key -> test -> test.delete(key))),
                entry(1, Combinators.combine(keys, keys).as((lo, hi) -> test -> test.deleteRange(lo, hi))),
                entry(3, Combinators.combine(keys, keys).as((lo, hi) -> test -> test.scan(lo, hi))),
                entry(2, keys.map(key -> test -> test.prefix(key))),
                entry(2, keys.map(key -> test -> test.seek(key))),
                entry(3, Combinators.combine(keys, keys, values).as((a, b, value) -> test -> test.batch(a, b, value))),
                entry(2, Combinators.combine(keys, keys, values)
                        .as((a, b, value) -> test -> test.transact(a, b, value))),
                entry(1, Arbitraries.just(test -> test.reopen()))));
        return steps.list().ofMaxSize(60);
    }

    private static Tuple2<Integer, Arbitrary<Step>> entry(int weight, Arbitrary<Step> step) {
        return Tuple.of(weight, step);
    }
}
