/* Errors of opening and of operations: those that the other programs do not cause. */
#include "check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int opening(const char *path, const hikv_options *options) {
    hikv_store *store = NULL;
    int result = hikv_open(path, strlen(path), options, &store);
    if (result == HIKV_OK) GIVES(HIKV_OK, hikv_close(store));
    return result;
}

static hikv_options defaults(void) {
    hikv_options options;
    hikv_options_init(&options, sizeof options);
    CHECK(options.size == sizeof options && options.flags == (HIKV_CREATE | HIKV_HUGE_PAGES) && options.engine == NULL);
    return options;
}

static void options(const char *dir) {
    char path[4096];
    snprintf(path, sizeof path, "%s/options", dir);
    hikv_options options = defaults();
    options.flags = 0;
    GIVES(HIKV_MISSING, opening(path, &options));
    options.flags = 1u << 31;
    GIVES(HIKV_OPTION, opening(path, &options));
    options = defaults();
    options.durability = 9;
    GIVES(HIKV_OPTION, opening(path, &options));
    options = defaults();
    options.reserved = 1;
    GIVES(HIKV_OPTION, opening(path, &options));
    options = defaults();
    options.engine = "bolt";
    GIVES(HIKV_OPTION, opening(path, &options));
    options = defaults();
    options.size -= 1;
    GIVES(HIKV_OPTION, opening(path, &options));
    options = defaults();
    options.region_bytes_max = (uint64_t)1 << 50;
    GIVES(HIKV_OPTION, opening(path, &options));
    GIVES(HIKV_OPTION, opening("", NULL));
    GIVES(HIKV_OPTION, hikv_open("a\0b", 3, NULL, NULL));
    hikv_store *store = NULL;
    GIVES(HIKV_OPTION, hikv_open("a\0b", 3, NULL, &store));
    GIVES(HIKV_OPTION, hikv_open(NULL, 3, NULL, &store));

    /* A program of a later version has a longer structure. */
    struct {
        hikv_options known;
        uint64_t later[2];
    } longer;
    memset(&longer, 0xff, sizeof longer);
    hikv_options_init(&longer.known, sizeof longer);
    CHECK(longer.known.size == sizeof longer && longer.later[0] == 0 && longer.later[1] == 0);
    GIVES(HIKV_OK, opening(path, &longer.known));
    longer.later[1] = 1;
    GIVES(HIKV_OPTION, opening(path, &longer.known));
    /* All options at once; `ink` is not the engine of this store. */
    options = defaults();
    options.engine = "ink";
    GIVES(HIKV_UNUSABLE, opening(path, &options));
    options.engine = "hikv";
    options.region_bytes_max = 1u << 30;
    options.log_bytes_max = 64u << 20;
    options.read_cache_bytes = 1u << 20;
    options.sync_interval_us = 1000;
    options.background_threads = 1;
    GIVES(HIKV_OK, opening(path, &options));
}

static void places(const char *dir) {
    char path[4096], inner[5000];
    snprintf(path, sizeof path, "%s/file", dir);
    FILE *file = fopen(path, "w");
    CHECK(file && fputs("this is no store", file) >= 0 && fclose(file) == 0);
    GIVES(HIKV_UNUSABLE, opening(path, NULL));
    snprintf(inner, sizeof inner, "%s/store", path);
    GIVES(HIKV_IO, opening(inner, NULL));

    snprintf(path, sizeof path, "%s/open", dir);
    hikv_store *store = opened(path);
    GIVES(HIKV_LOCKED, opening(path, NULL));
    GIVES(HIKV_OK, hikv_put(store, NULL, text("key"), text("value")));
    GIVES(HIKV_OK, hikv_close(store));
    hikv_options options = defaults();
    options.flags = HIKV_OPEN_READ_ONLY;
    GIVES(HIKV_OK, hikv_open(path, strlen(path), &options, &store));
    CHECK(is_value(store, NULL, "key", "value"));
    GIVES(HIKV_READ_ONLY, hikv_put(store, NULL, text("key"), text("other")));
    GIVES(HIKV_OK, hikv_close(store));
    GIVES(HIKV_OPTION, hikv_put(NULL, NULL, text("key"), text("other")));

    options = defaults();
    options.durability = HIKV_POWER;
    /* The tests run in memory where they can, which does not survive a power failure. */
    CHECK(strncmp(dir, "/dev/shm/", 9) != 0 || opening(path, &options) == HIKV_DURABILITY);
}

static void sizes(hikv_store *store) {
    size_t long_len = ((size_t)1 << 30) + 1;
    void *zeros = mmap(NULL, long_len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(zeros != MAP_FAILED);
    GIVES(HIKV_KEY_SIZE, hikv_put(store, NULL, bytes(zeros, 65536), NONE));
    GIVES(HIKV_VALUE_SIZE, hikv_put(store, NULL, text("key"), bytes(zeros, long_len)));
    CHECK(munmap(zeros, long_len) == 0);
    GIVES(HIKV_OK, hikv_put(store, NULL, text("text"), text("nine")));
    GIVES(HIKV_NOT_A_NUMBER, hikv_increment(store, NULL, text("text"), 1, NULL));
    GIVES(HIKV_OK, hikv_put(store, NULL, text("most"), text("9223372036854775807")));
    GIVES(HIKV_NOT_A_NUMBER, hikv_increment(store, NULL, text("most"), 1, NULL));

    char short_text[5] = "....";
    size_t len = hikv_last_error(short_text, sizeof short_text);
    CHECK(len > 20 && strcmp(short_text, "the ") == 0);
    CHECK(hikv_last_error(NULL, 0) == len);
    hikv_iter *iter = NULL;
    GIVES(HIKV_OPTION, hikv_iter_new(store, NULL, NULL, NONE, 4, NONE, 0, 0, &iter));
    GIVES(HIKV_OPTION, hikv_iter_new(store, NULL, NULL, NONE, HIKV_PREFIX, NONE, HIKV_INCLUDED, 0, &iter));
    GIVES(HIKV_OPTION, hikv_iter_new(store, NULL, NULL, NONE, 0, NONE, 0, 4, &iter));
    GIVES(HIKV_OPTION, hikv_get(store, NULL, text("text"), NULL, 10, &len));
    GIVES(HIKV_OPTION, hikv_get(store, NULL, text("text"), NULL, 0, NULL));
}

/* More operations than a batch can have, each counted as 512 bytes. */
static void large_batch(hikv_store *store) {
    size_t count = (1u << 21) + 1, len = 0;
    unsigned char *ops = (unsigned char *)malloc(count * 10);
    CHECK(ops);
    for (size_t i = 0; i < count; i++) len = op(ops, len, HIKV_OP_DELETE, text("k"), NONE, NULL);
    GIVES(HIKV_BATCH_SIZE, hikv_write(store, NULL, ops, len, NULL));
    free(ops);
}

static void full(const char *dir) {
    hikv_options options = defaults();
    options.region_bytes_max = 4u << 20;
    hikv_store *store = NULL;
    const char *path = in(dir, "full");
    GIVES(HIKV_OK, hikv_open(path, strlen(path), &options, &store));
    char *value = (char *)calloc(1, 64 << 10);
    CHECK(value);
    int result = HIKV_OK;
    for (int i = 0; i < 100 && result == HIKV_OK; i++) {
        result = hikv_put(store, NULL, bytes(&i, sizeof i), bytes(value, 64 << 10));
    }
    CHECK(result == HIKV_FULL);
    free(value);
    GIVES(HIKV_OK, hikv_close(store));
}

static void unsupported(const char *dir) {
    hikv_options options = defaults();
    options.engine = "rewo-hash";
    hikv_store *store = NULL;
    hikv_iter *iter = NULL;
    const char *path = in(dir, "hash");
    GIVES(HIKV_OK, hikv_open(path, strlen(path), &options, &store));
    GIVES(HIKV_UNSUPPORTED, hikv_iter_new(store, NULL, NULL, NONE, 0, NONE, 0, 0, &iter));
    GIVES(HIKV_OK, hikv_close(store));
}

/* Changes a byte of a value in the region. */
static void damaged(const char *dir) {
    static const char VALUE[] = "a value that occurs once in the region of this store";
    char path[4096], region[5000];
    snprintf(path, sizeof path, "%s/damaged", dir);
    hikv_options options = defaults();
    options.durability = HIKV_PROCESS; /* without a journal */
    hikv_store *store = NULL;
    GIVES(HIKV_OK, hikv_open(path, strlen(path), &options, &store));
    GIVES(HIKV_OK, hikv_put(store, NULL, text("key"), text(VALUE)));
    GIVES(HIKV_OK, hikv_close(store));
    snprintf(region, sizeof region, "%s/store.hikv", path);
    int file = open(region, O_RDWR);
    struct stat status;
    CHECK(file >= 0 && fstat(file, &status) == 0);
    char *mapped = (char *)mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(mapped != MAP_FAILED);
    char *found = (char *)memmem(mapped, (size_t)status.st_size, VALUE, strlen(VALUE));
    CHECK(found);
    found[3] ^= 1;
    CHECK(munmap(mapped, (size_t)status.st_size) == 0 && close(file) == 0);
    GIVES(HIKV_OK, hikv_open(path, strlen(path), &options, &store));
    char buffer[100];
    size_t len = 0;
    GIVES(HIKV_DAMAGED, hikv_get(store, NULL, text("key"), buffer, sizeof buffer, &len));
    GIVES(HIKV_OK, hikv_close(store));
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    options(argv[1]);
    places(argv[1]);
    hikv_store *store = opened(in(argv[1], "store"));
    sizes(store);
    if (!getenv("HIKV_TEST_ROUNDS")) large_batch(store);
    GIVES(HIKV_OK, hikv_close(store));
    full(argv[1]);
    unsupported(argv[1]);
    damaged(argv[1]);
    return 0;
}
