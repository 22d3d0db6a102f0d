// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A model of the processor's cache before an NVDIMM, as a plugin of QEMU 7.2's emulator (TCG). `cargo xtask kernel rounds` builds it.
 *
 * The guest's memory is the NVDIMM's file, which has every store at once. Beside it the plugin keeps the durable image: a line
 * comes there when a fence follows its write-back, or when the model evicts it, which it does at random, as a cache may. A cut
 * is the end of the emulator: the next boot begins with the durable image.
 *
 * The emulator leaves CLWB out. The module, built for this, executes a marker before each (nopl 0x7e571337(%rax)) and then a load
 * from the line. The first marked load is from the region's first byte, which tells where it lies. One processor.
 *
 * The cut comes after so many stores to the region, between two instructions: the plugin ends the emulator.
 *
 * arguments: size=BYTES live=FILE durable=FILE seed=NUMBER evict=ONE_IN cut=STORES
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
#define IS_EXPORTED __attribute__((visibility("default")))

IS_EXPORTED int qemu_plugin_version = 1;

/* What becomes of a line: stored to since it was last durable; written back since. */
enum { DIRTY = 1, PENDING = 2 };
/* What an instruction does. */
enum { PLAIN, PAST_CACHE, MARKED };

static uint64_t base, size, random_state = 88172645463325252ull, evict, stores_left = UINT64_MAX;
static int is_placed;
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

static void on_access(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *what)
{
	struct qemu_plugin_hwaddr *place;
	uint64_t physical, line;

	if (what != (void *)MARKED && (!is_placed || !qemu_plugin_mem_is_store(info)))
		return;
	place = qemu_plugin_get_hwaddr(info, address);
	if (!place || qemu_plugin_hwaddr_is_io(place))
		return;
	physical = qemu_plugin_hwaddr_phys_addr(place);
	if (!is_placed) {
		base = physical;
		is_placed = 1;
	}
	if (physical - base >= size)
		return;
	line = (physical - base) / LINE;
	if (what == (void *)MARKED) {
		write_back(line);
		return;
	}
	if (--stores_left == 0)
		_exit(0);
	states[line] |= DIRTY;
	if (what == (void *)PAST_CACHE)
		write_back(line);
	else if (evict && next_random() % evict == 0)
		make_durable(line);
}

static void on_fence(unsigned int cpu, void *unused)
{
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

static int is_past_cache(const uint8_t *code, size_t len)
{
	size_t prefix = len > 1 && (code[0] & 0xf0) == 0x40;

	return len > prefix + 1 && code[prefix] == 0x0f && code[prefix + 1] == 0xc3;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	size_t count = qemu_plugin_tb_n_insns(block);
	int is_marked = 0;

	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
		const uint8_t *code = qemu_plugin_insn_data(insn);
		size_t len = qemu_plugin_insn_size(insn);
		uintptr_t what = is_marked ? MARKED : is_past_cache(code, len) ? PAST_CACHE : PLAIN;

		/* Processes do not reach the region. */
		if (!(qemu_plugin_insn_vaddr(insn) & KERNEL))
			return;
		is_marked = is_marker(code, len);
		if (is_fence(code, len))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_fence, CB_NO_REGS, NULL);
		else if (!is_marked)
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
		else if (!strcmp(argv[i], "cut"))
			stores_left = strtoull(value, NULL, 0);
	}
	if (!live_file || !durable_file || !size)
		return -1;
	live = map(live_file, PROT_READ);
	durable = map(durable_file, PROT_READ | PROT_WRITE);
	states = calloc(size / LINE, 1);
	pending = calloc(size / LINE, sizeof(*pending));
	if (!states || !pending)
		return -1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
	return 0;
}
