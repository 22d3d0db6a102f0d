// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A model of the processor's cache in front of an NVDIMM, as a plugin of QEMU 7.2's emulator (TCG). `cargo xtask
 * kernel rounds` and `cargo xtask vm cached` build it.
 *
 * The guest's memory is the NVDIMM's file, which receives every store immediately. In addition the plugin keeps the
 * durable image: a line is copied there when a fence follows its write-back, or when the model evicts it, which it
 * does at random, as a cache may. A cut is the end of the emulator: the next boot begins with the durable image.
 *
 * The emulator ignores CLWB. Code under test, built for this, executes a marker before each (nopl 0x7e571337(%rax))
 * and then a load from the line. One processor.
 *
 * In the kernel (by=kernel) the module is tested, and accesses by processes are ignored. Its first marked load is
 * from the region's first byte, which gives the region's address. For processes (by=processes) their stores go
 * through the cache and their fences count; stores by the kernel are durable immediately. There a process stores
 * PLACE in the NVDIMM's first word, which gives its address.
 *
 * A cut comes between two instructions: before a store to the region, or before a fence that lines wait for, after at
 * most the given number of them since the last cut. Each line whose write-back was not followed by a fence may or may
 * not have arrived by then. The plugin ends the emulator at the last of cuts=COUNT; for each earlier cut it writes
 * the image that would have remained to image=FILE, with a point and the image's number appended to the name. That
 * number is printed between two control characters, within the line that the guest is about to print.
 *
 * arguments: by=WHO size=BYTES live=FILE durable=FILE seed=NUMBER evict=ONE_IN stores=COUNT fences=COUNT cuts=COUNT
 * image=FILE
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "api.h"

#define LINE 64
#define KERNEL (1ull << 63)
#define PLACE 0x7e571337504d454dull
#define IS_EXPORTED __attribute__((visibility("default")))

IS_EXPORTED int qemu_plugin_version = 1;

/* The state of a line: stored to since it was last durable; written back since. */
enum { DIRTY = 1, PENDING = 2 };
/* The kind of an instruction. */
enum { PLAIN, PAST_CACHE, MARKED, AT_ONCE };

static uint64_t base, size, random_state = 88172645463325252ull, evict, stores_left, fences_left;
static uint64_t stores_max, fences_max, cuts_left = 1;
static const char *image_file;
static int is_placed, is_of_processes;
static uint8_t *live, *durable, *states;
static uint32_t *pending;
static size_t pending_count;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void make_durable(uint64_t line)
{
	memcpy(durable + line * LINE, live + line * LINE, LINE);
	states[line] = 0;
}

static void write_back(uint64_t line)
{
	if ((states[line] & DIRTY) && !(states[line] & PENDING)) {
		states[line] |= PENDING;
		pending[pending_count++] = line;
	}
}

static int arrives(uint64_t line)
{
	return (states[line] & PENDING) && next_random() % 2;
}

static void cut(void)
{
	for (size_t i = 0; i < pending_count; i++)
		if (arrives(pending[i]))
			make_durable(pending[i]);
	_exit(0);
}

static void write_image(void)
{
	static const uint8_t zeros[4096];
	static unsigned int number;
	char file[4096];
	int fd;

	snprintf(file, sizeof(file), "%s.%u", image_file, number);
	fd = open(file, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	if (fd < 0 || ftruncate(fd, size) < 0)
		_exit(1);
	for (uint64_t at = 0; at < size; at += sizeof(zeros))
		if (memcmp(durable + at, zeros, sizeof(zeros)) && pwrite(fd, durable + at, sizeof(zeros), at) < 0)
			_exit(1);
	for (size_t i = 0; i < pending_count; i++)
		if (arrives(pending[i]) && pwrite(fd, live + pending[i] * LINE, LINE, pending[i] * LINE) < 0)
			_exit(1);
	close(fd);
	dprintf(1, "\001%u\002\n", number++);
}

/* Chooses the next cut: before a store, or before a fence, if both are possible. */
static void choose_next(void)
{
	int is_before_fence = fences_max && (!stores_max || next_random() % 2);

	fences_left = is_before_fence ? 1 + next_random() % fences_max : UINT64_MAX;
	stores_left = is_before_fence ? UINT64_MAX : 1 + next_random() % stores_max;
}

static void on_cut(void)
{
	if (--cuts_left == 0)
		cut();
	write_image();
	choose_next();
}

/* True if this access gives the region's address. */
static int tells_place(int is_store, uintptr_t what)
{
	uint64_t word;

	memcpy(&word, live, sizeof(word));
	return is_of_processes ? is_store && word == PLACE : what == MARKED;
}

static void store(uint64_t line, uintptr_t what)
{
	if (what == AT_ONCE) {
		make_durable(line);
		return;
	}
	states[line] |= DIRTY;
	if (what == PAST_CACHE)
		write_back(line);
	else if (evict && next_random() % evict == 0)
		make_durable(line);
}

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	uintptr_t what = (uintptr_t)data;
	struct qemu_plugin_hwaddr *place;
	uint64_t at, last;
	int is_store = qemu_plugin_mem_is_store(info);

	if (is_placed ? what != MARKED && !is_store : !tells_place(is_store, what))
		return;
	place = qemu_plugin_get_hwaddr(info, address);
	if (!place || qemu_plugin_hwaddr_is_io(place))
		return;
	if (!is_placed) {
		base = qemu_plugin_hwaddr_phys_addr(place);
		is_placed = 1;
	}
	at = qemu_plugin_hwaddr_phys_addr(place) - base;
	if (at >= size)
		return;
	if (what == MARKED) {
		write_back(at / LINE);
		return;
	}
	if (what != AT_ONCE && --stores_left == 0)
		on_cut();
	last = at + (1ull << qemu_plugin_mem_size_shift(info)) - 1;
	store(at / LINE, what);
	if (last / LINE != at / LINE && last < size)
		store(last / LINE, what);
}

static void on_fence(unsigned int cpu, void *unused)
{
	if (pending_count && --fences_left == 0)
		on_cut();
	for (size_t i = 0; i < pending_count; i++)
		if (states[pending[i]] & PENDING)
			make_durable(pending[i]);
	pending_count = 0;
}

static int is_marker(const uint8_t *code, size_t len)
{
	return len == 7 && !memcmp(code, "\x0f\x1f\x80\x37\x13\x57\x7e", 7);
}

static int is_fence(const uint8_t *code, size_t len)
{
	return len == 3 && code[0] == 0x0f && code[1] == 0xae && ((code[2] & 0xf8) == 0xf8 || (code[2] & 0xf8) == 0xf0);
}

/* MOVNTI, MOVNTDQ. */
static int is_past_cache(const uint8_t *code, size_t len)
{
	size_t wide = len > 0 && code[0] == 0x66, prefix = wide + (len > wide && (code[wide] & 0xf0) == 0x40);

	return len > prefix + 1 && code[prefix] == 0x0f && code[prefix + 1] == (wide ? 0xe7 : 0xc3);
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	size_t count = qemu_plugin_tb_n_insns(block);
	/* The end of the last marker: the load behind it may be in the next block. */
	static uint64_t marker_end;

	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
		const uint8_t *code = qemu_plugin_insn_data(insn);
		size_t len = qemu_plugin_insn_size(insn);
		uint64_t address = qemu_plugin_insn_vaddr(insn);
		uintptr_t what = address == marker_end ? MARKED : is_past_cache(code, len) ? PAST_CACHE : PLAIN;
		int is_of_kernel = (address & KERNEL) != 0;

		if (is_of_kernel && is_of_processes)
			qemu_plugin_register_vcpu_mem_cb(insn, on_access, CB_NO_REGS, MEM_W, (void *)AT_ONCE);
		if (is_of_kernel == is_of_processes)
			continue;
		if (is_fence(code, len))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_fence, CB_NO_REGS, NULL);
		else if (is_marker(code, len))
			marker_end = address + len;
		else
			qemu_plugin_register_vcpu_mem_cb(insn, on_access, CB_NO_REGS, MEM_RW, (void *)what);
	}
}

static uint8_t *map(const char *file, int protection)
{
	int fd = open(file, O_RDWR);
	void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, size, protection, MAP_SHARED, fd, 0);

	if (mapped == MAP_FAILED) {
		perror(file);
		exit(1);
	}
	close(fd);
	return mapped;
}

IS_EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	const char *live_file = NULL, *durable_file = NULL;

	for (int i = 0; i < argc; i++) {
		char *value = strchr(argv[i], '=');

		if (!value)
			return -1;
		*value++ = 0;
		if (!strcmp(argv[i], "size"))
			size = strtoull(value, NULL, 0);
		else if (!strcmp(argv[i], "live"))
			live_file = value;
		else if (!strcmp(argv[i], "durable"))
			durable_file = value;
		else if (!strcmp(argv[i], "seed"))
			random_state ^= strtoull(value, NULL, 0) * 0x9e3779b97f4a7c15ull;
		else if (!strcmp(argv[i], "evict"))
			evict = strtoull(value, NULL, 0);
		else if (!strcmp(argv[i], "stores"))
			stores_max = strtoull(value, NULL, 0);
		else if (!strcmp(argv[i], "fences"))
			fences_max = strtoull(value, NULL, 0);
		else if (!strcmp(argv[i], "cuts"))
			cuts_left = strtoull(value, NULL, 0);
		else if (!strcmp(argv[i], "image"))
			image_file = value;
		else if (!strcmp(argv[i], "by"))
			is_of_processes = !strcmp(value, "processes");
	}
	if (!live_file || !durable_file || !size || !(stores_max || fences_max))
		return -1;
	choose_next();
	live = map(live_file, PROT_READ | PROT_WRITE);
	/* Left by the last boot. */
	memset(live, 0, is_of_processes ? sizeof(uint64_t) : 0);
	durable = map(durable_file, PROT_READ | PROT_WRITE);
	states = calloc(size / LINE, 1);
	pending = calloc(size / LINE, sizeof(*pending));
	if (!states || !pending)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
