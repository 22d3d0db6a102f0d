package io.hikv;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.ByteBuffer;
import java.nio.file.Path;

/** The native half through the foreign-function API. */
@SuppressWarnings("restricted")
final class Ffm extends Native {
    /** Static, so that the compiler knows it as a constant. */
    private static final MethodHandle CALL = handle();

    private static MethodHandle handle() {
        MemorySegment function = lookup().find("hikv_java_call").orElseThrow(
                () -> new UnsatisfiedLinkError(Library.path() + " is not hikv's library for Java"));
        FunctionDescriptor type = FunctionDescriptor.of(
                JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG,
                JAVA_LONG, JAVA_LONG);
        return Linker.nativeLinker().downcallHandle(function, type);
    }

    private static SymbolLookup lookup() {
        Path library = Library.path();
        try {
            return SymbolLookup.libraryLookup(library, Arena.global());
        } catch (IllegalArgumentException e) {
            throw new UnsatisfiedLinkError(library + " cannot be loaded: " + e.getMessage());
        }
    }

    @Override
    long call(
            int op, long store, long tree, long other, long in, long keyLen, long valueLen, long number, long out,
            long cap) {
        try {
            return (long) CALL.invokeExact(op, store, tree, other, in, keyLen, valueLen, number, out, cap);
        } catch (Throwable e) {
            // The function throws nothing. What remains are errors of the machine, such as a stack that is full.
            throw e instanceof Error error ? error : new AssertionError(e);
        }
    }

    @Override
    ByteBuffer view(long address, int len) {
        return MemorySegment.ofAddress(address).reinterpret(len).asByteBuffer();
    }
}
