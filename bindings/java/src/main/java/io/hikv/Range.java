package io.hikv;

import java.util.Arrays;
import java.util.Objects;

/** Keys between two bounds, and the way to read them. A range does not change; its methods return another one. */
public final class Range {
    private static final int UNBOUNDED = 0;
    private static final int INCLUDED = 1;
    private static final int EXCLUDED = 2;
    private static final int BACK = 1;
    private static final int KEYS = 2;
    /** The greatest limit of a page. */
    private static final int ITEMS_MAX = (1 << 24) - 1;

    private static final byte[] NONE = {};
    private static final Range ALL = new Range(NONE, UNBOUNDED, NONE, UNBOUNDED, 0, Long.MAX_VALUE);

    private final byte[] lo;
    private final int loKind;
    private final byte[] hi;
    private final int hiKind;
    private final int flags;
    private final long limit;

    private Range(byte[] lo, int loKind, byte[] hi, int hiKind, int flags, long limit) {
        this.lo = lo;
        this.loKind = loKind;
        this.hi = hi;
        this.hiKind = hiKind;
        this.flags = flags;
        this.limit = limit;
    }

    /**
     * Returns the range of all keys.
     *
     * @return the range
     */
    public static Range all() {
        return ALL;
    }

    /**
     * Returns the range of the keys that begin with a prefix.
     *
     * @param prefix the prefix
     * @return the range
     */
    public static Range prefix(byte[] prefix) {
        Range range = ALL.from(prefix);
        // The least key behind them: the prefix with its last byte that can grow, grown.
        for (int last = prefix.length - 1; last >= 0; last--) {
            if (prefix[last] != (byte) 0xff) {
                byte[] end = Arrays.copyOf(prefix, last + 1);
                end[last]++;
                return range.to(end);
            }
        }
        return range;
    }

    /**
     * Returns the range of the keys that are at least {@code lo} and less than {@code hi}.
     *
     * @param lo the least key
     * @param hi the key behind the range
     * @return the range
     */
    public static Range between(byte[] lo, byte[] hi) {
        return ALL.from(lo).to(hi);
    }

    /**
     * Begins the range with this key.
     *
     * @param key the key
     * @return the range
     */
    public Range from(byte[] key) {
        return withLo(key, INCLUDED);
    }

    /**
     * Begins the range behind this key.
     *
     * @param key the key
     * @return the range
     */
    public Range after(byte[] key) {
        return withLo(key, EXCLUDED);
    }

    /**
     * Ends the range before this key.
     *
     * @param key the key
     * @return the range
     */
    public Range to(byte[] key) {
        return withHi(key, EXCLUDED);
    }

    /**
     * Ends the range with this key.
     *
     * @param key the key
     * @return the range
     */
    public Range through(byte[] key) {
        return withHi(key, INCLUDED);
    }

    /**
     * Reads in the other direction.
     *
     * @return the range
     */
    public Range reversed() {
        return new Range(lo, loKind, hi, hiKind, flags ^ BACK, limit);
    }

    /**
     * Reads keys without their values.
     *
     * @return the range
     */
    public Range keysOnly() {
        return new Range(lo, loKind, hi, hiKind, flags | KEYS, limit);
    }

    /**
     * Reads at most this many items.
     *
     * @param items the number
     * @return the range
     */
    public Range limit(long items) {
        if (items < 0) {
            throw new IllegalArgumentException("the limit is " + items + ", which is negative");
        }
        return new Range(lo, loKind, hi, hiKind, flags, items);
    }

    private Range withLo(byte[] key, int kind) {
        return new Range(Objects.requireNonNull(key, "the key is null").clone(), kind, hi, hiKind, flags, limit);
    }

    private Range withHi(byte[] key, int kind) {
        return new Range(lo, loKind, Objects.requireNonNull(key, "the key is null").clone(), kind, flags, limit);
    }

    /** Returns the part of the range behind a key that was read. */
    Range behind(byte[] key) {
        return isReversed() ? withHi(key, EXCLUDED) : withLo(key, EXCLUDED);
    }

    boolean isReversed() {
        return (flags & BACK) != 0;
    }

    long limit() {
        return limit;
    }

    /** Returns the kinds of the bounds, the flags and the most items of a page, as the native half takes them. */
    long kinds() {
        long items = limit > ITEMS_MAX ? 0 : limit;
        return loKind | hiKind << 8 | flags << 16 | items << 24;
    }

    byte[] lo() {
        return lo;
    }

    byte[] hi() {
        return hi;
    }
}
