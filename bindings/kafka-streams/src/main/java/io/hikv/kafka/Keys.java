package io.hikv.kafka;

import java.util.Arrays;
import org.apache.kafka.common.utils.Bytes;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Bounds of ranges of keys, and parts of keys. */
final class Keys {
    private static final Logger LOG = LoggerFactory.getLogger(Keys.class);

    private Keys() {}

    /** Returns true if no key is in the range, and logs it with the words that Kafka's own stores use. */
    static boolean isEmpty(Bytes from, Bytes to) {
        boolean isEmpty = from != null && to != null && from.compareTo(to) > 0;
        if (isEmpty) {
            LOG.warn("Returning empty iterator for fetch with invalid key range: from > to."
                + " This may be due to range arguments set in the wrong order,"
                + " or serdes that don't preserve ordering when lexicographically comparing the serialized bytes."
                + " Note that the built-in numerical serdes do not follow this for negative numbers");
        }
        return isEmpty;
    }

    /** Returns true if a key is in the range, whose bounds belong to it. */
    static boolean isWithin(Bytes key, Bytes from, Bytes to) {
        return (from == null || from.compareTo(key) <= 0) && (to == null || to.compareTo(key) >= 0);
    }

    /**
     * Returns a key behind all that begin with {@code key}, or with a lesser key, and go on with a time. A prefix of
     * {@code key} is such a lesser key, so the first byte decides.
     */
    static byte[] behindTimes(Bytes key) {
        return key == null ? null : behindPrefix(Arrays.copyOf(key.get(), Math.min(1, key.get().length)));
    }

    /** Returns the least key behind a key. */
    static byte[] behind(byte[] key) {
        return Arrays.copyOf(key, key.length + 1);
    }

    /** Returns the least key behind all that begin with a prefix, or null if there is none. */
    static byte[] behindPrefix(byte[] prefix) {
        for (int last = prefix.length - 1; last >= 0; last--) {
            if (prefix[last] != (byte) 0xff) {
                byte[] end = Arrays.copyOf(prefix, last + 1);
                end[last]++;
                return end;
            }
        }
        return null;
    }
}
