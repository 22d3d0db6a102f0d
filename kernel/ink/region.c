// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The region of the store: an entire device with DAX, opened exclusively (dev=), or a range of physical memory that
 * is not in use (phys=, size=; for tests). One store per module.
 *
 * The writes of a request survive a loss of power only if writing back the processor's cache makes them durable. A
 * device whose cache also needs a flush command to the host (virtio-pmem; dax_synchronous() is false for it) is
 * refused, as MAP_SYNC is refused for files there, and so is a device of volatile memory. For a physical range the
 * kind of memory is unknown; STAT and the kernel's log say so.
 *
 * Memory that a scrubber or an administrator finds to have failed is reported to the device's holder. From then on
 * every request is refused: a load from there would stop the machine. Memory that is already known to have failed is
 * refused when the module is loaded.
 *
 * An open device may still be detached from its driver (unbind, ndctl), which would unmap it under running requests.
 * So its pages are held as well: detaching the device waits until the module is unloaded.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/blkdev.h>
#include <linux/dax.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pfn_t.h>
#include <linux/string.h>
#include "module.h"

#define HOW (FMODE_READ | FMODE_WRITE | FMODE_EXCL)

static char *dev;
module_param(dev, charp, 0444);
MODULE_PARM_DESC(dev, "the block device, such as /dev/pmem0; it must support DAX");
static ulong phys;
module_param(phys, ulong, 0444);
MODULE_PARM_DESC(phys, "the start of a physical range to use instead of a device");
static ulong size;
module_param(size, ulong, 0444);
MODULE_PARM_DESC(size, "the length of the physical range in bytes");

/* The address by which the kernel identifies the holder of the device. */
static int holder;
static struct block_device *bdev;
static struct dax_device *dax;
static struct dev_pagemap *pages_held;
static void *remapped;
static struct resource *claimed;

static bool has_failed;

bool ink_region_has_failed(void)
{
	return READ_ONCE(has_failed);
}

static int notify_failure(struct dax_device *failed, u64 offset, u64 len, int flags)
{
	WRITE_ONCE(has_failed, true);
	pr_emerg("%s: %llu bytes of its memory at %#llx have failed; the store is stopped\n", dev, len, offset);
	return 0;
}

static const struct dax_holder_operations holding = {
	.notify_failure = notify_failure,
};

/* True if the device's memory is volatile: the kernel names the kind of region that the device is a part of. */
static bool is_volatile(void)
{
	const struct device *at;

	for (at = disk_to_dev(bdev->bd_disk)->parent; at; at = at->parent)
		if (at->type && at->type->name && !strcmp(at->type->name, "nd_volatile"))
			return true;
	return false;
}

/* Returns 0 if lines written back from the processor's cache survive a loss of power. */
static int check_durable(void)
{
	if (!dax_synchronous(dax)) {
		pr_err("%s has a write cache that only its host can flush (virtio-pmem): writes would not survive a loss of power\n", dev);
		return -EOPNOTSUPP;
	}
	if (is_volatile()) {
		pr_err("%s is volatile memory: writes would not survive a loss of power\n", dev);
		return -EOPNOTSUPP;
	}
	return 0;
}

static int map_device(struct ink_region *region)
{
	u64 offset = 0;
	long pages, wanted;
	int id, error;
	pfn_t pfn;

	bdev = blkdev_get_by_path(dev, HOW, &holder);
	if (IS_ERR(bdev)) {
		error = PTR_ERR(bdev);
		bdev = NULL;
		pr_err("cannot open %s exclusively: error %d\n", dev, error);
		return error;
	}
	dax = fs_dax_get_by_bdev(bdev, &offset, &holder, &holding);
	if (!dax) {
		pr_err("%s does not support DAX; use an fsdax namespace\n", dev);
		return -EOPNOTSUPP;
	}
	error = check_durable();
	if (error)
		return error;
	wanted = bdev_nr_bytes(bdev) >> PAGE_SHIFT;
	id = dax_read_lock();
	pages = dax_direct_access(dax, offset >> PAGE_SHIFT, wanted, DAX_ACCESS, &region->base, &pfn);
	if (pages > 0)
		pages_held = get_dev_pagemap(pfn_t_to_pfn(pfn), NULL);
	dax_read_unlock(id);
	if (pages < wanted) {
		pr_err("%s: only %ld of %ld pages can be mapped contiguously\n", dev, pages, wanted);
		return pages < 0 ? pages : -EOPNOTSUPP;
	}
	if (!pages_held) {
		pr_err("%s has no pages that can be pinned\n", dev);
		return -EOPNOTSUPP;
	}
	region->len = (u64)wanted << PAGE_SHIFT;
	region->durability = INK_DURABILITY_POWER;
	return 0;
}

static int map_physical(struct ink_region *region)
{
	if (!PAGE_ALIGNED(phys) || !PAGE_ALIGNED(size) || !size)
		return -EINVAL;
	claimed = request_mem_region(phys, size, KBUILD_MODNAME);
	if (!claimed) {
		pr_err("the physical range at %#lx is already in use\n", phys);
		return -EBUSY;
	}
	remapped = memremap(phys, size, MEMREMAP_WB);
	if (!remapped)
		return -ENOMEM;
	*region = (struct ink_region){ .base = remapped, .len = size, .durability = INK_DURABILITY_UNKNOWN };
	return 0;
}

int ink_region_map(struct ink_region *region)
{
	int error;

	if (!!dev == !!size) {
		pr_err("set either dev=, or phys= and size=\n");
		return -EINVAL;
	}
	error = dev ? map_device(region) : map_physical(region);
	if (error)
		ink_region_unmap();
	return error;
}

void ink_region_unmap(void)
{
	if (dax)
		fs_put_dax(dax, &holder);
	if (bdev)
		blkdev_put(bdev, HOW);
	put_dev_pagemap(pages_held);
	if (remapped)
		memunmap(remapped);
	if (claimed)
		release_mem_region(phys, size);
}
