package io.hikv;

/**
 * An object of a user with a handle: a store, tree, snapshot or transaction. Calls refer to it until they end, so that
 * it is not unreachable, and its handle not ended by the collector, while one of them needs it.
 */
abstract class Part {
    final Handle handle;

    Part(Handle handle) {
        this.handle = handle;
        handle.endWith(this);
    }
}
