package io.hikv;

import java.nio.ByteBuffer;

/** The native half through JNI. */
final class Jni extends Native {
    Jni() {
        System.load(Library.path().toString());
    }

    @Override
    long call(
            int op, long store, long tree, long other, long in, long keyLen, long valueLen, long number, long out,
            long cap) {
        return invoke(op, store, tree, other, in, keyLen, valueLen, number, out, cap);
    }

    @Override
    ByteBuffer view(long address, int len) {
        return buffer(address, len);
    }

    private static native long invoke(
            int op, long store, long tree, long other, long in, long keyLen, long valueLen, long number, long out,
            long cap);

    private static native ByteBuffer buffer(long address, long len);
}
