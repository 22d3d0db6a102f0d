/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT */
/*
 * The device /dev/hikv-ink: keys and values in persistent memory, in the order of their keys.
 *
 * Every ioctl takes a struct ink_request. It returns 0, or -1 with errno; the request is written back where it returned 0,
 * with EMSGSIZE, and by SUBMIT in any case. What a request that returned 0 has written is durable, as far as ink_stat's durability says.
 *
 *	EBADF	 the descriptor was not opened for this
 *	EFAULT	 an address that is not the process's
 *	EINVAL	 another version, an unknown flag, a field that must be 0
 *	E2BIG	 a key longer than INK_KEY_MAX, a value longer than INK_VALUE_MAX, more requests than INK_SUBMIT_MAX
 *	ENOENT	 no such key
 *	EEXIST	 the key is there, and INK_IF_ABSENT was asked for
 *	EMSGSIZE the answer is longer than value_len: result has the length, and nothing was copied
 *	ENOSPC	 the region is full
 *	ENOMEM	 the kernel has no memory
 *	EUCLEAN	 the store is damaged there
 *	EINTR	 the process is being killed
 *	EPERM	 CAP_SYS_ADMIN is missing
 *	EIO	 the store has stopped: it has met what must not be, or memory of the region has failed
 */
#ifndef HIKV_INK_H
#define HIKV_INK_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define INK_DEVICE	"/dev/hikv-ink"
#define INK_VERSION	1
#define INK_KEY_MAX	65535u
#define INK_VALUE_MAX	(1u << 20)
#define INK_SUBMIT_MAX	64u
/* What the longest item takes in a SCAN's answer, which has no more room however much the caller offers. */
#define INK_SCAN_MAX	(8u + INK_KEY_MAX + INK_VALUE_MAX)

/* What struct ink_stat had at first, up to `undone`. */
#define INK_STAT_MIN	64u

struct ink_request {
	__u32 version;		/* INK_VERSION */
	__u32 flags;
	__u64 key;		/* address; INSERT, READ, REMOVE, SCAN */
	__u64 value;		/* address of the value, or of the answer's room */
	__u32 key_len;
	__u32 op;		/* SUBMIT's requests: INK_OP_...; else 0 */
	__u64 value_len;	/* of the value, or of the answer's room */
	__u64 result;		/* out: see each ioctl */
	__u64 count;		/* out; SUBMIT: in */
	__s32 error;		/* out, SUBMIT's requests: 0 or an errno */
	__u32 reserved;		/* 0 */
};

/* Flags of INSERT. */
#define INK_IF_ABSENT	1u
#define INK_IF_PRESENT	2u
/* Flag of SCAN: from behind the key, and not from it on. */
#define INK_BEHIND	1u

#define INK_OP_INSERT	1u
#define INK_OP_READ	2u
#define INK_OP_REMOVE	3u
#define INK_OP_SCAN	4u
#define INK_OP_SUBMIT	5u
#define INK_OP_STAT	6u
#define INK_OP_CHECK	7u
#define INK_OP_CLEAR	8u

/* Puts a value: as the key's only one. */
#define INK_INSERT	_IOWR(0xd7, 1, struct ink_request)
/* Copies the key's value; result: its length. */
#define INK_READ	_IOWR(0xd7, 2, struct ink_request)
/* Deletes a key. */
#define INK_REMOVE	_IOWR(0xd7, 3, struct ink_request)
/*
 * Copies items from the key on, in order, as many as have room: struct ink_item, key, value, one behind the other, unaligned.
 * count: how many, 0 at the end; result: their bytes. With EMSGSIZE the first had no room: result: what it takes.
 */
#define INK_SCAN	_IOWR(0xd7, 4, struct ink_request)
/*
 * Carries out `count` requests, which lie at `value`, one after the other, each for itself; its errno is in `error`. result: how many
 * were carried out, which is fewer with EINTR and EFAULT; with EFAULT the last one's `error` may not have been written.
 */
#define INK_SUBMIT	_IOWR(0xd7, 5, struct ink_request)
/* Copies a struct ink_stat, or so much of it as there is room for, but no less than INK_STAT_MIN; result: the whole's length. */
#define INK_STAT	_IOWR(0xd7, 6, struct ink_request)
/* Reads everything. count: keys; result: how often the store contradicts itself. Takes as long as it takes, or until the process is killed. */
#define INK_CHECK	_IOWR(0xd7, 7, struct ink_request)
/* Deletes every key. Needs CAP_SYS_ADMIN. */
#define INK_CLEAR	_IOWR(0xd7, 8, struct ink_request)

struct ink_item {
	__u32 key_len;
	__u32 value_len;
};

/* What a request that returned 0 has written survives. */
#define INK_DURABILITY_UNKNOWN	0u	/* the end of the kernel's work; nobody knows what the memory is made of (phys=) */
#define INK_DURABILITY_POWER	1u	/* a loss of power */

struct ink_stat {
	__u64 region_bytes;
	__u64 used_bytes;	/* up to the end of the last chunk */
	__u64 live_bytes;
	__u64 free_bytes;
	__u64 dram_bytes;
	__u64 lanes;		/* writers that can be under way at once */
	__u64 swept;		/* 1: all free space is known */
	__u64 undone;		/* changes that opening took back */
	__u64 merged;		/* nodes fewer since then, by merges of what deletes left low */
	__u64 durability;	/* INK_DURABILITY_... */
};

#endif
