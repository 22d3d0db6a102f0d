package io.hikv;

/**
 * A key and its value.
 *
 * @param key the key
 * @param value the value; empty if only keys were requested
 */
@SuppressWarnings("ArrayRecordComponent")
public record Item(byte[] key, byte[] value) {}
