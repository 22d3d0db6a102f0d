package io.hikv;

/** The data structures of a store, chosen when it is made. */
public enum Engine {
    /** A hash index in the store, and an ordered index in memory. The default. */
    HIKV("hikv"),
    /** A persistent B+tree. */
    INK("ink"),
    /** A log, and an ordered index in memory. */
    PMEKV("pmekv"),
    /** A hash table without an order of keys. */
    REWO_HASH("rewo-hash");

    final String label;

    Engine(String label) {
        this.label = label;
    }
}
