// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Memory for a request's key, value and answer. Each processor caches one buffer, which a request uses while it runs.
 * A request that finds it in use, or needs more, gets separate memory. Kernels may zero memory that they allocate
 * (init_on_alloc), which costs more than a small request does: a cached buffer is zeroed once.
 *
 * A cached buffer holds the contents of an earlier request, maybe of another user. So only bytes that the present
 * request has written are copied out of a buffer (request.c).
 *
 * - is_taken: a request uses the buffer. It is set from 0 to 1 by an exchange, so that one request has the buffer at
 *   a time, and reset by the same request, on whatever processor that runs by then. Accesses to the buffer are
 *   ordered by the two.
 * - start: NULL until a request first takes the buffer; used only by the request that has taken it.
 */
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "module.h"

/* The longest key, and 64 KiB behind it; a power of two, the unit of allocation. */
#define KEPT_BYTES (128u << 10)

struct ink_kept {
	u32 is_taken;
	void *start;
};

static DEFINE_PER_CPU(struct ink_kept, kept_of);

static bool take_kept(struct ink_room *room)
{
	/* A hint: a task that moves to another processor returns this processor's buffer from there. */
	struct ink_kept *kept = raw_cpu_ptr(&kept_of);

	if (xchg(&kept->is_taken, 1) && !(ink_is_broken("RoomShared") && READ_ONCE(kept->start)))
		return false;
	if (!kept->start)
		kept->start = kvmalloc(KEPT_BYTES, GFP_KERNEL);
	*room = (struct ink_room){ .start = kept->start, .bytes = KEPT_BYTES, .kept = kept };
	if (!kept->start)
		smp_store_release(&kept->is_taken, 0);
	return room->start;
}

/*
 * KASAN detects accesses beyond the end of allocated memory, but not beyond the part of a cached buffer that a request
 * may use. So with KASAN half of the requests allocate their own.
 */
static bool may_be_kept(size_t bytes)
{
	if (IS_ENABLED(CONFIG_KASAN) && get_random_u32() % 2)
		return false;
	return bytes <= KEPT_BYTES && !ink_is_broken("FreedFirst");
}

bool ink_room_take(struct ink_room *room, size_t bytes)
{
	if (may_be_kept(bytes) && take_kept(room))
		return true;
	*room = (struct ink_room){ .start = kvmalloc(max_t(size_t, bytes, 1), GFP_KERNEL_ACCOUNT), .bytes = bytes };
	return room->start;
}

void ink_room_give_back(struct ink_room *room)
{
	if (room->kept)
		smp_store_release(&room->kept->is_taken, 0);
	else
		kvfree(room->start);
	room->start = NULL;
}

void ink_rooms_free(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		kvfree(per_cpu_ptr(&kept_of, cpu)->start);
}
