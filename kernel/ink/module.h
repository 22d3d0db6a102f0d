/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Declarations shared by the module's files. */
#ifndef HIKV_INK_MODULE_H
#define HIKV_INK_MODULE_H

#include <linux/fs.h>
#include "core.h"

/* Mapped persistent memory. */
struct ink_region {
	void *base;
	u64 len;
	u64 durability;		/* INK_DURABILITY_... */
};

int ink_region_map(struct ink_region *region);
void ink_region_unmap(void);

/* True once the kernel has reported that memory of the region has failed: all requests are refused from then on. */
bool ink_region_has_failed(void);

struct ink_kept;

/* Memory for a request: cached by a processor, or allocated for the request. */
struct ink_room {
	void *start;
	/* At least the requested size. */
	size_t bytes;
	struct ink_kept *kept;
};

/* False if the kernel has no memory. May sleep. */
bool ink_room_take(struct ink_room *room, size_t bytes);
void ink_room_give_back(struct ink_room *room);

/* To be called when no request runs and none can come. */
void ink_rooms_free(void);

/* An open store, and the durability of its writes. */
struct ink_open {
	struct ink_core_store *store;
	u64 durability;
};

/* Handles an ioctl on it. */
long ink_request(const struct ink_open *on, struct file *file, unsigned int command, void __user *at);

/* True once an assertion of the Rust code has failed: all requests are refused from then on. */
bool ink_is_dead(void);

/* True in a broken variant of the module that leaves out the step of that name. Such variants exist only for tests. */
#ifdef HIKV_INK_TRACE
bool ink_is_broken(const char *name);
#else
static inline bool ink_is_broken(const char *name)
{
	return false;
}
#endif

#endif
