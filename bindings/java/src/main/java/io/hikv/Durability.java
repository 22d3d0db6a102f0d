package io.hikv;

/** What a write survives once it has returned. */
public enum Durability {
    /** As much as the storage allows. The default. */
    HIGHEST,
    /** The end of the process. */
    PROCESS,
    /** A power failure, except the last writes. */
    BUFFERED,
    /** A power failure. */
    POWER
}
