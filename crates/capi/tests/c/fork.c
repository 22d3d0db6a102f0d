/* The child of a fork can only free its parent's handles. */
#include "check.h"

#include <sys/wait.h>
#include <unistd.h>

static void never_read(void *context, const void *value, size_t len) {
    (void)value;
    CHECK(!context && len > 1000);
}

static int never_run(hikv_tx *tx, void *context) {
    (void)tx;
    CHECK(context);
    return HIKV_OK;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    hikv_store *store = opened(in(argv[1], "store"));
    hikv_tree *tree = NULL, *late = NULL;
    hikv_snapshot *snapshot = NULL, *late_snapshot = NULL;
    hikv_iter *iter = NULL, *late_iter = NULL;
    hikv_tx *tx = NULL, *late_tx = NULL;
    GIVES(HIKV_OK, hikv_put(store, NULL, text("a"), text("1")));
    GIVES(HIKV_OK, hikv_put(store, NULL, text("b"), text("2")));
    GIVES(HIKV_OK, hikv_tree_open(store, text("tree"), HIKV_CREATE, &tree));
    GIVES(HIKV_OK, hikv_snapshot_new(store, &snapshot));
    GIVES(HIKV_OK, hikv_iter_new(store, NULL, NULL, NONE, HIKV_UNBOUNDED, NONE, HIKV_UNBOUNDED, 0, &iter));
    GIVES(HIKV_OK, hikv_begin(store, &tx));
    unsigned char page[100];
    size_t len = 0;
    uint32_t items = 0;
    uint64_t count = 0, version[2];
    /* The second item is in the iterator's memory already. */
    GIVES(HIKV_OK, hikv_iter_next(iter, page, 10, &len, &items));
    CHECK(items == 1);

    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        hikv_slice key = text("a");
        GIVES(HIKV_FORKED, hikv_get(store, NULL, key, page, sizeof page, &len));
        GIVES(HIKV_FORKED, hikv_get_version(store, NULL, key, version, page, sizeof page, &len));
        GIVES(HIKV_FORKED, hikv_get_with(store, NULL, key, never_read, NULL));
        GIVES(HIKV_FORKED, hikv_contains(store, NULL, key));
        GIVES(HIKV_FORKED, hikv_multi_get(store, NULL, &key, 1, page, sizeof page, &len));
        GIVES(HIKV_FORKED, hikv_put(store, NULL, key, key));
        GIVES(HIKV_FORKED, hikv_put_ttl(store, NULL, key, key, 1000));
        GIVES(HIKV_FORKED, hikv_insert(store, NULL, key, key));
        GIVES(HIKV_FORKED, hikv_delete(store, NULL, key));
        GIVES(HIKV_FORKED, hikv_increment(store, NULL, text("n"), 1, NULL));
        GIVES(HIKV_FORKED, hikv_clear(store, NULL));
        GIVES(HIKV_FORKED, hikv_delete_range(store, NULL, NONE, key, NULL));
        GIVES(HIKV_FORKED, hikv_write(store, NULL, NULL, 0, NULL));
        GIVES(HIKV_FORKED, hikv_deferred_write(store, NULL, NULL, 0, &count));
        GIVES(HIKV_FORKED, hikv_is_durable(store, 0));
        GIVES(HIKV_FORKED, hikv_wait(store, 0));
        GIVES(HIKV_FORKED, hikv_sync(store));
        GIVES(HIKV_FORKED, hikv_len(store, NULL, &count));
        GIVES(HIKV_FORKED, hikv_stats(store, page, sizeof page, &len));
        GIVES(HIKV_FORKED, hikv_backup(store, "/tmp/never", 10));
        GIVES(HIKV_FORKED, hikv_snapshot_new(store, &late_snapshot));
        GIVES(HIKV_FORKED, hikv_snapshot_get(snapshot, NULL, key, page, sizeof page, &len));
        GIVES(HIKV_FORKED, hikv_iter_new(store, NULL, NULL, NONE, HIKV_UNBOUNDED, NONE, HIKV_UNBOUNDED, 0, &late_iter));
        GIVES(HIKV_FORKED, hikv_iter_next(iter, page, sizeof page, &len, &items));
        GIVES(HIKV_FORKED, hikv_tree_open(store, text("late"), HIKV_CREATE, &late));
        GIVES(HIKV_FORKED, hikv_tree_list(store, page, sizeof page, &len, &items));
        GIVES(HIKV_FORKED, hikv_tree_rename(store, text("tree"), text("other")));
        GIVES(HIKV_FORKED, hikv_tree_swap(store, text("tree"), text("other")));
        GIVES(HIKV_FORKED, hikv_tree_drop(store, text("tree")));
        GIVES(HIKV_FORKED, hikv_begin(store, &late_tx));
        GIVES(HIKV_FORKED, hikv_transact(store, NULL, never_run, NULL));
        GIVES(HIKV_FORKED, hikv_tx_range(tx, NULL, NONE, HIKV_UNBOUNDED, NONE, HIKV_UNBOUNDED, 0, &late_iter));
        GIVES(HIKV_FORKED, hikv_tx_get(tx, NULL, key, page, sizeof page, &len));
        GIVES(HIKV_FORKED, hikv_tx_put(tx, NULL, key, key));
        GIVES(HIKV_FORKED, hikv_tx_delete(tx, NULL, key));
        GIVES(HIKV_FORKED, hikv_tx_check(tx));
        GIVES(HIKV_FORKED, hikv_tx_commit(tx));
        hikv_iter_free(iter);
        hikv_snapshot_free(snapshot);
        hikv_tree_close(tree);
        GIVES(HIKV_OK, hikv_close(store));
        _exit(0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);

    /* The parent goes on. */
    GIVES(HIKV_OK, hikv_iter_next(iter, page, sizeof page, &len, &items));
    hikv_iter_free(iter);
    hikv_snapshot_free(snapshot);
    hikv_tree_close(tree);
    GIVES(HIKV_OK, hikv_tx_put(tx, NULL, text("c"), text("3")));
    GIVES(HIKV_OK, hikv_tx_commit(tx));
    CHECK(is_value(store, NULL, "a", "1") && is_value(store, NULL, "c", "3"));
    GIVES(HIKV_OK, hikv_close(store));
    return 0;
}
