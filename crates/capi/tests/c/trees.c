/* Trees and transactions. */
#include "check.h"

#include <pthread.h>

static hikv_tree *tree(hikv_store *store, const char *name) {
    hikv_tree *tree = NULL;
    GIVES(HIKV_OK, hikv_tree_open(store, text(name), HIKV_CREATE, &tree));
    return tree;
}

static void named_trees(hikv_store *store, hikv_store *other) {
    hikv_tree *absent = NULL, *jobs = tree(store, "jobs"), *users = tree(store, "users");
    GIVES(HIKV_NO_SUCH_TREE, hikv_tree_open(store, text("absent"), 0, &absent));
    GIVES(HIKV_OPTION, hikv_tree_open(store, text("absent"), 6, &absent));
    GIVES(HIKV_OPTION, hikv_tree_open(store, text(""), HIKV_CREATE, &absent));
    GIVES(HIKV_OPTION, hikv_tree_open(store, bytes("\xff", 1), HIKV_CREATE, &absent));
    CHECK(!absent);
    GIVES(HIKV_OK, hikv_put(store, jobs, text("1"), text("resize")));
    GIVES(HIKV_OK, hikv_put(store, users, text("1"), text("ann")));
    GIVES(HIKV_ABSENT, hikv_contains(store, NULL, text("1")));
    CHECK(is_value(store, jobs, "1", "resize") && is_value(store, users, "1", "ann"));
    GIVES(HIKV_OPTION, hikv_put(other, jobs, text("1"), text("x")));

    /* A batch over three trees. */
    unsigned char ops[200];
    size_t len = op(ops, 0, HIKV_OP_DELETE, text("1"), NONE, NULL);
    len = op(ops, len, HIKV_OP_TREE, text("users"), NONE, NULL);
    len = op(ops, len, HIKV_OP_PUT, text("2"), text("bob"), NULL);
    GIVES(HIKV_OK, hikv_write(store, jobs, ops, len, NULL));
    GIVES(HIKV_ABSENT, hikv_contains(store, jobs, text("1")));
    CHECK(is_value(store, users, "2", "bob"));

    hikv_snapshot *snapshot = NULL;
    char value[10];
    GIVES(HIKV_OK, hikv_snapshot_new(store, &snapshot));
    hikv_tree *late = tree(store, "late");
    GIVES(HIKV_NO_SUCH_TREE, hikv_snapshot_get(snapshot, late, text("1"), value, sizeof value, &len));
    GIVES(HIKV_OK, hikv_tree_swap(store, text("jobs"), text("users")));
    CHECK(is_value(store, jobs, "2", "bob"));
    GIVES(HIKV_OK, hikv_snapshot_get(snapshot, users, text("2"), value, sizeof value, &len));
    GIVES(HIKV_ABSENT, hikv_snapshot_get(snapshot, jobs, text("2"), value, sizeof value, &len));
    hikv_snapshot_free(snapshot);
    hikv_tree_close(late);

    GIVES(HIKV_TREE_EXISTS, hikv_tree_rename(store, text("jobs"), text("users")));
    GIVES(HIKV_OK, hikv_tree_rename(store, text("jobs"), text("tasks")));
    /* A snapshot finds the tree by its present name, not by that of another tree which has its old one. */
    hikv_tree *second = tree(store, "jobs");
    GIVES(HIKV_OK, hikv_snapshot_new(store, &snapshot));
    GIVES(HIKV_OK, hikv_snapshot_get(snapshot, jobs, text("2"), value, sizeof value, &len));
    GIVES(HIKV_ABSENT, hikv_snapshot_get(snapshot, second, text("2"), value, sizeof value, &len));
    hikv_snapshot *elsewhere = NULL;
    GIVES(HIKV_OK, hikv_snapshot_new(other, &elsewhere));
    GIVES(HIKV_OPTION, hikv_snapshot_get(elsewhere, jobs, text("2"), value, sizeof value, &len));
    hikv_snapshot_free(elsewhere);
    hikv_snapshot_free(snapshot);
    hikv_tree_close(second);
    GIVES(HIKV_OK, hikv_tree_drop(store, text("jobs")));
    GIVES(HIKV_OK, hikv_clear(store, jobs));
    GIVES(HIKV_ABSENT, hikv_contains(store, jobs, text("2")));
    GIVES(HIKV_OK, hikv_tree_drop(store, text("tasks")));
    GIVES(HIKV_NO_SUCH_TREE, hikv_tree_drop(store, text("tasks")));
    GIVES(HIKV_NO_SUCH_TREE, hikv_put(store, jobs, text("2"), text("x")));

    unsigned char page[40];
    uint32_t items = 0;
    GIVES(HIKV_OK, hikv_tree_list(store, page, sizeof page, &len, &items));
    CHECK(items == 2 && len == 25 && memcmp(page + 8, "late", 4) == 0 && memcmp(page + 20, "users", 5) == 0);
    GIVES(HIKV_SHORT, hikv_tree_list(store, page, 24, &len, &items));
    CHECK(len == 25);
    GIVES(HIKV_BUSY, hikv_close(store));
    hikv_tree_close(jobs);
    hikv_tree_close(users);
}

/* A page of one item reads no other one: a transaction that takes the first job commits, though another thread has taken the second. */
static void limited_pages(hikv_store *store) {
    hikv_tree *jobs = tree(store, "limited");
    hikv_tx *tx = NULL;
    hikv_iter *iter = NULL;
    unsigned char page[100];
    size_t len = 0;
    uint32_t items = 0, flags[2] = {HIKV_ITEMS(1), HIKV_ITEMS(2)};
    for (int i = 0; i < 2; i++) {
        GIVES(HIKV_OK, hikv_put(store, jobs, text("1"), text("a")));
        GIVES(HIKV_OK, hikv_put(store, jobs, text("2"), text("b")));
        GIVES(HIKV_OK, hikv_put(store, jobs, text("3"), text("c")));
        GIVES(HIKV_OK, hikv_begin(store, &tx));
        GIVES(HIKV_OK, hikv_tx_range(tx, jobs, NONE, HIKV_UNBOUNDED, NONE, HIKV_UNBOUNDED, flags[i], &iter));
        GIVES(HIKV_OK, hikv_iter_next(iter, page, sizeof page, &len, &items));
        CHECK(items == flags[i] >> 8);
        GIVES(HIKV_OK, hikv_delete(store, jobs, text("2")));
        GIVES(HIKV_OK, hikv_tx_delete(tx, jobs, text("1")));
        hikv_iter_free(iter);
        GIVES(items == 1 ? HIKV_OK : HIKV_CONFLICT, hikv_tx_commit(tx));
    }
    GIVES(HIKV_OK, hikv_iter_new(store, jobs, NULL, NONE, HIKV_UNBOUNDED, NONE, HIKV_UNBOUNDED, HIKV_ITEMS(1), &iter));
    GIVES(HIKV_OK, hikv_iter_next(iter, page, sizeof page, &len, &items));
    CHECK(items == 1 && page[8] == '1');
    GIVES(HIKV_OK, hikv_iter_next(iter, page, sizeof page, &len, &items));
    CHECK(items == 1 && page[8] == '3');
    GIVES(HIKV_END, hikv_iter_next(iter, page, sizeof page, &len, &items));
    hikv_iter_free(iter);
    hikv_tree_close(jobs);
}

static void own_commits(hikv_store *store) {
    hikv_tree *users = tree(store, "users");
    hikv_tx *tx = NULL;
    hikv_iter *iter = NULL;
    char value[10];
    unsigned char page[100];
    size_t len = 0;
    uint32_t items = 0;
    GIVES(HIKV_OK, hikv_put(store, NULL, text("left"), text("1")));
    GIVES(HIKV_OK, hikv_begin(store, &tx));
    GIVES(HIKV_OK, hikv_tx_get(tx, NULL, text("left"), value, sizeof value, &len));
    GIVES(HIKV_SHORT, hikv_tx_get(tx, NULL, text("left"), NULL, 0, &len));
    GIVES(HIKV_OK, hikv_tx_put(tx, NULL, text("right"), text("2")));
    GIVES(HIKV_OK, hikv_tx_put(tx, users, text("right"), text("3")));
    GIVES(HIKV_OK, hikv_tx_delete(tx, NULL, text("left")));
    GIVES(HIKV_ABSENT, hikv_tx_get(tx, NULL, text("left"), value, sizeof value, &len));
    GIVES(HIKV_OK, hikv_tx_range(tx, NULL, NONE, HIKV_UNBOUNDED, NONE, HIKV_UNBOUNDED, 0, &iter));
    GIVES(HIKV_OK, hikv_iter_next(iter, page, sizeof page, &len, &items));
    CHECK(items == 1 && memcmp(page + 8, "right2", 6) == 0);
    hikv_iter *waiting = NULL;
    GIVES(HIKV_OK, hikv_tx_range(tx, NULL, NONE, HIKV_UNBOUNDED, NONE, HIKV_UNBOUNDED, 0, &waiting));
    GIVES(HIKV_SHORT, hikv_iter_next(waiting, page, 8, &len, &items));
    GIVES(HIKV_ABSENT, hikv_contains(store, NULL, text("right")));
    GIVES(HIKV_BUSY, hikv_close(store));
    GIVES(HIKV_OK, hikv_tx_check(tx));
    GIVES(HIKV_OK, hikv_tx_commit(tx));
    /* The iterators have ended with their transaction, also the one that has read an item without space for it. */
    GIVES(HIKV_OPTION, hikv_iter_next(iter, page, sizeof page, &len, &items));
    GIVES(HIKV_OPTION, hikv_iter_next(waiting, page, sizeof page, &len, &items));
    hikv_iter_free(waiting);
    hikv_iter_free(iter);
    CHECK(is_value(store, NULL, "right", "2") && is_value(store, users, "right", "3"));

    GIVES(HIKV_OK, hikv_begin(store, &tx));
    GIVES(HIKV_OK, hikv_tx_get(tx, NULL, text("right"), value, sizeof value, &len));
    GIVES(HIKV_OK, hikv_tx_put(tx, NULL, text("copy"), text("2")));
    GIVES(HIKV_OK, hikv_put(store, NULL, text("right"), text("4")));
    GIVES(HIKV_CONFLICT, hikv_tx_check(tx));
    GIVES(HIKV_CONFLICT, hikv_tx_commit(tx));
    GIVES(HIKV_ABSENT, hikv_contains(store, NULL, text("copy")));

    GIVES(HIKV_OK, hikv_begin(store, &tx));
    GIVES(HIKV_OK, hikv_tx_put(tx, NULL, text("copy"), text("2")));
    GIVES(HIKV_OK, hikv_tx_range(tx, users, text("r"), HIKV_PREFIX, NONE, HIKV_UNBOUNDED, HIKV_BACK | HIKV_KEYS, &iter));
    GIVES(HIKV_OK, hikv_tx_abort(tx));
    hikv_iter_free(iter);
    GIVES(HIKV_OK, hikv_tx_abort(NULL));
    GIVES(HIKV_ABSENT, hikv_contains(store, NULL, text("copy")));
    limited_pages(store);
    hikv_tree_close(users);
}

struct body {
    hikv_store *store;
    int attempts;
    int result;
    hikv_iter *kept;
};

static int add_one(hikv_tx *tx, void *context) {
    struct body *body = (struct body *)context;
    char value[24];
    size_t len = 0;
    body->attempts++;
    int found = hikv_tx_get(tx, NULL, text("count"), value, sizeof value - 1, &len);
    if (found < 0) return found;
    value[found == HIKV_OK ? len : 0] = 0;
    snprintf(value, sizeof value, "%d", atoi(value) + 1);
    CHECK(hikv_put(body->store, NULL, text("past"), text("x")) == HIKV_INSIDE_CALLBACK);
    CHECK(hikv_tx_commit(tx) == HIKV_OPTION && hikv_tx_abort(tx) == HIKV_OPTION);
    int put = hikv_tx_put(tx, NULL, text("count"), text(value));
    return put ? put : body->result;
}

static int keep_a_range(hikv_tx *tx, void *context) {
    struct body *body = (struct body *)context;
    unsigned char page[100];
    size_t len = 0;
    uint32_t items = 0;
    GIVES(HIKV_OK, hikv_tx_range(tx, NULL, NONE, HIKV_UNBOUNDED, NONE, HIKV_UNBOUNDED, 0, &body->kept));
    GIVES(HIKV_OK, hikv_iter_next(body->kept, page, sizeof page, &len, &items));
    return hikv_tx_put(tx, NULL, text("kept"), text("x"));
}

static void *disturb(void *store) {
    GIVES(HIKV_OK, hikv_increment((hikv_store *)store, NULL, text("count"), 1, NULL));
    return NULL;
}

/* Another thread changes the key during each attempt. */
static int lose(hikv_tx *tx, void *context) {
    struct body *body = (struct body *)context;
    char value[24];
    size_t len = 0;
    pthread_t other;
    body->attempts++;
    int found = hikv_tx_get(tx, NULL, text("count"), value, sizeof value, &len);
    if (found < 0) return found;
    CHECK(pthread_create(&other, NULL, disturb, body->store) == 0);
    CHECK(pthread_join(other, NULL) == 0);
    return hikv_tx_put(tx, NULL, text("lost"), text("x"));
}

static void bodies(hikv_store *store) {
    struct body body = {store, 0, 0, NULL};
    GIVES(HIKV_OK, hikv_transact(store, NULL, add_one, &body));
    CHECK(body.attempts == 1 && is_value(store, NULL, "count", "1"));
    body.result = 7;
    GIVES(7, hikv_transact(store, NULL, add_one, &body));
    CHECK(is_value(store, NULL, "count", "1"));
    GIVES(HIKV_OPTION, hikv_transact(store, NULL, NULL, NULL));

    hikv_transact_options options = {sizeof options, HIKV_NEVER_EXCLUSIVE, 3};
    body.attempts = 0;
    GIVES(HIKV_CONTENDED, hikv_transact(store, &options, lose, &body));
    CHECK(body.attempts == 3 && is_value(store, NULL, "count", "4"));
    GIVES(HIKV_ABSENT, hikv_contains(store, NULL, text("lost")));
    options.flags = 8;
    GIVES(HIKV_OPTION, hikv_transact(store, &options, add_one, &body));
    options.size = 4;
    GIVES(HIKV_OPTION, hikv_transact(store, &options, add_one, &body));

    /* An iterator that a body leaves behind ends, also that of an exclusive attempt: other writers go on. */
    options.size = sizeof options;
    options.flags = HIKV_EXCLUSIVE_FIRST;
    GIVES(HIKV_OK, hikv_transact(store, &options, keep_a_range, &body));
    GIVES(HIKV_OK, hikv_put(store, NULL, text("after"), text("x")));
    unsigned char page[100];
    size_t len = 0;
    uint32_t items = 0;
    GIVES(HIKV_OPTION, hikv_iter_next(body.kept, page, sizeof page, &len, &items));
    hikv_iter_free(body.kept);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    hikv_store *store = opened(in(argv[1], "store")), *other = opened(in(argv[1], "other"));
    named_trees(store, other);
    own_commits(store);
    bodies(store);
    GIVES(HIKV_OK, hikv_close(other));
    GIVES(HIKV_OK, hikv_close(store));
    return 0;
}
