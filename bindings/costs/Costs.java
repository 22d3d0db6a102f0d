import io.hikv.Durability;
import io.hikv.Item;
import io.hikv.Options;
import io.hikv.Range;
import io.hikv.Store;
import io.hikv.WriteBatch;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.lmdbjava.CursorIterable;
import org.lmdbjava.Dbi;
import org.lmdbjava.DbiFlags;
import org.lmdbjava.Env;
import org.lmdbjava.EnvFlags;
import org.lmdbjava.KeyRange;
import org.lmdbjava.Txn;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteOptions;

/**
 * Measures calls of a store from Java and prints a line for each: its name, a tab, and processor time of the calling
 * thread in nanoseconds, the median of the last rounds. costs.c does the same in C.
 *
 * <p>usage: java Costs.java SUBJECT DIRECTORY, where the subject is hikv, rocksdbjni or lmdbjava. Keys have 16 bytes,
 * values 256.
 */
public class Costs {
    static final int COUNT = 50_000;
    static final int PICKED = 20_000;
    static final int WARM_UP = 10;
    static final int ROUNDS = 5;
    static final byte[] VALUE = new byte[256];

    /** A store. Each value is copied to an array. */
    interface Subject {
        byte[] get(byte[] key) throws Exception;

        /** Copies the value into an array. Returns its length. */
        int get(byte[] key, byte[] out) throws Exception;

        void put(byte[] key) throws Exception;

        void batch(List<byte[]> keys) throws Exception;

        byte[] first(byte[] key) throws Exception;

        int scan() throws Exception;

        /** A call that does next to nothing. */
        long empty() throws Exception;
    }

    record Hikv(Store store) implements Subject {
        public byte[] get(byte[] key) {
            return store.get(key);
        }

        public int get(byte[] key, byte[] out) {
            return store.get(key, out);
        }

        public void put(byte[] key) {
            store.put(key, VALUE);
        }

        public void batch(List<byte[]> keys) {
            WriteBatch batch = new WriteBatch();
            keys.forEach(key -> batch.put(key, VALUE));
            store.write(batch);
        }

        public byte[] first(byte[] key) {
            return store.items(Range.all().from(key)).iterator().next().value();
        }

        public int scan() {
            int count = 0;
            for (Item item : store.items()) {
                count += item.value().length > 0 ? 1 : 0;
            }
            return count;
        }

        public long empty() {
            return store.size();
        }
    }

    record Rocks(RocksDB db, WriteOptions options) implements Subject {
        public byte[] get(byte[] key) throws RocksDBException {
            return db.get(key);
        }

        public int get(byte[] key, byte[] out) throws RocksDBException {
            return db.get(key, out);
        }

        public void put(byte[] key) throws RocksDBException {
            db.put(options, key, VALUE);
        }

        public void batch(List<byte[]> keys) throws RocksDBException {
            try (org.rocksdb.WriteBatch batch = new org.rocksdb.WriteBatch()) {
                for (byte[] key : keys) {
                    batch.put(key, VALUE);
                }
                db.write(options, batch);
            }
        }

        public byte[] first(byte[] key) {
            try (RocksIterator iterator = db.newIterator()) {
                iterator.seek(key);
                return iterator.value();
            }
        }

        public int scan() {
            int count = 0;
            try (RocksIterator iterator = db.newIterator()) {
                for (iterator.seekToFirst(); iterator.isValid(); iterator.next()) {
                    count += iterator.key().length > 0 && iterator.value().length > 0 ? 1 : 0;
                }
            }
            return count;
        }

        public long empty() {
            return db.getLatestSequenceNumber();
        }
    }

    record Lmdb(Env<ByteBuffer> env, Dbi<ByteBuffer> dbi, ByteBuffer key, ByteBuffer value) implements Subject {
        private ByteBuffer of(byte[] bytes) {
            return key.clear().put(bytes).flip();
        }

        private static byte[] copied(ByteBuffer found) {
            byte[] bytes = new byte[found.remaining()];
            found.get(bytes);
            return bytes;
        }

        public byte[] get(byte[] key) {
            try (Txn<ByteBuffer> tx = env.txnRead()) {
                ByteBuffer found = dbi.get(tx, of(key));
                return found == null ? null : copied(found);
            }
        }

        public int get(byte[] key, byte[] out) {
            try (Txn<ByteBuffer> tx = env.txnRead()) {
                ByteBuffer found = dbi.get(tx, of(key));
                int len = found.remaining();
                found.get(out, 0, len);
                return len;
            }
        }

        public void put(byte[] key) {
            batch(Collections.singletonList(key));
        }

        public void batch(List<byte[]> keys) {
            try (Txn<ByteBuffer> tx = env.txnWrite()) {
                for (byte[] key : keys) {
                    dbi.put(tx, of(key), value.clear().put(VALUE).flip());
                }
                tx.commit();
            }
        }

        public byte[] first(byte[] key) {
            try (Txn<ByteBuffer> tx = env.txnRead();
                    CursorIterable<ByteBuffer> items = dbi.iterate(tx, KeyRange.atLeast(of(key)))) {
                return copied(items.iterator().next().val());
            }
        }

        public int scan() {
            int count = 0;
            try (Txn<ByteBuffer> tx = env.txnRead(); CursorIterable<ByteBuffer> items = dbi.iterate(tx)) {
                for (CursorIterable.KeyVal<ByteBuffer> item : items) {
                    count += copied(item.key()).length > 0 && copied(item.val()).length > 0 ? 1 : 0;
                }
            }
            return count;
        }

        public long empty() {
            return env.getMaxKeySize();
        }
    }

    static Subject opened(String name, Path place) throws Exception {
        return switch (name) {
            case "hikv" -> new Hikv(Store.open(place, new Options().durability(Durability.PROCESS)));
            case "rocksdbjni" -> new Rocks(RocksDB.open(place.toString()), new WriteOptions().setSync(false));
            case "lmdbjava" -> {
                Env<ByteBuffer> env = Env.create().setMapSize(1 << 30).open(
                        place.toFile(), EnvFlags.MDB_NOSYNC, EnvFlags.MDB_WRITEMAP);
                Dbi<ByteBuffer> dbi = env.openDbi("items", DbiFlags.MDB_CREATE);
                yield new Lmdb(env, dbi, ByteBuffer.allocateDirect(64), ByteBuffer.allocateDirect(512));
            }
            default -> throw new IllegalArgumentException("'" + name + "' is no subject");
        };
    }

    interface Body {
        long run() throws Exception;
    }

    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static long sink;

    static double timed(int calls, Body body) throws Exception {
        long begin = THREADS.getCurrentThreadCpuTime();
        sink += body.run();
        return (double) (THREADS.getCurrentThreadCpuTime() - begin) / calls;
    }

    static Map<String, Double> measured(Subject subject, List<byte[]> picked, List<byte[]> absent) throws Exception {
        Map<String, Double> costs = new LinkedHashMap<>();
        costs.put("get", timed(PICKED, () -> {
            long sum = 0;
            for (byte[] key : picked) {
                sum += subject.get(key).length;
            }
            return sum;
        }));
        byte[] out = new byte[VALUE.length];
        costs.put("get into an array", timed(PICKED, () -> {
            long sum = 0;
            for (byte[] key : picked) {
                sum += subject.get(key, out);
            }
            return sum;
        }));
        costs.put("get, absent", timed(PICKED, () -> {
            long sum = 0;
            for (byte[] key : absent) {
                sum += subject.get(key) == null ? 1 : 0;
            }
            return sum;
        }));
        costs.put("put (update)", timed(PICKED, () -> {
            for (byte[] key : picked) {
                subject.put(key);
            }
            return 0;
        }));
        costs.put("batch of 1,000, an item", timed(10_000, () -> {
            for (int at = 0; at < 10_000; at += 1000) {
                subject.batch(picked.subList(at, at + 1000));
            }
            return 0;
        }));
        costs.put("open iterator, first item", timed(5000, () -> {
            long sum = 0;
            for (byte[] key : picked.subList(0, 5000)) {
                sum += subject.first(key).length;
            }
            return sum;
        }));
        costs.put("scan, an item", timed(COUNT, subject::scan));
        costs.put("call that does nothing", timed(PICKED, () -> {
            long sum = 0;
            for (int i = 0; i < PICKED; i++) {
                sum += subject.empty();
            }
            return sum;
        }));
        return costs;
    }

    static byte[] key(String format, int number) {
        return String.format(format, number).getBytes(StandardCharsets.US_ASCII);
    }

    public static void main(String[] args) throws Exception {
        Subject subject = opened(args[0], Files.createDirectories(Path.of(args[1])));
        List<byte[]> keys = IntStream.range(0, COUNT).mapToObj(number -> key("key:%012d", number)).toList();
        for (int at = 0; at < COUNT; at += 1000) {
            subject.batch(keys.subList(at, at + 1000));
        }
        List<Integer> numbers = Arrays.asList(IntStream.range(0, COUNT).boxed().toArray(Integer[]::new));
        Collections.shuffle(numbers, new Random(7));
        List<byte[]> picked = numbers.subList(0, PICKED).stream().map(number -> key("key:%012d", number)).toList();
        List<byte[]> absent = numbers.subList(0, PICKED).stream().map(number -> key("no!:%012d", number)).toList();
        Map<String, double[]> rounds = new LinkedHashMap<>();
        for (int round = 0; round < WARM_UP + ROUNDS; round++) {
            int place = round - WARM_UP;
            measured(subject, picked, absent).forEach((call, cost) -> {
                if (place >= 0) {
                    rounds.computeIfAbsent(call, any -> new double[ROUNDS])[place] = cost;
                }
            });
        }
        rounds.forEach((call, costs) -> {
            Arrays.sort(costs);
            System.out.printf("%s\t%.0f%n", call, costs[ROUNDS / 2]);
        });
        // Stores that are not closed end with the process.
    }
}
