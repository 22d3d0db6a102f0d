/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT */
/*
 * The device /dev/hikv-ink: keys and values in persistent memory, in the order of their keys.
 *
 * Every ioctl takes a struct ink_request. It returns 0, or -1 with errno. The request is written back if it returned
 * 0, with EMSGSIZE, and by SUBMIT in any case. The writes of a request that returned 0 are durable, as ink_stat's
 * durability says.
 *
 *	EBADF	 the descriptor was not opened for this operation
 *	EFAULT	 an address is not the process's
 *	EINVAL	 unsupported version, unknown flag, or a field that must be 0 is not
 *	E2BIG	 a key longer than INK_KEY_MAX, a value longer than INK_VALUE_MAX, more requests than INK_SUBMIT_MAX
 *	ENOENT	 no such key
 *	EEXIST	 the key exists, and INK_IF_ABSENT was set
 *	EMSGSIZE the answer is longer than value_len: result has the length, and nothing was copied
 *	ENOSPC	 the region is full
 *	ENOMEM	 the kernel has no memory
 *	EUCLEAN	 the store is damaged there
 *	EINTR	 the process is being killed
 *	EPERM	 CAP_SYS_ADMIN is missing
 *	EIO	 the store has stopped: an assertion has failed, or memory of the region has failed
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
/* The size of the longest item in a SCAN's answer. More of the caller's buffer is not used. */
#define INK_SCAN_MAX	(8u + INK_KEY_MAX + INK_VALUE_MAX)

/* The size of the first version of struct ink_stat, up to `undone`. */
#define INK_STAT_MIN	64u

struct ink_request {
	__u32 version;		/* INK_VERSION */
	__u32 flags;
	__u64 key;		/* address; INSERT, READ, REMOVE, SCAN */
	__u64 value;		/* address of the value, or of the answer's buffer */
	__u32 key_len;
	__u32 op;		/* SUBMIT's requests: INK_OP_...; otherwise 0 */
	__u64 value_len;	/* length of the value, or of the answer's buffer */
	__u64 result;		/* out: see each ioctl */
	__u64 count;		/* out; SUBMIT: in */
	__s32 error;		/* out, SUBMIT's requests: 0 or an errno */
	__u32 reserved;		/* 0 */
};

/* Flags of INSERT. */
#define INK_IF_ABSENT	1u
#define INK_IF_PRESENT	2u
/* Flag of SCAN: starts behind the key instead of at it. */
#define INK_BEHIND	1u

#define INK_OP_INSERT	1u
#define INK_OP_READ	2u
#define INK_OP_REMOVE	3u
#define INK_OP_SCAN	4u
#define INK_OP_SUBMIT	5u
#define INK_OP_STAT	6u
#define INK_OP_CHECK	7u
#define INK_OP_CLEAR	8u

/* Puts a value, replacing the key's old one. */
#define INK_INSERT	_IOWR(0xd7, 1, struct ink_request)
/* Copies the key's value; result: its length. */
#define INK_READ	_IOWR(0xd7, 2, struct ink_request)
/* Deletes a key. */
#define INK_REMOVE	_IOWR(0xd7, 3, struct ink_request)
/*
 * Copies items from the key on, in order, as many as fit: struct ink_item, key, value, without gaps, unaligned.
 * count: number of items, 0 at the end; result: their bytes. With EMSGSIZE the first item did not fit: result: its
 * size.
 */
#define INK_SCAN	_IOWR(0xd7, 4, struct ink_request)
/*
 * Carries out `count` requests, which are at `value`, one after the other and independently; each one's errno is in
 * `error`. result: number of requests carried out, which is less than `count` with EINTR and EFAULT. With EFAULT the
 * last one's `error` may not have been written.
 */
#define INK_SUBMIT	_IOWR(0xd7, 5, struct ink_request)
/* Copies a struct ink_stat, or as much of it as fits, but at least INK_STAT_MIN; result: full length. */
#define INK_STAT	_IOWR(0xd7, 6, struct ink_request)
/* Checks the entire store, unless the process is killed first. count: keys; result: contradictions. */
#define INK_CHECK	_IOWR(0xd7, 7, struct ink_request)
/* Deletes every key. Needs CAP_SYS_ADMIN. */
#define INK_CLEAR	_IOWR(0xd7, 8, struct ink_request)

struct ink_item {
	__u32 key_len;
	__u32 value_len;
};

/* Durability of the writes of requests that returned 0. */
#define INK_DURABILITY_UNKNOWN	0u	/* they survive the end of the kernel's work; the kind of memory is unknown (phys=) */
#define INK_DURABILITY_POWER	1u	/* they survive a loss of power */

struct ink_stat {
	__u64 region_bytes;
	__u64 used_bytes;	/* up to the end of the last chunk */
	__u64 live_bytes;
	__u64 free_bytes;
	__u64 dram_bytes;
	__u64 lanes;		/* most concurrent writers */
	__u64 swept;		/* 1: all free space is known */
	__u64 undone;		/* changes that opening has undone */
	__u64 merged;		/* nodes removed by merges since then */
	__u64 durability;	/* INK_DURABILITY_... */
};

#endif
