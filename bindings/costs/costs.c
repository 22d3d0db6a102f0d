/* Measures calls of hikv from C and prints a line for each: its name, a tab, and processor time of the calling thread
 * in nanoseconds, the median of the last rounds. Costs.java does the same in Java.
 *
 * usage: costs DIRECTORY. Keys have 16 bytes, values 256. Each value is copied, as for Java. */
#include <hikv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { COUNT = 50000, PICKED = 20000, WARM_UP = 3, ROUNDS = 5, CALLS = 8, KEY = 16, VALUE = 256 };

static hikv_store *store;
static char keys[COUNT][KEY + 1], picked[PICKED][KEY + 1], absent[PICKED][KEY + 1], value[VALUE], out[64 << 10];
static unsigned char batch[1000 * (9 + KEY + VALUE)];

static void check(int result, int expected) {
    char text[300];
    if (result == expected) return;
    hikv_last_error(text, sizeof text);
    fprintf(stderr, "result %d: %s\n", result, text);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static hikv_slice slice(const char *key) {
    hikv_slice slice = {key, KEY};
    return slice;
}

static void write_batch(char (*from)[KEY + 1]) {
    unsigned char *at = batch;
    for (int i = 0; i < 1000; i++) {
        uint32_t key_len = KEY, value_len = VALUE;
        *at = HIKV_OP_PUT, memcpy(at + 1, &key_len, 4), memcpy(at + 5, &value_len, 4);
        memcpy(at + 9, from[i], KEY), memcpy(at + 9 + KEY, value, VALUE);
        at += 9 + KEY + VALUE;
    }
    check(hikv_write(store, NULL, batch, sizeof batch, NULL), HIKV_OK);
}

static hikv_iter *from(const char *key, int kind) {
    hikv_iter *iter;
    check(hikv_iter_new(store, NULL, NULL, slice(key), kind, slice(key), HIKV_UNBOUNDED, 0, &iter), HIKV_OK);
    return iter;
}

static void measure(double costs[CALLS]) {
    hikv_slice content = {value, VALUE};
    size_t len;
    uint32_t items;
    uint64_t count;
    hikv_iter *iter;
    double begin = now();
    for (int i = 0; i < PICKED; i++) check(hikv_get(store, NULL, slice(picked[i]), out, sizeof out, &len), HIKV_OK);
    /* C's get always copies into an array. */
    costs[0] = costs[1] = (now() - begin) / PICKED, begin = now();
    for (int i = 0; i < PICKED; i++) check(hikv_get(store, NULL, slice(absent[i]), out, sizeof out, &len), HIKV_ABSENT);
    costs[2] = (now() - begin) / PICKED, begin = now();
    for (int i = 0; i < PICKED; i++) check(hikv_put(store, NULL, slice(picked[i]), content), HIKV_OK);
    costs[3] = (now() - begin) / PICKED, begin = now();
    for (int i = 0; i < 10000; i += 1000) write_batch(picked + i);
    costs[4] = (now() - begin) / 10000, begin = now();
    for (int i = 0; i < 5000; i++) {
        iter = from(picked[i], HIKV_INCLUDED);
        check(hikv_iter_next(iter, out, 1 << 10, &len, &items), HIKV_OK);
        hikv_iter_free(iter);
    }
    costs[5] = (now() - begin) / 5000, begin = now();
    iter = from(keys[0], HIKV_UNBOUNDED);
    while (hikv_iter_next(iter, out, sizeof out, &len, &items) == HIKV_OK) {}
    hikv_iter_free(iter);
    costs[6] = (now() - begin) / COUNT, begin = now();
    for (int i = 0; i < PICKED; i++) check(hikv_len(store, NULL, &count), HIKV_OK);
    costs[7] = (now() - begin) / PICKED;
}

static int compare(const void *a, const void *b) {
    return *(const double *)a < *(const double *)b ? -1 : 1;
}

int main(int argc, char **argv) {
    static const char *names[CALLS] = {
        "get", "get into an array", "get, absent", "put (update)", "batch of 1,000, an item", "open iterator, first item", "scan, an item",
        "call that does nothing"
    };
    double rounds[CALLS][ROUNDS], costs[CALLS];
    hikv_options options;
    if (argc != 2) return 2;
    hikv_options_init(&options, sizeof options);
    options.durability = HIKV_PROCESS;
    check(hikv_open(argv[1], strlen(argv[1]), &options, &store), HIKV_OK);
    for (int i = 0; i < COUNT; i++) sprintf(keys[i], "key:%012d", i);
    for (int i = 0; i < COUNT; i += 1000) write_batch(keys + i);
    for (int i = 0; i < PICKED; i++) {
        /* Without repetition: 7,919 is a prime that does not divide the count. */
        int number = (int)((long)(i + 1) * 7919 % COUNT);
        sprintf(picked[i], "key:%012d", number);
        sprintf(absent[i], "no!:%012d", number);
    }
    for (int round = -WARM_UP; round < ROUNDS; round++) {
        measure(costs);
        for (int call = 0; call < CALLS && round >= 0; call++) rounds[call][round] = costs[call];
    }
    for (int call = 0; call < CALLS; call++) {
        qsort(rounds[call], ROUNDS, sizeof(double), compare);
        printf("%s\t%.0f\n", names[call], rounds[call][ROUNDS / 2]);
    }
    return hikv_close(store) ? 1 : 0;
}
