/* hikv: an embedded key-value store for persistent memory, tmpfs and ordinary disks. docs/c.md has a first program.
 *
 * Results. HIKV_OK is 0. A positive result is an expected answer, such as HIKV_ABSENT. A negative one is an error;
 * hikv_last_error then has its text, which belongs to the calling thread. Nothing has changed after an error, unless the
 * function says otherwise.
 *
 * Handles. All threads may use a hikv_store, a hikv_tree and a hikv_snapshot at the same time. One thread at a time uses a
 * hikv_iter, or a hikv_tx with its iterators. Each handle is freed once, by the function named with its type, and not while another
 * thread uses it. A null handle is HIKV_OPTION, except where a tree or a snapshot may be null: a null tree stands for the store's own
 * keys. Freeing null does nothing.
 *
 * Bytes. Keys and values are copied. A null pointer with length 0 is empty. Functions that return bytes take a buffer
 * (`out`, `cap`), and set `*len`. If the buffer is too short they return HIKV_SHORT, `*len` is the length that it needs, and the
 * buffer's content is undefined. With `cap` 0, `out` may be null.
 *
 * Fork. In the child process, all calls but those that free a handle return HIKV_FORKED.
 *
 * Callbacks return normally: no exception and no longjmp leaves them. After HIKV_INSIDE_CALLBACK nothing was freed.
 */
#ifndef HIKV_H
#define HIKV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HIKV_ABI 1

/* An open store. Freed by hikv_close. */
typedef struct hikv_store hikv_store;
/* A tree with a name. Freed by hikv_tree_close. */
typedef struct hikv_tree hikv_tree;
/* The store at one moment. Freed by hikv_snapshot_free. */
typedef struct hikv_snapshot hikv_snapshot;
/* An iterator in the order of keys. Freed by hikv_iter_free. */
typedef struct hikv_iter hikv_iter;
/* A transaction. Freed by hikv_tx_commit or hikv_tx_abort. */
typedef struct hikv_tx hikv_tx;

/* Some bytes: a key, a value or a name. */
typedef struct hikv_slice {
    const void *data;
    size_t len;
} hikv_slice;

/* Results. */
enum {
    HIKV_OK = 0,
    HIKV_ABSENT = 1,  /* the key is absent */
    HIKV_END = 1,     /* the iterator has no more items */
    HIKV_PENDING = 1, /* not durable yet */
    HIKV_SHORT = 2,   /* the buffer is too short */
    HIKV_EXISTS = 3,  /* the key exists */

    HIKV_ERROR = -1,            /* any other error */
    HIKV_MISSING = -2,          /* there is no store */
    HIKV_LOCKED = -3,           /* another process, or another handle of this one, has the store open */
    HIKV_UNUSABLE = -4,         /* the path is no store, or one of another engine */
    HIKV_DURABILITY = -5,       /* the storage does not provide the durability */
    HIKV_OPTION = -6,           /* an argument is invalid */
    HIKV_IO = -7,               /* the operating system refused */
    HIKV_FULL = -8,             /* no space left */
    HIKV_KEY_SIZE = -9,         /* the key is too long */
    HIKV_VALUE_SIZE = -10,      /* the value is too long */
    HIKV_BATCH_SIZE = -11,      /* the batch is too large */
    HIKV_UNMET = -12,           /* a condition does not hold */
    HIKV_UNSUPPORTED = -13,     /* the engine, or the store as it was opened, lacks this operation */
    HIKV_FORKED = -14,          /* the store was opened before a fork */
    HIKV_READ_ONLY = -15,       /* the store was opened for reading */
    HIKV_DAMAGED = -16,         /* the store's bytes are damaged */
    HIKV_BUSY = -17,            /* other handles or operations are in the way */
    HIKV_INSIDE_CALLBACK = -18, /* the call cannot be made inside a callback */
    HIKV_FORMAT = -19,          /* the store has the format of another version of hikv */
    HIKV_PANIC = -20,           /* a fault of hikv: the store refuses everything from now on; open it again */
    HIKV_CONFLICT = -21,        /* another thread has changed what the transaction has read */
    HIKV_CONTENDED = -22,       /* the transaction was tried as often as allowed */
    HIKV_NO_SUCH_TREE = -23,    /* there is no tree of this name, or it was dropped */
    HIKV_TREE_EXISTS = -24,     /* there is a tree of this name */
    HIKV_NOT_A_NUMBER = -25     /* the value is no 64-bit integer, or the sum would be none */
};

/* Flags of hikv_options and hikv_tree_open. */
enum {
    HIKV_CREATE = 1, /* create it if it is missing */
    HIKV_OPEN_READ_ONLY = 2,
    HIKV_UNORDERED = 4, /* no order of keys, so no iterators */
    HIKV_HUGE_PAGES = 8,
    HIKV_NO_BACKGROUND = 16 /* no threads of the store */
};

/* Levels of durability: what an acknowledged write survives. */
enum {
    HIKV_HIGHEST = 0,  /* as much as the storage allows */
    HIKV_PROCESS = 1,  /* the end of the process */
    HIKV_BUFFERED = 2, /* a power failure, except the last writes */
    HIKV_POWER = 3     /* a power failure */
};

/* Options of hikv_open. Later versions add members at the end. 0 and null stand for defaults, except in `flags`. */
typedef struct hikv_options {
    size_t size;        /* the size of this structure, set by hikv_options_init */
    const char *engine; /* of a new store: "hikv", "ink", "pmekv" or "rewo-hash" */
    uint32_t flags;     /* HIKV_CREATE and HIKV_HUGE_PAGES after hikv_options_init */
    int durability;
    uint64_t region_bytes_max; /* the longest region */
    uint64_t log_bytes_max;    /* the longest log of a journal */
    uint64_t read_cache_bytes;
    uint64_t sync_interval_us; /* at HIKV_BUFFERED */
    uint32_t background_threads;
    uint32_t reserved; /* 0 */
} hikv_options;

/* Fills in the defaults: hikv_options_init(&options, sizeof options). */
void hikv_options_init(hikv_options *options, size_t size);

/* Opens the store in a directory or on a DAX device. `options` may be null. */
int hikv_open(const char *path, size_t path_len, const hikv_options *options, hikv_store **out);
/* Closes the store. With live trees, snapshots, iterators or transactions: HIKV_BUSY, and nothing has happened. After any other
 * result the handle is gone; an error then says that the last writes may not be durable. */
int hikv_close(hikv_store *store);
/* Makes every write that has returned as durable as the storage allows. */
int hikv_sync(hikv_store *store);
int hikv_len(hikv_store *store, hikv_tree *tree, uint64_t *out);
/* Figures of the store, as JSON. */
int hikv_stats(hikv_store *store, void *out, size_t cap, size_t *len);
/* Copies the store to a new directory, while it is in use. */
int hikv_backup(hikv_store *store, const char *place, size_t place_len);

/* HIKV_ABSENT if the key is absent. */
int hikv_get(hikv_store *store, hikv_tree *tree, hikv_slice key, void *out, size_t cap, size_t *len);
/* Like hikv_get, and returns the version for HIKV_EXPECT_VERSION. It is set even if the buffer is too short. */
int hikv_get_version(hikv_store *store, hikv_tree *tree, hikv_slice key, uint64_t version[2], void *out, size_t cap, size_t *len);
/* Calls `read` with the value in place. `read` should be quick, and must not call the store (HIKV_INSIDE_CALLBACK). */
int hikv_get_with(hikv_store *store, hikv_tree *tree, hikv_slice key, void (*read)(void *context, const void *value, size_t len), void *context);
/* Copies the values of `n` keys into a page (see hikv_iter_next): one item for each key, in their order, with an empty key. The value
 * length of an absent key is UINT32_MAX, and no value follows. */
int hikv_multi_get(hikv_store *store, hikv_tree *tree, const hikv_slice *keys, size_t n, void *out, size_t cap, size_t *len);
/* HIKV_OK if the key is present, HIKV_ABSENT if not. */
int hikv_contains(hikv_store *store, hikv_tree *tree, hikv_slice key);

/* Durable when it returns, as are all writes, at the store's level. */
int hikv_put(hikv_store *store, hikv_tree *tree, hikv_slice key, hikv_slice value);
/* The key expires after so many milliseconds. */
int hikv_put_ttl(hikv_store *store, hikv_tree *tree, hikv_slice key, hikv_slice value, uint64_t ttl_ms);
/* Puts the key if it is absent. HIKV_EXISTS if it is present. */
int hikv_insert(hikv_store *store, hikv_tree *tree, hikv_slice key, hikv_slice value);
/* HIKV_ABSENT if the key was absent. */
int hikv_delete(hikv_store *store, hikv_tree *tree, hikv_slice key);
/* Adds to a number in decimal text; an absent key counts as 0. `out` may be null. */
int hikv_increment(hikv_store *store, hikv_tree *tree, hikv_slice key, int64_t by, int64_t *out);
/* Deletes all keys in one step. */
int hikv_clear(hikv_store *store, hikv_tree *tree);
/* Deletes the keys from `lo` on and below `hi`, one by one. `out`, the number of deleted keys, may be null. */
int hikv_delete_range(hikv_store *store, hikv_tree *tree, hikv_slice lo, hikv_slice hi, uint64_t *out);

/* Operations of a batch, one after the other without gaps, numbers in little-endian order:
 *   u8 kind, u32 length of the key, u32 length of the value, key, value
 * HIKV_OP_PUT_UNTIL has a u64 before the value, which does not count in the value's length: milliseconds since 1970.
 * HIKV_OP_EXPECT_VERSION has 16 bytes as its value, the two words of hikv_get_version.
 * HIKV_OP_TREE names a tree as its key: further operations and conditions apply to it.
 * Where an operation has no value, its length is 0. Conditions hold before the batch, wherever they stand in it. */
enum {
    HIKV_OP_PUT = 1,
    HIKV_OP_DELETE = 2,
    HIKV_OP_PUT_UNTIL = 3,
    HIKV_OP_EXPECT_ABSENT = 16,
    HIKV_OP_EXPECT_VERSION = 17,
    HIKV_OP_TREE = 32
};
/* Applies all operations as one step, for readers and for a crash. HIKV_UNMET: `*unmet`, which may be null, is the number of the
 * condition, from 0. HIKV_OPTION: an unknown kind, or the buffer ends within an operation. */
int hikv_write(hikv_store *store, hikv_tree *tree, const void *ops, size_t len, size_t *unmet);
/* Like hikv_write, without a wait for the disk. The result may be reported once the ticket is durable. A ticket is valid until the
 * store is closed. A number that is no ticket of this store may be HIKV_PENDING for ever; hikv_wait returns, and its result says nothing. */
int hikv_deferred_write(hikv_store *store, hikv_tree *tree, const void *ops, size_t len, uint64_t *ticket);
/* HIKV_OK or HIKV_PENDING. Does not wait. */
int hikv_is_durable(hikv_store *store, uint64_t ticket);
int hikv_wait(hikv_store *store, uint64_t ticket);

int hikv_snapshot_new(hikv_store *store, hikv_snapshot **out);
void hikv_snapshot_free(hikv_snapshot *snapshot);
/* Reads the tree that had this tree's name at the snapshot. HIKV_NO_SUCH_TREE if there was none. */
int hikv_snapshot_get(hikv_snapshot *snapshot, hikv_tree *tree, hikv_slice key, void *out, size_t cap, size_t *len);

/* Bounds of an iterator. */
enum {
    HIKV_UNBOUNDED = 0,
    HIKV_INCLUDED = 1,
    HIKV_EXCLUDED = 2,
    HIKV_PREFIX = 3 /* of `lo`: all keys that begin with it; `hi` is then HIKV_UNBOUNDED */
};
/* Flags of an iterator. */
enum {
    HIKV_BACK = 1, /* from the greatest key to the least */
    HIKV_KEYS = 2  /* keys only: all values are empty */
};
/* A further flag of an iterator: at most n items (1 to 2^24 - 1) in a page. No item behind them is read, so that none counts as read by
 * a transaction. */
#define HIKV_ITEMS(n) ((uint32_t)(n) << 8)
/* Iterates over the present items, or those of a snapshot. */
int hikv_iter_new(hikv_store *store, hikv_tree *tree, hikv_snapshot *snapshot, hikv_slice lo, int lo_kind, hikv_slice hi, int hi_kind, uint32_t flags, hikv_iter **out);
/* Fills a page with as many items as fit, at least one: u32 length of the key, u32 length of the value, key, value. Numbers are in
 * little-endian order. `*items` is their count, `*len` the length of the page. HIKV_SHORT: not even one item fits; call again with a
 * longer page. HIKV_END: there are no more. */
int hikv_iter_next(hikv_iter *iter, void *out, size_t cap, size_t *len, uint32_t *items);
void hikv_iter_free(hikv_iter *iter);

/* Opens a tree by its name (1 to 255 bytes of UTF-8), and creates it with HIKV_CREATE. */
int hikv_tree_open(hikv_store *store, hikv_slice name, uint32_t flags, hikv_tree **out);
void hikv_tree_close(hikv_tree *tree);
/* Writes a page (see hikv_iter_next) whose keys are the names, in their order. */
int hikv_tree_list(hikv_store *store, void *out, size_t cap, size_t *len, uint32_t *items);
int hikv_tree_rename(hikv_store *store, hikv_slice from, hikv_slice to);
/* Exchanges the keys of two trees in one step. */
int hikv_tree_swap(hikv_store *store, hikv_slice a, hikv_slice b);
int hikv_tree_drop(hikv_store *store, hikv_slice name);

/* Begins a transaction that its owner commits; a conflict is for the owner to repeat. */
int hikv_begin(hikv_store *store, hikv_tx **out);
int hikv_tx_get(hikv_tx *tx, hikv_tree *tree, hikv_slice key, void *out, size_t cap, size_t *len);
int hikv_tx_put(hikv_tx *tx, hikv_tree *tree, hikv_slice key, hikv_slice value);
/* HIKV_OK also if the key is absent: it is not read. */
int hikv_tx_delete(hikv_tx *tx, hikv_tree *tree, hikv_slice key);
/* The iterator ends with the transaction, and is freed as any other. */
int hikv_tx_range(hikv_tx *tx, hikv_tree *tree, hikv_slice lo, int lo_kind, hikv_slice hi, int hi_kind, uint32_t flags, hikv_iter **out);
/* HIKV_CONFLICT if the transaction cannot commit because a key that it has read has changed. */
int hikv_tx_check(hikv_tx *tx);
/* Writes everything as one step, and frees the transaction, whatever the result. Exception: that of hikv_transact gives HIKV_OPTION, and
 * stays. */
int hikv_tx_commit(hikv_tx *tx);
int hikv_tx_abort(hikv_tx *tx);

/* Flags of hikv_transact_options. */
enum {
    HIKV_EXCLUSIVE_FIRST = 1, /* shut out other writers from the first attempt on */
    HIKV_NEVER_EXCLUSIVE = 2  /* never shut out other writers */
};
typedef struct hikv_transact_options {
    size_t size;       /* sizeof(hikv_transact_options) */
    uint32_t flags;
    uint32_t attempts; /* the most attempts; 0: any number */
} hikv_transact_options;
/* Runs `body` in a transaction and commits it if `body` returns 0. After a conflict, `body` runs again, so it must have no effects but
 * those on `tx`. If it returns anything else, nothing is written, and that is the result. A body passes on the errors of its calls. It
 * must not write past `tx`, nor keep or end `tx`. `options` may be null. */
int hikv_transact(hikv_store *store, const hikv_transact_options *options, int (*body)(hikv_tx *tx, void *context), void *context);

/* Copies the text of this thread's last error, cut to `cap` bytes with the final zero. Returns its whole length. */
size_t hikv_last_error(char *out, size_t cap);
/* The version of the library, as text. */
const char *hikv_version(void);
/* HIKV_ABI of the library. */
uint32_t hikv_abi(void);

#ifdef __cplusplus
}
#endif

#endif
