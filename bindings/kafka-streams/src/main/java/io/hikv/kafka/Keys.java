package io.hikv.kafka;

import java.util.Arrays;

/** Bounds of ranges of keys. */
final class Keys {
    private Keys() {}

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
