/* The native half of hikv for Java: one function, which Java reaches through JNI or through its foreign-function API.
 *
 * All arguments are integers, so that both ways pass them alike. `in` holds the key, directly followed by the value.
 * `out` has space for `cap` bytes. Java allocates both with OP_ALLOCATE and sees them as direct buffers. The numbers of
 * operations and results are those of Op.java.
 *
 * The result is a length, a count or a handle, all of which are at least 0, or ABSENT, EXISTS or an error of hikv.h.
 * With an error, `out` holds its text, ended by a zero. A length that exceeds `cap` means that `out` was too short.
 * Numbers that may be negative stand in `out`.
 *
 * Java has checked handles: each is live, or 0 where hikv.h permits null.
 */
#include <hikv.h>
#include <jni.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ABSENT INT64_MIN
#define EXISTS (INT64_MIN + 1)

enum {
    OP_ALLOCATE = 0, OP_FREE = 1, OP_OPEN = 2, OP_CLOSE = 3, OP_SYNC = 4, OP_LEN = 5, OP_STATS = 6, OP_BACKUP = 7, OP_VERSION = 8, OP_PROTOCOL = 9,
    OP_GET = 10, OP_GET_VERSION = 11, OP_MULTI_GET = 12, OP_CONTAINS = 13, OP_SCAN = 14,
    OP_PUT = 20, OP_PUT_TTL = 21, OP_INSERT = 22, OP_DELETE = 23, OP_INCREMENT = 24, OP_CLEAR = 25, OP_DELETE_RANGE = 26,
    OP_WRITE = 30, OP_DEFERRED_WRITE = 31, OP_IS_DURABLE = 32, OP_WAIT = 33,
    OP_SNAPSHOT_NEW = 40, OP_SNAPSHOT_FREE = 41, OP_SNAPSHOT_GET = 42,
    OP_TREE_OPEN = 50, OP_TREE_CLOSE = 51, OP_TREE_LIST = 52, OP_TREE_RENAME = 53, OP_TREE_SWAP = 54, OP_TREE_DROP = 55,
    OP_BEGIN = 60, OP_TX_GET = 61, OP_TX_PUT = 62, OP_TX_DELETE = 63, OP_TX_SCAN = 64, OP_TX_CHECK = 65, OP_TX_COMMIT = 66,
    OP_TX_ABORT = 67
};

typedef struct call {
    hikv_store *store;
    hikv_tree *tree;
    void *other; /* a snapshot or a transaction */
    hikv_slice key, value;
    int64_t number;
    char *out;
    size_t cap;
} call;

/* Options as Java writes them behind the path: seven words. */
typedef struct open_numbers {
    uint64_t flags, durability, region_bytes_max, log_bytes_max, read_cache_bytes, sync_interval_us, background_threads;
} open_numbers;

static int64_t failed(int code, const call *c) {
    hikv_last_error(c->out, c->cap);
    return code;
}

static int64_t refused(int code, const call *c, const char *format, int64_t number) {
    snprintf(c->out, c->cap, format, (long long)number);
    return code;
}

/* The result of a call that has no other. */
static int64_t done(int code, const call *c) {
    if (code < 0) return failed(code, c);
    return code == HIKV_OK ? 0 : code == HIKV_EXISTS ? EXISTS : ABSENT;
}

/* The result of a call that has written `len` bytes, or needs as many. */
static int64_t length(int code, size_t len, const call *c) {
    return code == HIKV_OK || code == HIKV_SHORT ? (int64_t)len : done(code, c);
}

static int64_t handle(int code, const void *made, const call *c) {
    return code == HIKV_OK ? (int64_t)(intptr_t)made : failed(code, c);
}

/* Puts a number at the beginning of `out`. */
static int64_t number(int code, const void *bytes, const call *c) {
    if (code == HIKV_OK) memcpy(c->out, bytes, 8);
    return done(code, c);
}

/* The path is the key; the value is the engine's name with a final zero, which may be empty, then the numbers. */
static int64_t open_store(const call *c) {
    const char *engine = c->value.data;
    size_t engine_size = strlen(engine) + 1;
    open_numbers numbers;
    hikv_options options;
    hikv_store *store;
    int code;
    memcpy(&numbers, engine + engine_size, sizeof numbers);
    hikv_options_init(&options, sizeof options);
    options.engine = *engine ? engine : NULL;
    options.flags = (uint32_t)numbers.flags;
    options.durability = (int)numbers.durability;
    options.region_bytes_max = numbers.region_bytes_max;
    options.log_bytes_max = numbers.log_bytes_max;
    options.read_cache_bytes = numbers.read_cache_bytes;
    options.sync_interval_us = numbers.sync_interval_us;
    options.background_threads = (uint32_t)numbers.background_threads;
    code = hikv_open(c->key.data, c->key.len, &options, &store);
    return handle(code, store, c);
}

/* The key holds `number` keys, each after its length in a u32. */
static int64_t multi_get(const call *c) {
    const char *at = c->key.data;
    size_t count = (size_t)c->number, len = 0;
    hikv_slice *keys = malloc((count ? count : 1) * sizeof *keys);
    int code;
    if (!keys) return refused(HIKV_FULL, c, "no memory for %lld keys", c->number);
    for (size_t i = 0; i < count; i++) {
        uint32_t key_len;
        memcpy(&key_len, at, 4);
        keys[i].data = at + 4;
        keys[i].len = key_len;
        at += 4 + key_len;
    }
    code = hikv_multi_get(c->store, c->tree, keys, count, c->out, c->cap, &len);
    free(keys);
    return length(code, len, c);
}

/* One page of a range whose bounds are the key and the value. `number` holds the kinds of the bounds in a byte each,
 * then the flags. The page stands behind a word, which is 0 if the range has no more items. */
static int64_t scan(const call *c, int is_transaction) {
    int lo_kind = (int)(c->number & 255), hi_kind = (int)(c->number >> 8 & 255), code;
    uint32_t flags = (uint32_t)(c->number >> 16), items;
    hikv_iter *iter;
    size_t len = 0, len_of_next;
    int64_t result;

    code = is_transaction ? hikv_tx_range(c->other, c->tree, c->key, lo_kind, c->value, hi_kind, flags, &iter)
                          : hikv_iter_new(c->store, c->tree, c->other, c->key, lo_kind, c->value, hi_kind, flags, &iter);
    if (code != HIKV_OK) return failed(code, c);
    code = hikv_iter_next(iter, c->out + 8, c->cap - 8, &len, &items);
    if (code == HIKV_OK) {
        /* No item fits into no buffer. A transaction reads no item before it is asked for it. */
        uint64_t has_more = is_transaction || hikv_iter_next(iter, NULL, 0, &len_of_next, &items) != HIKV_END;
        memcpy(c->out, &has_more, 8);
    }
    result = length(code, len + 8, c);
    hikv_iter_free(iter);
    return result;
}

/* With HIKV_UNMET, the condition's number stands before the text. */
static int64_t write_batch(const call *c) {
    size_t unmet = 0;
    int code = hikv_write(c->store, c->tree, c->key.data, c->key.len, &unmet);
    if (code != HIKV_UNMET) return done(code, c);
    memcpy(c->out, &unmet, 8);
    hikv_last_error(c->out + 8, c->cap - 8);
    return code;
}

static int64_t run(int op, const call *c) {
    hikv_slice key = c->key, value = c->value;
    uint64_t found = 0;
    size_t len = 0;
    int code;
    switch (op) {
    case OP_ALLOCATE: return (int64_t)(intptr_t)malloc((size_t)c->number);
    case OP_FREE: free(c->other); return 0;
    case OP_OPEN: return open_store(c);
    case OP_CLOSE: return done(hikv_close(c->store), c);
    case OP_SYNC: return done(hikv_sync(c->store), c);
    case OP_LEN: code = hikv_len(c->store, c->tree, &found); return length(code, found, c);
    case OP_STATS: code = hikv_stats(c->store, c->out, c->cap, &len); return length(code, len, c);
    case OP_BACKUP: return done(hikv_backup(c->store, key.data, key.len), c);
    case OP_VERSION: len = strlen(hikv_version()); memcpy(c->out, hikv_version(), len); return (int64_t)len;
    case OP_PROTOCOL: return 1;
    case OP_GET: code = hikv_get(c->store, c->tree, key, c->out, c->cap, &len); return length(code, len, c);
    case OP_GET_VERSION: {
        /* The version, then the value. */
        uint64_t version[2];
        code = hikv_get_version(c->store, c->tree, key, version, c->out + 16, c->cap - 16, &len);
        if (code == HIKV_OK) memcpy(c->out, version, 16);
        return length(code, len + 16, c);
    }
    case OP_MULTI_GET: return multi_get(c);
    case OP_CONTAINS: return done(hikv_contains(c->store, c->tree, key), c);
    case OP_SCAN: return scan(c, 0);
    case OP_PUT: return done(hikv_put(c->store, c->tree, key, value), c);
    case OP_PUT_TTL: return done(hikv_put_ttl(c->store, c->tree, key, value, (uint64_t)c->number), c);
    case OP_INSERT: return done(hikv_insert(c->store, c->tree, key, value), c);
    case OP_DELETE: return done(hikv_delete(c->store, c->tree, key), c);
    case OP_INCREMENT: {
        int64_t sum;
        code = hikv_increment(c->store, c->tree, key, c->number, &sum);
        return number(code, &sum, c);
    }
    case OP_CLEAR: return done(hikv_clear(c->store, c->tree), c);
    case OP_DELETE_RANGE: code = hikv_delete_range(c->store, c->tree, key, value, &found); return length(code, found, c);
    case OP_WRITE: return write_batch(c);
    case OP_DEFERRED_WRITE: code = hikv_deferred_write(c->store, c->tree, key.data, key.len, &found); return number(code, &found, c);
    case OP_IS_DURABLE: return done(hikv_is_durable(c->store, (uint64_t)c->number), c);
    case OP_WAIT: return done(hikv_wait(c->store, (uint64_t)c->number), c);
    case OP_SNAPSHOT_NEW: {
        hikv_snapshot *snapshot;
        code = hikv_snapshot_new(c->store, &snapshot);
        return handle(code, snapshot, c);
    }
    case OP_SNAPSHOT_FREE: hikv_snapshot_free(c->other); return 0;
    case OP_SNAPSHOT_GET: code = hikv_snapshot_get(c->other, c->tree, key, c->out, c->cap, &len); return length(code, len, c);
    case OP_TREE_OPEN: {
        hikv_tree *tree;
        code = hikv_tree_open(c->store, key, (uint32_t)c->number, &tree);
        return handle(code, tree, c);
    }
    case OP_TREE_CLOSE: hikv_tree_close(c->tree); return 0;
    case OP_TREE_LIST: {
        uint32_t items;
        code = hikv_tree_list(c->store, c->out, c->cap, &len, &items);
        return length(code, len, c);
    }
    case OP_TREE_RENAME: return done(hikv_tree_rename(c->store, key, value), c);
    case OP_TREE_SWAP: return done(hikv_tree_swap(c->store, key, value), c);
    case OP_TREE_DROP: return done(hikv_tree_drop(c->store, key), c);
    case OP_BEGIN: {
        hikv_tx *tx;
        code = hikv_begin(c->store, &tx);
        return handle(code, tx, c);
    }
    case OP_TX_GET: code = hikv_tx_get(c->other, c->tree, key, c->out, c->cap, &len); return length(code, len, c);
    case OP_TX_PUT: return done(hikv_tx_put(c->other, c->tree, key, value), c);
    case OP_TX_DELETE: return done(hikv_tx_delete(c->other, c->tree, key), c);
    case OP_TX_SCAN: return scan(c, 1);
    case OP_TX_CHECK: return done(hikv_tx_check(c->other), c);
    case OP_TX_COMMIT: return done(hikv_tx_commit(c->other), c);
    case OP_TX_ABORT: return done(hikv_tx_abort(c->other), c);
    default: return refused(HIKV_OPTION, c, "libhikv_java does not know operation %lld; it belongs to another hikv.jar", op);
    }
}

int64_t hikv_java_call(int32_t op, int64_t store, int64_t tree, int64_t other, int64_t in, int64_t key_len, int64_t value_len, int64_t number,
                       int64_t out, int64_t cap);

int64_t hikv_java_call(int32_t op, int64_t store, int64_t tree, int64_t other, int64_t in, int64_t key_len, int64_t value_len, int64_t number,
                       int64_t out, int64_t cap) {
    const char *key = (const char *)(intptr_t)in;
    call c = {
        (hikv_store *)(intptr_t)store, (hikv_tree *)(intptr_t)tree, (void *)(intptr_t)other,
        {key, (size_t)key_len}, {key + key_len, (size_t)value_len}, number, (char *)(intptr_t)out, (size_t)cap
    };
    return run(op, &c);
}

JNIEXPORT jlong JNICALL Java_io_hikv_Jni_invoke(JNIEnv *env, jclass class, jint op, jlong store, jlong tree, jlong other, jlong in, jlong key_len,
                                                jlong value_len, jlong number, jlong out, jlong cap) {
    (void)env, (void)class;
    return hikv_java_call(op, store, tree, other, in, key_len, value_len, number, out, cap);
}

JNIEXPORT jobject JNICALL Java_io_hikv_Jni_buffer(JNIEnv *env, jclass class, jlong address, jlong len) {
    (void)class;
    return (*env)->NewDirectByteBuffer(env, (void *)(intptr_t)address, len);
}
