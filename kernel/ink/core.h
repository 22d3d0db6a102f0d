/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The interface between C and Rust: core/src/exports.rs, core/src/host.rs. */
#ifndef HIKV_INK_CORE_H
#define HIKV_INK_CORE_H

#include <linux/types.h>
#include "ink.h"

struct ink_core_store;

struct ink_bytes {
	const void *start;
	size_t len;
};

struct ink_answer {
	void *start;
	size_t room;
	u64 len;
	u64 count;
	u64 used;
};

s64 ink_core_open(void *base, u64 len, u32 lanes, const u8 uuid[16], struct ink_core_store **store);
void ink_core_close(struct ink_core_store *store);
s64 ink_core_put(struct ink_core_store *store, u32 agent, struct ink_bytes key, struct ink_bytes value, u32 when);
s64 ink_core_get(struct ink_core_store *store, struct ink_bytes key, struct ink_answer *answer);
s64 ink_core_remove(struct ink_core_store *store, u32 agent, struct ink_bytes key);
s64 ink_core_scan(struct ink_core_store *store, struct ink_bytes from, bool is_behind, struct ink_answer *answer);
s64 ink_core_clear(struct ink_core_store *store, u32 agent);
s64 ink_core_sweep(struct ink_core_store *store);
s64 ink_core_merge(struct ink_core_store *store, u32 agent);
s64 ink_core_check(struct ink_core_store *store, struct ink_answer *answer);
/* Everything except the durability, which C fills in. */
void ink_core_stat(struct ink_core_store *store, struct ink_stat *stat);
bool ink_core_break(struct ink_bytes name);
void ink_core_order(u32 order);

void *ink_host_lend(size_t bytes, size_t align);
void ink_host_give_back(void *memory);
void ink_host_relax(u32 attempt);
void ink_host_yield(void);
bool ink_host_is_killed(void);
bool ink_host_is_ending(void);
void ink_host_merge_soon(void);
u64 ink_host_now_ms(void);
void ink_host_log(const char *text, size_t len);
void __noreturn ink_host_die(const char *text, size_t len);

#endif
