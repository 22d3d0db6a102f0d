/* What the test programs share: they are C11 and C++17, and get an empty directory as their argument. */
#ifndef CHECK_H
#define CHECK_H

#include <hikv.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program unless the condition holds. */
#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            char text_of_error[500];                                                      \
            hikv_last_error(text_of_error, sizeof text_of_error);                         \
            fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__, __LINE__, #condition, text_of_error); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

/* Ends the program unless the call has this result. */
#define GIVES(result, call)                                                               \
    do {                                                                                  \
        int result_of_call = (call);                                                      \
        if (result_of_call != (result)) {                                                 \
            char text_of_error[500];                                                      \
            hikv_last_error(text_of_error, sizeof text_of_error);                         \
            fprintf(stderr, "%s:%d: %s gives %d, not %s; last error: %s\n", __FILE__, __LINE__, #call, result_of_call, #result, text_of_error); \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

static inline hikv_slice text(const char *bytes) {
    hikv_slice slice = {bytes, strlen(bytes)};
    return slice;
}

static inline hikv_slice bytes(const void *data, size_t len) {
    hikv_slice slice = {data, len};
    return slice;
}

static const hikv_slice NONE = {NULL, 0};

/* Returns the path of a place in the directory. */
static inline const char *in(const char *dir, const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* Opens a store. Under valgrind, a process has few addresses. */
static inline hikv_store *opened(const char *path) {
    hikv_store *store = NULL;
    hikv_options options;
    hikv_options_init(&options, sizeof options);
    if (getenv("HIKV_TEST_ROUNDS")) options.region_bytes_max = 64u << 20;
    GIVES(HIKV_OK, hikv_open(path, strlen(path), &options, &store));
    return store;
}

static inline int is_value(hikv_store *store, hikv_tree *tree, const char *key, const char *value) {
    char buffer[200];
    size_t len = 0;
    int found = hikv_get(store, tree, text(key), buffer, sizeof buffer, &len);
    return found == HIKV_OK && len == strlen(value) && memcmp(buffer, value, len) == 0;
}

static inline uint32_t number(const unsigned char *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* Appends an operation to a buffer, and returns its new length. */
static inline size_t op(unsigned char *ops, size_t at, int kind, hikv_slice key, hikv_slice value, const uint64_t *expiry) {
    ops[at++] = (unsigned char)kind;
    for (int i = 0; i < 4; i++) ops[at++] = (unsigned char)(key.len >> 8 * i);
    for (int i = 0; i < 4; i++) ops[at++] = (unsigned char)(value.len >> 8 * i);
    if (key.len) memcpy(ops + at, key.data, key.len);
    at += key.len;
    for (int i = 0; expiry && i < 8; i++) ops[at++] = (unsigned char)(*expiry >> 8 * i);
    if (value.len) memcpy(ops + at, value.data, value.len);
    return at + value.len;
}

#endif
