// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Services of the kernel for the Rust code. All of them are called in the context of a process that may sleep. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/bug.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include "module.h"

/* A waiter first yields this many times; then it sleeps, longer after more attempts. */
#define YIELD_COUNT 8u
#define SLEEP_MIN_US 50u
#define SLEEP_DOUBLINGS_MAX 4u

static bool is_dead;

bool ink_is_dead(void)
{
	return READ_ONCE(is_dead);
}

/*
 * kmalloc aligns powers of two to their size, and multiples of pages to a page. Larger alignments are refused.
 */
void *ink_host_lend(size_t bytes, size_t align)
{
	if (align > PAGE_SIZE)
		return NULL;
	if (align > ARCH_KMALLOC_MINALIGN && bytes <= KMALLOC_MAX_CACHE_SIZE)
		bytes = roundup_pow_of_two(max(bytes, align));
	/* Memory for a process' requests is charged to it; memory for opening and work items is charged to the root. */
	return kvzalloc(bytes, GFP_KERNEL_ACCOUNT);
}

void ink_host_give_back(void *memory)
{
	kvfree(memory);
}

void ink_host_relax(u32 attempt)
{
	u32 us;

	if (attempt < YIELD_COUNT) {
		cond_resched();
		return;
	}
	us = SLEEP_MIN_US << min((attempt - YIELD_COUNT) / 4, SLEEP_DOUBLINGS_MAX);
	usleep_range(us, us + us / 4);
}

void ink_host_yield(void)
{
	cond_resched();
}

bool ink_host_is_killed(void)
{
	return fatal_signal_pending(current);
}

u64 ink_host_now_ms(void)
{
	return ktime_to_ms(ktime_get_real());
}

void ink_host_log(const char *text, size_t len)
{
	pr_info_ratelimited("%.*s\n", (int)len, text);
}

void __noreturn ink_host_die(const char *text, size_t len)
{
	WRITE_ONCE(is_dead, true);
	pr_emerg("%.*s\n", (int)len, text);
	BUG();
}
