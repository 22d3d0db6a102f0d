// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Requests. User memory is accessed outside of all locks: a request's key and value are copied into a kernel buffer
 * (room.c), all lengths are checked before any memory is allocated, the Rust code works in that buffer, and the
 * answer is copied out. A request is copied in once; later changes by the user are not seen. Of the answer's buffer
 * only the written part is copied out.
 */
#include <linux/capability.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>
#include "module.h"

/* A read's first buffer if it is allocated for the request: most values fit, whatever the caller offers. */
#define READ_FIRST_BYTES 4096u

struct context {
	struct ink_core_store *store;
	u64 durability;
	fmode_t mode;
};

static bool fits(const struct ink_request *r, u64 value_len)
{
	return (r->key_len <= INK_KEY_MAX && value_len <= INK_VALUE_MAX) || ink_is_broken("LengthNotChecked");
}

static bool fetched(void *to, u64 from, size_t len)
{
	return !copy_from_user(to, u64_to_user_ptr(from), len) || ink_is_broken("CopyNotChecked");
}

/* Copies a user's key and value, one behind the other, into a buffer with more_bytes behind them. */
static long copy_in(const struct ink_request *r, u64 value_len, size_t more_bytes, struct ink_room *room)
{
	if (!fits(r, value_len))
		return -E2BIG;
	if (!ink_room_take(room, r->key_len + value_len + more_bytes))
		return -ENOMEM;
	if (fetched(room->start, r->key, r->key_len) && fetched(room->start + r->key_len, r->value, value_len))
		return 0;
	ink_room_give_back(room);
	return -EFAULT;
}

static struct ink_bytes key_in(const struct ink_request *r, const struct ink_room *room)
{
	return (struct ink_bytes){ room->start, r->key_len };
}

static u32 agent(void)
{
		/* A hint: a task that moves to another processor only contends with others there. */
	return raw_smp_processor_id();
}

static long insert(const struct context *in, struct ink_request *r)
{
	struct ink_bytes key, value;
	struct ink_room room;
	long error;

	if (r->flags > INK_IF_PRESENT)
		return -EINVAL;
	error = copy_in(r, r->value_len, 0, &room);
	if (error)
		return error;
	key = key_in(r, &room);
	value = (struct ink_bytes){ room.start + r->key_len, r->value_len };
	if (ink_is_broken("FreedFirst"))
		ink_room_give_back(&room);
	error = ink_core_put(in->store, agent(), key, value, r->flags);
	ink_room_give_back(&room);
	return error;
}

static long remove(const struct context *in, struct ink_request *r)
{
	struct ink_room room;
	long error = copy_in(r, 0, 0, &room);

	if (error)
		return error;
	error = ink_core_remove(in->store, agent(), key_in(r, &room));
	ink_room_give_back(&room);
	return error;
}

/* Calls the Rust code with a buffer of this size for an answer, and copies the answer out. */
static long answered(const struct context *in, struct ink_request *r, struct ink_bytes key, void *start, size_t bytes)
{
	struct ink_answer answer = { .start = start, .room = bytes };
	long error;

	if (r->op == INK_OP_READ)
		error = ink_core_get(in->store, key, &answer);
	else
		error = ink_core_scan(in->store, key, r->flags & INK_BEHIND, &answer);
	r->count = answer.count;
	r->result = error || r->op == INK_OP_READ ? answer.len : answer.used;
	if (ink_is_broken("WholeRoomCopied"))
		answer.used = bytes;
	if (!error && answer.used && copy_to_user(u64_to_user_ptr(r->value), start, answer.used))
		error = -EFAULT;
	return error;
}

static long read(const struct context *in, struct ink_request *r)
{
	size_t offered = min_t(u64, r->value_len, INK_VALUE_MAX);
	struct ink_room room, longer;
	long error = copy_in(r, 0, min_t(size_t, offered, READ_FIRST_BYTES), &room);

	if (error)
		return error;
	error = answered(in, r, key_in(r, &room), room.start + r->key_len, min(offered, room.bytes - r->key_len));
	/* One more attempt. If a longer value replaces this one in between, the caller gets EMSGSIZE again. */
	if (error == -EMSGSIZE && r->result <= offered) {
		error = -ENOMEM;
		if (ink_room_take(&longer, offered)) {
			error = answered(in, r, key_in(r, &room), longer.start, offered);
			ink_room_give_back(&longer);
		}
	}
	ink_room_give_back(&room);
	return error;
}

static long scan(const struct context *in, struct ink_request *r)
{
	size_t offered = min_t(u64, r->value_len, INK_SCAN_MAX);
	struct ink_room room;
	long error;

	if (r->flags & ~INK_BEHIND)
		return -EINVAL;
	error = copy_in(r, 0, offered, &room);
	if (error)
		return error;
	error = answered(in, r, key_in(r, &room), room.start + r->key_len, offered);
	ink_room_give_back(&room);
	return error;
}

static long stat(const struct context *in, struct ink_request *r)
{
	struct ink_stat stat;

	ink_core_stat(in->store, &stat);
	stat.durability = in->durability;
	r->result = sizeof(stat);
	if (r->value_len < INK_STAT_MIN)
		return -EMSGSIZE;
	return copy_to_user(u64_to_user_ptr(r->value), &stat, min_t(u64, r->value_len, sizeof(stat))) ? -EFAULT : 0;
}

static long check(const struct context *in, struct ink_request *r)
{
	struct ink_answer answer = {};
	long error = ink_core_check(in->store, &answer);

	r->count = answer.count;
	r->result = answer.len;
	return error;
}

static long clear(const struct context *in)
{
	return capable(CAP_SYS_ADMIN) ? ink_core_clear(in->store, agent()) : -EPERM;
}

/* Carries out a request that is in kernel memory. */
static long one(const struct context *in, struct ink_request *r)
{
	bool is_write = r->op == INK_OP_INSERT || r->op == INK_OP_REMOVE || r->op == INK_OP_CLEAR;

	if (r->version != INK_VERSION || r->reserved)
		return -EINVAL;
	if (!(in->mode & (is_write ? FMODE_WRITE : FMODE_READ)) && !ink_is_broken("ModeNotChecked"))
		return -EBADF;
	if (r->flags && r->op != INK_OP_INSERT && r->op != INK_OP_SCAN)
		return -EINVAL;
	switch (r->op) {
	case INK_OP_INSERT:
		return insert(in, r);
	case INK_OP_READ:
		return read(in, r);
	case INK_OP_REMOVE:
		return remove(in, r);
	case INK_OP_SCAN:
		return scan(in, r);
	case INK_OP_STAT:
		return stat(in, r);
	case INK_OP_CHECK:
		return check(in, r);
	case INK_OP_CLEAR:
		return clear(in);
	default:
		return -EINVAL;
	}
}

static long submit(const struct context *in, struct ink_request *r)
{
	struct ink_request __user *at = u64_to_user_ptr(r->value);
	struct ink_request each;
	u64 i;

	if (r->version != INK_VERSION || r->reserved || r->flags)
		return -EINVAL;
	if (r->count > INK_SUBMIT_MAX)
		return -E2BIG;
	/* The caller gets the number of requests carried out, however the loop ends: they are done. */
	for (r->result = 0; r->result < r->count; cond_resched()) {
		i = r->result;
		if (fatal_signal_pending(current))
			return -EINTR;
		if (copy_from_user(&each, at + i, sizeof(each)))
			return -EFAULT;
		each.error = -one(in, &each);
		r->result++;
		if (copy_to_user(at + i, &each, sizeof(each)))
			return -EFAULT;
	}
	return 0;
}

long ink_request(const struct ink_open *on, struct file *file, unsigned int command, void __user *at)
{
	struct context in = { .store = on->store, .durability = on->durability, .mode = file->f_mode };
	struct ink_request r;
	bool is_several;
	long error;

	if (_IOC_TYPE(command) != _IOC_TYPE(INK_READ) || command != _IOWR(0xd7, _IOC_NR(command), struct ink_request))
		return -ENOTTY;
	if (_IOC_NR(command) < INK_OP_INSERT || _IOC_NR(command) > INK_OP_CLEAR)
		return -ENOTTY;
	if (ink_is_dead() || ink_region_has_failed())
		return -EIO;
	if (copy_from_user(&r, at, sizeof(r)))
		return -EFAULT;
	if (r.op)
		return -EINVAL;
	r.op = _IOC_NR(command);
	is_several = r.op == INK_OP_SUBMIT;
	error = is_several ? submit(&in, &r) : one(&in, &r);
	r.op = 0;
	if ((!error || error == -EMSGSIZE || is_several) && copy_to_user(at, &r, sizeof(r)))
		return -EFAULT;
	return error;
}
