// Scenarios of libraries in Java; see scripts/redis-libraries. The first argument names a scenario, the second a role in it.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RRateLimiter;
import org.redisson.api.RateType;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.RedisTemplate;
import org.springframework.data.redis.serializer.RedisSerializer;
import org.springframework.session.Session;
import org.springframework.session.SessionRepository;
import org.springframework.session.data.redis.RedisSessionRepository;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.resps.Tuple;

public class Scenario {
    static final int PORT = Integer.parseInt(System.getenv("REDIS_PORT"));
    static final int PROCESS_COUNT = 4;
    static final int ROUND_COUNT = 50;

    public static void main(String[] arguments) throws Exception {
        String said = switch (String.join(" ", arguments)) {
            case "redisson" -> redisson();
            case "redisson count" -> redissonCount();
            case "redisson hold" -> redissonHold();
            case "redisson hit" -> redissonHit();
            case "jedis" -> jedis();
            case "spring-session" -> springSession();
            default -> throw new IllegalArgumentException("no such scenario: " + String.join(" ", arguments));
        };
        System.out.println(said);
        System.exit(0);
    }

    static void expect(Object found, Object wanted, String what) {
        if (!Objects.equals(found, wanted)) {
            throw new AssertionError(what + ": " + found + ", not " + wanted);
        }
    }

    /** Starts this program in a role. */
    static Process start(String role) throws IOException {
        String java = ProcessHandle.current().info().command().orElseThrow();
        String path = System.getProperty("java.class.path");
        String source = System.getProperty("scenario.source");
        List<String> command = List.of(java, "-Dscenario.source=" + source, "-cp", path, source, "redisson", role);
        return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    static String line(Process process) throws IOException {
        return new BufferedReader(new InputStreamReader(process.getInputStream())).readLine();
    }

    static RedissonClient redissonClient() {
        Config config = new Config();
        config.setLockWatchdogTimeout(2000);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + PORT);
        return Redisson.create(config);
    }

    static String redissonCount() {
        RedissonClient client = redissonClient();
        RLock lock = client.getLock("lock");
        for (int round = 0; round < ROUND_COUNT; round++) {
            lock.lock();
            try {
                var count = client.<Integer>getBucket("count");
                count.set(Objects.requireNonNullElse(count.get(), 0) + 1);
            } finally {
                lock.unlock();
            }
        }
        return "counted";
    }

    static String redissonHold() throws IOException {
        redissonClient().getLock("lock").lock();
        System.out.println("held");
        System.in.read();
        return "left";
    }

    static String redissonHit() {
        RRateLimiter limiter = redissonClient().getRateLimiter("limiter");
        int hits = 0;
        for (int number = 0; number < 100; number++) {
            hits += limiter.tryAcquire() ? 1 : 0;
        }
        return String.valueOf(hits);
    }

    /** Locks, a limiter, and collections of Redisson, most of which are scripts. */
    static String redisson() throws Exception {
        RedissonClient client = redissonClient();
        List<Process> counters = new ArrayList<>();
        for (int number = 0; number < PROCESS_COUNT; number++) {
            counters.add(start("count"));
        }
        for (Process counter : counters) {
            expect(counter.waitFor(), 0, "the end of a process");
        }
        expect(client.getBucket("count").get(), PROCESS_COUNT * ROUND_COUNT, "the count");
        Process holder = start("hold");
        expect(line(holder), "held", "the holder");
        RLock lock = client.getLock("lock");
        expect(lock.tryLock(), false, "acquired a held lock");
        holder.destroyForcibly().waitFor();
        expect(lock.tryLock(60, TimeUnit.SECONDS), true, "acquired the lock of a killed holder");
        lock.unlock();

        client.getRateLimiter("limiter").trySetRate(RateType.OVERALL, 200, Duration.ofHours(1));
        List<Process> hitters = new ArrayList<>();
        for (int number = 0; number < PROCESS_COUNT; number++) {
            hitters.add(start("hit"));
        }
        int hits = 0;
        for (Process hitter : hitters) {
            hits += Integer.parseInt(line(hitter));
        }
        expect(hits, 200, "hits that succeeded");

        var cache = client.<String, Integer>getMapCache("cache");
        cache.put("brief", 1, 1, TimeUnit.SECONDS);
        cache.put("long", 2);
        expect(cache.get("long"), 2, "a value of the cache");
        while (cache.get("brief") != null) {
            Thread.onSpinWait();
        }
        var queue = client.<Integer>getBlockingQueue("queue");
        var delayed = client.getDelayedQueue(queue);
        delayed.offer(7, 100, TimeUnit.MILLISECONDS);
        expect(queue.poll(60, TimeUnit.SECONDS), 7, "a delayed element");
        var scores = client.<String>getScoredSortedSet("scores");
        scores.add(2, "b");
        scores.add(1, "a");
        expect(List.copyOf(scores.readAll()), List.of("a", "b"), "a sorted set");
        client.shutdown();
        return PROCESS_COUNT + " processes counted under a lock; a killed holder's lock was free; 200 hits of a limiter; a cache, a delayed queue";
    }

    /** Jedis: pools, pipelines, transactions, scripts, scans. */
    static String jedis() {
        try (JedisPooled jedis = new JedisPooled("127.0.0.1", PORT)) {
            try (var pipeline = jedis.pipelined()) {
                for (int number = 0; number < 1000; number++) {
                    pipeline.set("key:" + number, String.valueOf(number));
                }
                expect(new HashSet<>(pipeline.syncAndReturnAll()), Set.of("OK"), "a pipeline");
            }
            Set<String> found = new HashSet<>();
            String cursor = ScanParams.SCAN_POINTER_START;
            do {
                var page = jedis.scan(cursor, new ScanParams().match("key:*").count(100));
                found.addAll(page.getResult());
                cursor = page.getCursor();
            } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
            expect(found.size(), 1000, "keys found");
            try (var transaction = jedis.multi()) {
                transaction.incr("n");
                transaction.hset("hash", Map.of("one", "1"));
                expect(transaction.exec(), List.of(1L, 1L), "a transaction");
            }
            expect(jedis.eval("return redis.call('INCRBY', KEYS[1], ARGV[1])", 1, "sum", "42"), 42L, "a script");
            jedis.zadd("sorted", Map.of("a", 1.0, "b", 2.5));
            expect(jedis.zrangeWithScores("sorted", 0, -1), List.of(new Tuple("a", 1.0), new Tuple("b", 2.5)), "a sorted set");
            jedis.rpush("list", "element");
            expect(jedis.blpop(10, "list"), List.of("list", "element"), "a blocking read");
        }
        return "a pipeline, a scan, a transaction, a script, a sorted set, a blocking read";
    }

    /** Spring Session over Lettuce: a session stored, read and expired. */
    static String springSession() {
        var factory = new LettuceConnectionFactory("127.0.0.1", PORT);
        factory.afterPropertiesSet();
        factory.start();
        RedisTemplate<String, Object> template = new RedisTemplate<>();
        template.setConnectionFactory(factory);
        template.setKeySerializer(RedisSerializer.string());
        template.setHashKeySerializer(RedisSerializer.string());
        template.afterPropertiesSet();
        store(new RedisSessionRepository(template), template);
        return "a session was stored, read, changed, and gone when its time was over";
    }

    static <S extends Session> void store(SessionRepository<S> sessions, RedisTemplate<String, Object> template) {
        S session = sessions.createSession();
        session.setAttribute("user", "ada");
        sessions.save(session);
        S again = sessions.findById(session.getId());
        expect(again.<String>getAttribute("user"), "ada", "an attribute");
        String old = again.getId();
        again.changeSessionId();
        again.setAttribute("roles", new ArrayList<>(List.of(1, 2)));
        again.setMaxInactiveInterval(Duration.ofSeconds(1));
        sessions.save(again);
        expect(sessions.findById(old), null, "the session by its old name");
        expect(sessions.findById(again.getId()).getAttributeNames(), Set.of("user", "roles"), "attributes");
        while (!template.keys("*" + again.getId()).isEmpty()) {
            Thread.onSpinWait();
        }
        expect(sessions.findById(again.getId()), null, "the expired session");
    }
}
