/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of QEMU 7.2's plugin interface (version 1) that the plugin uses; Debian 12 packages no header for it. */
#ifndef HIKV_INK_PLUGIN_API_H
#define HIKV_INK_PLUGIN_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
typedef struct qemu_info qemu_info_t;
enum { CB_NO_REGS, CB_R_REGS, CB_RW_REGS };
enum { MEM_R = 1, MEM_W, MEM_RW };

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

typedef void (*on_memory_t)(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data);
typedef void (*on_execution_t)(unsigned int cpu, void *data);
typedef void (*on_translation_t)(qemu_plugin_id_t id, struct qemu_plugin_tb *block);

void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, on_memory_t call, int flags, int which, void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, on_execution_t call, int flags, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, on_translation_t call);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t address);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *place);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *place);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t number);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

#endif
