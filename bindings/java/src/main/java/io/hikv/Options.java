package io.hikv;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Objects;

/** Options of {@link Store#open(java.nio.file.Path, Options)}. Each method returns this object. */
public final class Options {
    private static final int CREATE = 1;
    private static final int READ_ONLY = 2;
    private static final int UNORDERED = 4;
    private static final int HUGE_PAGES = 8;
    private static final int NO_BACKGROUND = 16;

    private Engine engine;
    private int flags = CREATE | HUGE_PAGES;
    private Durability durability = Durability.HIGHEST;
    private long regionBytesMax;
    private long logBytesMax;
    private long readCacheBytes;
    private long syncIntervalMicros;
    private int backgroundThreads;

    /** Makes the default options. */
    public Options() {}

    /**
     * Sets the engine of a new store. A store that exists is opened only if it has this engine.
     *
     * @param engine the engine
     * @return this
     */
    public Options engine(Engine engine) {
        this.engine = Objects.requireNonNull(engine, "the engine is null");
        return this;
    }

    /**
     * Sets whether a store that is missing is made; by default it is.
     *
     * @param create true to make it
     * @return this
     */
    public Options create(boolean create) {
        return set(CREATE, create);
    }

    /**
     * Sets whether the store is only read.
     *
     * @param readOnly true to read it
     * @return this
     */
    public Options readOnly(boolean readOnly) {
        return set(READ_ONLY, readOnly);
    }

    /**
     * Sets whether keys have an order, which ranges need; by default they have.
     *
     * @param ordered false for a store without ranges
     * @return this
     */
    public Options ordered(boolean ordered) {
        return set(UNORDERED, !ordered);
    }

    /**
     * Sets whether memory is mapped in huge pages where that is possible; by default it is.
     *
     * @param hugePages true for huge pages
     * @return this
     */
    public Options hugePages(boolean hugePages) {
        return set(HUGE_PAGES, hugePages);
    }

    /**
     * Sets whether the store has threads of its own; by default it has.
     *
     * @param background false for none
     * @return this
     */
    public Options background(boolean background) {
        return set(NO_BACKGROUND, !background);
    }

    /**
     * Sets what a write survives.
     *
     * @param durability the level
     * @return this
     */
    public Options durability(Durability durability) {
        this.durability = Objects.requireNonNull(durability, "the durability is null");
        return this;
    }

    /**
     * Sets the greatest length of the store's region, for which it reserves addresses.
     *
     * @param bytes the length; 0 for the default
     * @return this
     */
    public Options regionBytesMax(long bytes) {
        regionBytesMax = notNegative("regionBytesMax", bytes);
        return this;
    }

    /**
     * Sets the greatest length of the log on an ordinary disk.
     *
     * @param bytes the length; 0 for the default
     * @return this
     */
    public Options logBytesMax(long bytes) {
        logBytesMax = notNegative("logBytesMax", bytes);
        return this;
    }

    /**
     * Sets the size of the cache for reads, on engines that have one.
     *
     * @param bytes the size; 0 for none
     * @return this
     */
    public Options readCacheBytes(long bytes) {
        readCacheBytes = notNegative("readCacheBytes", bytes);
        return this;
    }

    /**
     * Sets how often writes are synced at {@link Durability#BUFFERED}.
     *
     * @param interval the interval, of at least a microsecond
     * @return this
     */
    public Options syncInterval(Duration interval) {
        long micros = interval.toNanos() / 1000;
        if (micros <= 0) {
            throw new IllegalArgumentException("syncInterval is " + interval + ", less than a microsecond");
        }
        syncIntervalMicros = micros;
        return this;
    }

    /**
     * Sets the number of the store's own threads.
     *
     * @param threads the number; 0 for the default
     * @return this
     */
    public Options backgroundThreads(int threads) {
        backgroundThreads = (int) notNegative("backgroundThreads", threads);
        return this;
    }

    private Options set(int flag, boolean isSet) {
        flags = isSet ? flags | flag : flags & ~flag;
        return this;
    }

    private static long notNegative(String name, long number) {
        if (number < 0) {
            throw new IllegalArgumentException(name + " is " + number + ", which is negative");
        }
        return number;
    }

    /** Returns the engine's name with a final zero, and then the numbers. */
    byte[] encoded() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        bytes.writeBytes((engine == null ? "" : engine.label).getBytes(StandardCharsets.US_ASCII));
        bytes.write(0);
        ByteBuffer numbers = ByteBuffer.allocate(7 * Long.BYTES).order(ByteOrder.nativeOrder());
        long[] values = {
            flags, durability.ordinal(), regionBytesMax, logBytesMax, readCacheBytes, syncIntervalMicros,
            backgroundThreads
        };
        for (long value : values) {
            numbers.putLong(value);
        }
        bytes.writeBytes(numbers.array());
        return bytes.toByteArray();
    }
}
