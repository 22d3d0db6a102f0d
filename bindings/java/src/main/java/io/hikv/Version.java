package io.hikv;

/**
 * A value with its version, for a condition of a batch.
 *
 * @param value the value
 * @param high the version's first word
 * @param low the version's second word
 */
@SuppressWarnings("ArrayRecordComponent")
public record Version(byte[] value, long high, long low) {}
