/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the module's files have in common. */
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

/* True once the kernel has reported that memory of the region has failed: nothing is done any more. */
bool ink_region_has_failed(void);

struct ink_kept;

/* Memory for a request: kept by a processor, or the request's own. */
struct ink_room {
	void *start;
	/* No less than was asked for. */
	size_t bytes;
	struct ink_kept *kept;
};

/* False where the kernel has no memory. May sleep. */
bool ink_room_take(struct ink_room *room, size_t bytes);
void ink_room_give_back(struct ink_room *room);

/* No request runs, and none comes. */
void ink_rooms_free(void);

/* An open store, and what its writes survive. */
struct ink_open {
	struct ink_core_store *store;
	u64 durability;
};

/* An ioctl on it. */
long ink_request(const struct ink_open *on, struct file *file, unsigned int command, void __user *at);

/* True once the Rust code has met what must not be: nothing is done any more. */
bool ink_is_dead(void);

/* True of a broken twin of the module, which leaves out the step of that name: there are none but for rehearsals. */
#ifdef HIKV_INK_TRACE
bool ink_is_twin(const char *name);
#else
static inline bool ink_is_twin(const char *name)
{
	return false;
}
#endif

#endif
