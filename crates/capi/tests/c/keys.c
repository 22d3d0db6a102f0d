/* Keys, batches, snapshots and iterators. */
#include "check.h"

struct seen {
    hikv_store *store;
    char value[20];
    size_t len;
    int inner;
};

static void see(void *context, const void *value, size_t len) {
    struct seen *seen = (struct seen *)context;
    CHECK(len <= sizeof seen->value);
    memcpy(seen->value, value, len);
    seen->len = len;
    seen->inner = hikv_put(seen->store, NULL, text("inner"), text("1"));
    GIVES(HIKV_INSIDE_CALLBACK, hikv_close(seen->store));
}

static void single_keys(hikv_store *store) {
    char buffer[8];
    size_t len = 99;
    uint64_t count = 0;
    int64_t sum = 0;
    GIVES(HIKV_ABSENT, hikv_get(store, NULL, text("a"), buffer, sizeof buffer, &len));
    CHECK(len == 0);
    GIVES(HIKV_OK, hikv_put(store, NULL, text("a"), text("12345678")));
    GIVES(HIKV_OK, hikv_get(store, NULL, text("a"), buffer, sizeof buffer, &len));
    CHECK(len == 8 && memcmp(buffer, "12345678", 8) == 0);
    GIVES(HIKV_SHORT, hikv_get(store, NULL, text("a"), buffer, 7, &len));
    CHECK(len == 8);
    GIVES(HIKV_SHORT, hikv_get(store, NULL, text("a"), NULL, 0, &len));
    CHECK(len == 8);

    /* Null with length 0 is the empty key, and the empty value. */
    GIVES(HIKV_OK, hikv_put(store, NULL, NONE, NONE));
    GIVES(HIKV_OK, hikv_contains(store, NULL, NONE));
    GIVES(HIKV_OK, hikv_get(store, NULL, text(""), NULL, 0, &len));
    CHECK(len == 0);
    GIVES(HIKV_OK, hikv_delete(store, NULL, NONE));
    GIVES(HIKV_ABSENT, hikv_delete(store, NULL, NONE));
    GIVES(HIKV_OPTION, hikv_put(store, NULL, bytes(NULL, 1), NONE));
    GIVES(HIKV_OPTION, hikv_put(store, NULL, bytes("a", SIZE_MAX), NONE));

    GIVES(HIKV_EXISTS, hikv_insert(store, NULL, text("a"), text("other")));
    GIVES(HIKV_OK, hikv_insert(store, NULL, text("b"), text("new")));
    GIVES(HIKV_OK, hikv_increment(store, NULL, text("n"), 5, &sum));
    GIVES(HIKV_OK, hikv_increment(store, NULL, text("n"), -7, NULL));
    GIVES(HIKV_OK, hikv_increment(store, NULL, text("n"), 0, &sum));
    CHECK(sum == -2);
    GIVES(HIKV_OK, hikv_put_ttl(store, NULL, text("short"), text("x"), 0));
    GIVES(HIKV_ABSENT, hikv_contains(store, NULL, text("short")));
    GIVES(HIKV_OK, hikv_put_ttl(store, NULL, text("long"), text("x"), 1000000));
    GIVES(HIKV_OK, hikv_contains(store, NULL, text("long")));
    GIVES(HIKV_OK, hikv_delete(store, NULL, text("long")));
    GIVES(HIKV_OK, hikv_len(store, NULL, &count));
    /* An expired key may count for a moment. */
    CHECK(count == 3 || count == 4);

    struct seen seen = {store, "", 0, 0};
    GIVES(HIKV_OK, hikv_get_with(store, NULL, text("b"), see, &seen));
    CHECK(seen.len == 3 && memcmp(seen.value, "new", 3) == 0);
    CHECK(seen.inner == HIKV_INSIDE_CALLBACK);
    GIVES(HIKV_ABSENT, hikv_contains(store, NULL, text("inner")));
    GIVES(HIKV_ABSENT, hikv_get_with(store, NULL, text("inner"), see, &seen));

    hikv_slice keys[3] = {text("b"), text("absent"), text("n")};
    unsigned char page[64];
    GIVES(HIKV_OK, hikv_multi_get(store, NULL, keys, 3, page, sizeof page, &len));
    CHECK(len == 8 + 3 + 8 + 8 + 2);
    CHECK(number(page) == 0 && number(page + 4) == 3 && memcmp(page + 8, "new", 3) == 0);
    CHECK(number(page + 15) == UINT32_MAX && number(page + 23) == 2 && memcmp(page + 27, "-2", 2) == 0);
    GIVES(HIKV_SHORT, hikv_multi_get(store, NULL, keys, 3, page, 10, &len));
    CHECK(len == 29);
    GIVES(HIKV_OK, hikv_multi_get(store, NULL, NULL, 0, NULL, 0, &len));
    GIVES(HIKV_OK, hikv_clear(store, NULL));
    GIVES(HIKV_OK, hikv_len(store, NULL, &count));
    CHECK(count == 0);
}

static void batches(hikv_store *store) {
    unsigned char ops[400];
    uint64_t version[2], late = 4000000000000, early = 1;
    size_t len = 0, value_len = 0, unmet = 99;
    char value[10];
    GIVES(HIKV_OK, hikv_put(store, NULL, text("gone"), text("x")));
    GIVES(HIKV_OK, hikv_put(store, NULL, text("seen"), text("1")));
    GIVES(HIKV_OK, hikv_get_version(store, NULL, text("seen"), version, value, sizeof value, &value_len));
    CHECK(value_len == 1 && value[0] == '1');
    len = op(ops, len, HIKV_OP_EXPECT_ABSENT, text("new"), NONE, NULL);
    len = op(ops, len, HIKV_OP_EXPECT_VERSION, text("seen"), bytes(version, 16), NULL);
    len = op(ops, len, HIKV_OP_PUT, text("new"), text("2"), NULL);
    len = op(ops, len, HIKV_OP_DELETE, text("gone"), NONE, NULL);
    len = op(ops, len, HIKV_OP_PUT_UNTIL, text("late"), text("3"), &late);
    len = op(ops, len, HIKV_OP_PUT_UNTIL, text("early"), text("4"), &early);
    /* Every beginning of the buffer but one between two operations is refused, and none is read beyond its end. */
    for (size_t cut = 1; cut < len; cut += getenv("HIKV_TEST_ROUNDS") ? 5 : 1) {
        unsigned char *copy = (unsigned char *)malloc(cut);
        CHECK(copy);
        memcpy(copy, ops, cut);
        int result = hikv_write(store, NULL, copy, cut, NULL);
        free(copy);
        CHECK(result == HIKV_OPTION || result == HIKV_OK || result == HIKV_UNMET);
        GIVES(HIKV_OK, hikv_put(store, NULL, text("gone"), text("x")));
        hikv_delete(store, NULL, text("new"));
        hikv_delete(store, NULL, text("late"));
    }
    GIVES(HIKV_OPTION, hikv_write(store, NULL, ops, len - 1, &unmet));
    GIVES(HIKV_OK, hikv_write(store, NULL, ops, len, &unmet));
    CHECK(unmet == 99);
    CHECK(is_value(store, NULL, "new", "2") && is_value(store, NULL, "late", "3"));
    GIVES(HIKV_ABSENT, hikv_contains(store, NULL, text("gone")));
    GIVES(HIKV_ABSENT, hikv_contains(store, NULL, text("early")));
    GIVES(HIKV_UNMET, hikv_write(store, NULL, ops, len, &unmet));
    CHECK(unmet == 0);
    GIVES(HIKV_OK, hikv_delete(store, NULL, text("new")));
    GIVES(HIKV_OK, hikv_put(store, NULL, text("seen"), text("5")));
    GIVES(HIKV_UNMET, hikv_write(store, NULL, ops, len, &unmet));
    CHECK(unmet == 1);
    GIVES(HIKV_OK, hikv_write(store, NULL, NULL, 0, NULL));
    ops[0] = 4;
    GIVES(HIKV_OPTION, hikv_write(store, NULL, ops, len, NULL));
    len = op(ops, 0, HIKV_OP_DELETE, text("new"), text("no value"), NULL);
    GIVES(HIKV_OPTION, hikv_write(store, NULL, ops, len, NULL));
    len = op(ops, 0, HIKV_OP_TREE, text("absent"), NONE, NULL);
    GIVES(HIKV_NO_SUCH_TREE, hikv_write(store, NULL, ops, len, NULL));
    len = op(ops, 0, HIKV_OP_TREE, bytes("\xff", 1), NONE, NULL);
    GIVES(HIKV_NO_SUCH_TREE, hikv_write(store, NULL, ops, len, NULL));

    uint64_t ticket = 0;
    len = op(ops, 0, HIKV_OP_PUT, text("deferred"), text("6"), NULL);
    GIVES(HIKV_OK, hikv_deferred_write(store, NULL, ops, len, &ticket));
    int durable = hikv_is_durable(store, ticket);
    CHECK(durable == HIKV_OK || durable == HIKV_PENDING);
    GIVES(HIKV_OK, hikv_wait(store, ticket));
    GIVES(HIKV_OK, hikv_is_durable(store, ticket));
    CHECK(is_value(store, NULL, "deferred", "6"));
    GIVES(HIKV_OK, hikv_sync(store));
    GIVES(HIKV_OK, hikv_clear(store, NULL));
}

/* Reads all items of an iterator, with this size of a page that grows where one item does not fit. */
static uint32_t walk(hikv_iter *iter, size_t cap, char *out) {
    uint32_t total = 0, items = 0;
    unsigned char *page = NULL;
    out[0] = 0;
    for (;;) {
        size_t len = 0;
        page = (unsigned char *)realloc(page, cap + 1);
        CHECK(page);
        int result = hikv_iter_next(iter, page, cap, &len, &items);
        if (result == HIKV_END) break;
        if (result == HIKV_SHORT) {
            CHECK(len > cap && items == 0);
            cap = len;
            continue;
        }
        GIVES(HIKV_OK, result);
        CHECK(items > 0);
        total += items;
        size_t at = 0;
        while (items-- > 0) {
            uint32_t key_len = number(page + at), value_len = number(page + at + 4);
            strncat(out, (char *)page + at + 8, key_len);
            strcat(out, "=");
            strncat(out, (char *)page + at + 8 + key_len, value_len);
            strcat(out, " ");
            at += 8 + key_len + value_len;
        }
        CHECK(at == len);
    }
    free(page);
    hikv_iter_free(iter);
    return total;
}

static hikv_iter *between(hikv_store *store, hikv_snapshot *snapshot, const char *lo, int lo_kind, const char *hi, int hi_kind, uint32_t flags) {
    hikv_iter *iter = NULL;
    GIVES(HIKV_OK, hikv_iter_new(store, NULL, snapshot, text(lo), lo_kind, text(hi), hi_kind, flags, &iter));
    return iter;
}

static void iterators(hikv_store *store) {
    char seen[500];
    const char *keys[] = {"a", "b1", "b2", "b3", "c"};
    for (int i = 0; i < 5; i++) GIVES(HIKV_OK, hikv_put(store, NULL, text(keys[i]), text("value")));
    for (size_t cap = 0; cap < 70; cap += getenv("HIKV_TEST_ROUNDS") ? 23 : 1) {
        CHECK(walk(between(store, NULL, "", HIKV_UNBOUNDED, "", HIKV_UNBOUNDED, 0), cap, seen) == 5);
        CHECK(strcmp(seen, "a=value b1=value b2=value b3=value c=value ") == 0);
    }
    CHECK(walk(between(store, NULL, "b", HIKV_PREFIX, "", HIKV_UNBOUNDED, HIKV_BACK | HIKV_KEYS), 30, seen) == 3);
    CHECK(strcmp(seen, "b3= b2= b1= ") == 0);
    CHECK(walk(between(store, NULL, "b1", HIKV_EXCLUDED, "c", HIKV_EXCLUDED, HIKV_KEYS), 3000, seen) == 2);
    CHECK(strcmp(seen, "b2= b3= ") == 0);
    CHECK(walk(between(store, NULL, "b1", HIKV_INCLUDED, "c", HIKV_INCLUDED, 0), 3000, seen) == 4);

    hikv_snapshot *snapshot = NULL;
    char value[10];
    size_t len = 0;
    uint64_t deleted = 0;
    GIVES(HIKV_OK, hikv_snapshot_new(store, &snapshot));
    GIVES(HIKV_OK, hikv_delete_range(store, NULL, text("b"), text("c"), &deleted));
    CHECK(deleted == 3);
    CHECK(walk(between(store, NULL, "", HIKV_UNBOUNDED, "", HIKV_UNBOUNDED, HIKV_KEYS), 300, seen) == 2);
    CHECK(walk(between(store, snapshot, "", HIKV_UNBOUNDED, "", HIKV_UNBOUNDED, HIKV_KEYS), 300, seen) == 5);
    GIVES(HIKV_OK, hikv_snapshot_get(snapshot, NULL, text("b1"), value, sizeof value, &len));
    CHECK(len == 5 && memcmp(value, "value", 5) == 0);
    GIVES(HIKV_ABSENT, hikv_snapshot_get(snapshot, NULL, text("d"), value, sizeof value, &len));

    /* A store with a child does not close. */
    GIVES(HIKV_BUSY, hikv_close(store));
    hikv_iter *iter = between(store, snapshot, "", HIKV_UNBOUNDED, "", HIKV_UNBOUNDED, 0);
    hikv_snapshot_free(snapshot);
    GIVES(HIKV_BUSY, hikv_close(store));
    CHECK(walk(iter, 300, seen) == 5);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    CHECK(hikv_abi() == HIKV_ABI && strlen(hikv_version()) >= 5);
    hikv_store *store = opened(in(argv[1], "store"));
    single_keys(store);
    batches(store);
    iterators(store);

    size_t len = 0;
    GIVES(HIKV_SHORT, hikv_stats(store, NULL, 0, &len));
    char *stats = (char *)malloc(len + 100);
    size_t cap = len + 100;
    GIVES(HIKV_OK, hikv_stats(store, stats, cap, &len));
    CHECK(len > 10 && stats[0] == '{' && stats[len - 1] == '}');
    free(stats);

    /* A copy is opened with the default options, for which valgrind has no addresses. */
    if (getenv("HIKV_TEST_ROUNDS")) {
        GIVES(HIKV_OK, hikv_close(store));
        return 0;
    }
    const char *copy = in(argv[1], "copy");
    GIVES(HIKV_OK, hikv_backup(store, copy, strlen(copy)));
    GIVES(HIKV_OPTION, hikv_backup(store, copy, strlen(copy)));
    GIVES(HIKV_OK, hikv_close(store));
    GIVES(HIKV_OK, hikv_close(NULL));
    hikv_iter_free(NULL);
    hikv_snapshot_free(NULL);
    hikv_tree_close(NULL);

    store = opened(copy);
    CHECK(is_value(store, NULL, "a", "value"));
    GIVES(HIKV_OK, hikv_close(store));
    return 0;
}
