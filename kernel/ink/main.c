// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The module hikv_ink: a store of hikv's InK engine, and the character device through which processes share it.
 *
 * Loading opens the region's store and undoes changes that a crash left unfinished; a region that was never written
 * to gets a new store. The character device is registered afterwards. A work item then walks the tree and finds the
 * free space while requests are served. Another work item merges sparse nodes whenever a delete finds that it is
 * worthwhile (core/src/merging.rs); the kernel never runs one work item twice at the same time.
 *
 * Unloading:
 * 1. An open descriptor holds the module, so no request runs, and none comes: the character device is removed first.
 *    Only the sweep can still request merges.
 * 2. The merges are asked to end, which they do at the next part of the tree. Neither work item waits for a request.
 * 3. The sweep is waited for, then the merges, which it may have requested; so no work item exists when the store is
 *    closed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/cpumask.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include "module.h"

/* Each lane uses 64 KiB of the region. A writer holds one lane; more writers than lanes wait. */
#define LANES_MIN 4u
#define LANES_MAX 64u

#ifdef HIKV_INK_TRACE
static char *variant;
module_param(variant, charp, 0444);
MODULE_PARM_DESC(variant, "a step to leave out, to test that this is detected");
static uint order;
module_param(order, uint, 0444);
MODULE_PARM_DESC(order, "pairs per node of a new store; few pairs cause many splits and merges");

/* Steps of request.c and room.c; the other steps are in the Rust code. */
static const char *const variants[] = {
	"LengthNotChecked", "CopyNotChecked", "ModeNotChecked", "WholeRoomCopied", "FreedFirst", "RoomShared",
};

bool ink_is_broken(const char *name)
{
	return variant && !strcmp(variant, name);
}

static bool break_step(void)
{
	return match_string(variants, ARRAY_SIZE(variants), variant) >= 0 ||
	       ink_core_break((struct ink_bytes){ variant, strlen(variant) });
}
#endif

static struct ink_region region;
static struct ink_core_store *store;
static struct ink_open opened;

static void sweep(struct work_struct *work)
{
	long error = ink_core_sweep(store);

	if (error)
		pr_err("cannot find the free space: error %ld\n", error);
}
static DECLARE_WORK(sweeping, sweep);

static bool is_ending;

bool ink_host_is_ending(void)
{
	return READ_ONCE(is_ending) || ink_region_has_failed();
}

static void merge(struct work_struct *work)
{
	long error = ink_core_merge(store, raw_smp_processor_id());

	if (error)
		pr_warn_ratelimited("cannot merge sparse nodes: error %ld\n", error);
}
static DECLARE_WORK(merging, merge);

void ink_host_merge_soon(void)
{
	queue_work(system_unbound_wq, &merging);
}

static long ioctl(struct file *file, unsigned int command, unsigned long at)
{
	return ink_request(&opened, file, command, (void __user *)at);
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.llseek = noop_llseek,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "hikv-ink",
	.fops = &operations,
	.mode = 0660,
};

static long open_store(void)
{
	u8 uuid[16];

#ifdef HIKV_INK_TRACE
	if (variant && !break_step())
		return -EINVAL;
	ink_core_order(order);
	/* The model of the cache uses the first line that is written back as the region's first. */
	asm volatile("nopl 0x7e571337(%%rax)\n\tmovb (%0),%%al" :: "r"(region.base) : "rax", "memory");
#endif
	get_random_bytes(uuid, sizeof(uuid));
	return ink_core_open(region.base, region.len, clamp(2 * num_online_cpus(), LANES_MIN, LANES_MAX), uuid, &store);
}

static int __init ink_init(void)
{
	struct ink_stat stat;
	long error = ink_region_map(&region);

	if (error)
		return error;
	error = open_store();
	if (error)
		goto unmap;
	opened = (struct ink_open){ .store = store, .durability = region.durability };
	error = misc_register(&device);
	if (error)
		goto close;
	ink_core_stat(store, &stat);
	pr_info("%llu bytes, %llu lanes, %llu changes undone; durability: %s\n", stat.region_bytes, stat.lanes, stat.undone,
		region.durability == INK_DURABILITY_POWER ? "power" : "unknown");
	queue_work(system_unbound_wq, &sweeping);
	return 0;
close:
	ink_core_close(store);
unmap:
	ink_region_unmap();
	return error;
}

static void __exit ink_exit(void)
{
	misc_deregister(&device);
	WRITE_ONCE(is_ending, true);
	cancel_work_sync(&sweeping);
	cancel_work_sync(&merging);
	ink_rooms_free();
	ink_core_close(store);
	ink_region_unmap();
}

module_init(ink_init);
module_exit(ink_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("hikv: the InK key-value engine over persistent memory");
