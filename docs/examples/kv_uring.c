/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stores a value under a key of an NVMe Key Value device, and retrieves it, by io_uring passthrough: one system call a command, no
 * block layer. Linux 6.0 or later; no library beside libc.
 *
 *	gcc -O2 -o kv_uring kv_uring.c
 *	./kv_uring /dev/ng0n1 fruit apple
 *
 * A program that wants throughput keeps many commands in the ring and waits for some; each is built as here.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/nvme_ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STORE		0x01
#define RETRIEVE	0x02
#define KEY_MAX		16
#define ENTRIES		8
/* Passthrough takes entries of twice the size: the command lies in the second half. */
#define SQE_BYTES	128
#define CQE_BYTES	32

struct ring {
	int fd;
	unsigned *sq_tail, *sq_mask, *sq_array;
	unsigned *cq_head, *cq_tail, *cq_mask;
	char *sqes, *cqes;
};

static int ring_open(struct ring *ring)
{
	struct io_uring_params p = { .flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32 };
	size_t len, sq_len, cq_len;
	char *at;

	ring->fd = syscall(SYS_io_uring_setup, ENTRIES, &p);
	if (ring->fd < 0)
		return -1;
	sq_len = p.sq_off.array + p.sq_entries * sizeof(unsigned);
	cq_len = p.cq_off.cqes + p.cq_entries * CQE_BYTES;
	len = sq_len > cq_len ? sq_len : cq_len;
	/* One mapping for both rings: IORING_FEAT_SINGLE_MMAP is older than passthrough. */
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, IORING_OFF_SQ_RING);
	ring->sqes = mmap(NULL, p.sq_entries * SQE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd,
			  IORING_OFF_SQES);
	if (at == MAP_FAILED || ring->sqes == MAP_FAILED)
		return -1;
	ring->sq_tail = (unsigned *)(at + p.sq_off.tail);
	ring->sq_mask = (unsigned *)(at + p.sq_off.ring_mask);
	ring->sq_array = (unsigned *)(at + p.sq_off.array);
	ring->cq_head = (unsigned *)(at + p.cq_off.head);
	ring->cq_tail = (unsigned *)(at + p.cq_off.tail);
	ring->cq_mask = (unsigned *)(at + p.cq_off.ring_mask);
	ring->cqes = at + p.cq_off.cqes;
	return 0;
}

/* The key's bytes 0 to 7 are dwords 2 and 3, 8 to 15 are dwords 14 and 15, as they lie in memory; dword 11 has its length. */
static void put_key(struct nvme_uring_cmd *cmd, const char *key)
{
	char bytes[KEY_MAX] = { 0 };
	size_t len = strlen(key);

	memcpy(bytes, key, len);
	memcpy(&cmd->cdw2, bytes, 4);
	memcpy(&cmd->cdw3, bytes + 4, 4);
	memcpy(&cmd->cdw14, bytes + 8, 4);
	memcpy(&cmd->cdw15, bytes + 12, 4);
	cmd->cdw11 = len;
}

/* Carries out a command: 0, an NVMe status, or -errno. `result` is dword 0 of the completion: the value's length, of a retrieve. */
static int run(struct ring *ring, int device, uint8_t opcode, const char *key, void *data, uint32_t len, uint64_t *result)
{
	unsigned tail = *ring->sq_tail, index = tail & *ring->sq_mask, head;
	struct io_uring_sqe *sqe = (struct io_uring_sqe *)(ring->sqes + index * SQE_BYTES);
	struct nvme_uring_cmd *cmd = (struct nvme_uring_cmd *)sqe->cmd;
	struct io_uring_cqe *cqe;
	int status;

	memset(sqe, 0, SQE_BYTES);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->cmd_op = NVME_URING_CMD_IO;
	sqe->fd = device;
	cmd->opcode = opcode;
	cmd->nsid = 1;
	cmd->addr = (uintptr_t)data;
	cmd->data_len = len;
	cmd->cdw10 = len;
	put_key(cmd, key);
	ring->sq_array[index] = index;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0)
		return -errno;
	head = *ring->cq_head;
	if (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
		return -EAGAIN;
	cqe = (struct io_uring_cqe *)(ring->cqes + (head & *ring->cq_mask) * CQE_BYTES);
	status = cqe->res;
	*result = cqe->big_cqe[0];
	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	return status;
}

int main(int argc, char **argv)
{
	static char value[4096];
	struct ring ring;
	uint64_t len;
	int device, status;

	if (argc != 4 || !*argv[2] || strlen(argv[2]) > KEY_MAX) {
		fprintf(stderr, "usage: kv_uring DEVICE KEY VALUE (a key of 1 to 16 bytes)\n");
		return 2;
	}
	device = open(argv[1], O_RDWR);
	if (device < 0 || ring_open(&ring)) {
		perror(argv[1]);
		return 2;
	}
	status = run(&ring, device, STORE, argv[2], argv[3], strlen(argv[3]), &len);
	if (!status)
		status = run(&ring, device, RETRIEVE, argv[2], value, sizeof(value), &len);
	if (status) {
		fprintf(stderr, "kv_uring: %s %d\n", status < 0 ? "errno" : "NVMe status", status < 0 ? -status : status);
		return 1;
	}
	printf("%.*s\n", (int)(len < sizeof(value) ? len : sizeof(value)), value);
	return 0;
}
