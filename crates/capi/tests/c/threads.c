/* Eight threads on one store: none loses an update, and errors belong to their thread. */
#include "check.h"

#include <pthread.h>

enum { THREADS = 8 };

/* Fewer under valgrind. */
static int rounds = 300;

struct thread {
    pthread_t id;
    hikv_store *store;
    hikv_tree *tree;
    int number;
};

static int transfer(hikv_tx *tx, void *context) {
    struct thread *thread = (struct thread *)context;
    char value[24];
    size_t len = 0;
    int found = hikv_tx_get(tx, thread->tree, text("sum"), value, sizeof value - 1, &len);
    if (found < 0) return found;
    value[found == HIKV_OK ? len : 0] = 0;
    snprintf(value, sizeof value, "%d", atoi(value) + 1);
    return hikv_tx_put(tx, thread->tree, text("sum"), text(value));
}

static void *run(void *context) {
    struct thread *thread = (struct thread *)context;
    char key[24], wanted[100], found[100];
    for (int i = 0; i < rounds; i++) {
        snprintf(key, sizeof key, "%d:%d", thread->number, i);
        GIVES(HIKV_OK, hikv_put(thread->store, NULL, text(key), text(key)));
        CHECK(is_value(thread->store, NULL, key, key));
        GIVES(HIKV_OK, hikv_increment(thread->store, NULL, text("count"), 1, NULL));
        if (i % 10 == 0) {
            GIVES(HIKV_OK, hikv_transact(thread->store, NULL, transfer, thread));
            hikv_iter *iter = NULL;
            unsigned char page[300];
            size_t len = 0;
            uint32_t items = 0;
            GIVES(HIKV_OK, hikv_iter_new(thread->store, NULL, NULL, text(key), HIKV_INCLUDED, NONE, HIKV_UNBOUNDED, 0, &iter));
            GIVES(HIKV_OK, hikv_iter_next(iter, page, sizeof page, &len, &items));
            CHECK(number(page) == strlen(key) && memcmp(page + 8, key, strlen(key)) == 0);
            hikv_iter_free(iter);
        }
        GIVES(HIKV_NO_SUCH_TREE, hikv_tree_drop(thread->store, text(key)));
        snprintf(wanted, sizeof wanted, "the store has no tree '%s'", key);
        CHECK(hikv_last_error(found, sizeof found) == strlen(wanted) && strcmp(found, wanted) == 0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    if (getenv("HIKV_TEST_ROUNDS")) rounds = atoi(getenv("HIKV_TEST_ROUNDS"));
    hikv_store *store = opened(in(argv[1], "store"));
    hikv_tree *tree = NULL;
    GIVES(HIKV_OK, hikv_tree_open(store, text("tree"), HIKV_CREATE, &tree));
    struct thread threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        threads[i].store = store;
        threads[i].tree = tree;
        threads[i].number = i;
        CHECK(pthread_create(&threads[i].id, NULL, run, &threads[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i].id, NULL) == 0);
    char sum[24];
    snprintf(sum, sizeof sum, "%d", THREADS * rounds);
    CHECK(is_value(store, NULL, "count", sum));
    snprintf(sum, sizeof sum, "%d", THREADS * ((rounds + 9) / 10));
    CHECK(is_value(store, tree, "sum", sum));
    uint64_t len = 0;
    GIVES(HIKV_OK, hikv_len(store, NULL, &len));
    CHECK(len == (uint64_t)(THREADS * rounds + 1));
    hikv_tree_close(tree);
    GIVES(HIKV_OK, hikv_close(store));
    return 0;
}
