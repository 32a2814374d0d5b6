#include "process/sample_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

void ss_bpf_code_deinit(struct ss_bpf_code *code)
{
	ss_vector_free(&code->items);
	*code = (struct ss_bpf_code){};
}

static void put(struct ss_bpf_code *code, struct bpf_insn insn)
{
	struct bpf_insn *slot = ss_vector_push(&code->items);

	if (slot)
		*slot = insn;
	else
		code->failed = true;
}

/* An instruction of 16 bytes. */
static void put_wide(struct ss_bpf_code *code, uint8_t to, uint8_t kind, uint64_t value)
{
	put(code, (struct bpf_insn){ .code = BPF_LD | BPF_DW, /* BPF_IMM is 0 */
				     .dst_reg = to & 0xfU,
				     .src_reg = kind & 0xfU,
				     .imm = (int32_t)(uint32_t)value });
	put(code, (struct bpf_insn){ .imm = (int32_t)(uint32_t)(value >> 32) });
}

void ss_bpf_set(struct ss_bpf_code *code, uint8_t to, uint64_t value)
{
	put_wide(code, to, 0, value);
}

void ss_bpf_load_map(struct ss_bpf_code *code, uint8_t to, int map_fd)
{
	put_wide(code, to, BPF_PSEUDO_MAP_FD, (uint32_t)map_fd);
}

static void put_register(struct ss_bpf_code *code, uint8_t operation, uint8_t to,
			 uint8_t from)
{
	put(code, (struct bpf_insn){ .code = BPF_ALU64 | BPF_X | operation,
				     .dst_reg = to & 0xfU,
				     .src_reg = from & 0xfU });
}

void ss_bpf_move(struct ss_bpf_code *code, uint8_t to, uint8_t from)
{
	put_register(code, BPF_MOV, to, from);
}

void ss_bpf_add(struct ss_bpf_code *code, uint8_t to, uint8_t from)
{
	put_register(code, BPF_ADD, to, from);
}

void ss_bpf_and(struct ss_bpf_code *code, uint8_t to, uint8_t from)
{
	put_register(code, BPF_AND, to, from);
}

void ss_bpf_operate(struct ss_bpf_code *code, uint8_t operation, uint8_t to,
		    int32_t value)
{
	put(code, (struct bpf_insn){ .code = BPF_ALU64 | BPF_K | operation,
				     .dst_reg = to & 0xfU,
				     .imm = value });
}

void ss_bpf_add_value(struct ss_bpf_code *code, uint8_t to, int32_t value)
{
	ss_bpf_operate(code, BPF_ADD, to, value);
}

static uint8_t width(unsigned size)
{
	return size == sizeof(uint64_t) ? BPF_DW : BPF_W;
}

/* An instruction that reads or writes memory of the program. */
static void put_access(struct ss_bpf_code *code, uint8_t kind, unsigned size,
		       struct bpf_insn insn, int offset)
{
	insn.code = kind | BPF_MEM | width(size);
	insn.off = (int16_t)offset;
	put(code, insn);
}

void ss_bpf_read(struct ss_bpf_code *code, uint8_t to, uint8_t base, int offset,
		 unsigned size)
{
	put_access(code, BPF_LDX, size,
		   (struct bpf_insn){ .dst_reg = to & 0xfU, .src_reg = base & 0xfU },
		   offset);
}

void ss_bpf_write(struct ss_bpf_code *code, uint8_t base, int offset, uint8_t from,
		  unsigned size)
{
	put_access(code, BPF_STX, size,
		   (struct bpf_insn){ .dst_reg = base & 0xfU, .src_reg = from & 0xfU },
		   offset);
}

void ss_bpf_write_value(struct ss_bpf_code *code, uint8_t base, int offset, int32_t value,
			unsigned size)
{
	put_access(code, BPF_ST, size,
		   (struct bpf_insn){ .dst_reg = base & 0xfU, .imm = value }, offset);
}

void ss_bpf_call(struct ss_bpf_code *code, int32_t function)
{
	put(code, (struct bpf_insn){ .code = BPF_JMP | BPF_CALL, .imm = function });
}

void ss_bpf_exit(struct ss_bpf_code *code)
{
	put(code, (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT });
}

size_t ss_bpf_jump(struct ss_bpf_code *code, uint8_t condition, uint8_t reg,
		   int32_t value)
{
	put(code, (struct bpf_insn){ .code = BPF_JMP | BPF_K | condition,
				     .dst_reg = reg & 0xfU,
				     .imm = value });
	return code->items.count - 1;
}

void ss_bpf_land(struct ss_bpf_code *code, size_t jump)
{
	if (!code->failed)
		code->items.items[jump].off = (int16_t)(code->items.count - jump - 1);
}

void ss_bpf_jump_back(struct ss_bpf_code *code, size_t place)
{
	size_t jump = ss_bpf_jump(code, BPF_JA, 0, 0);

	if (!code->failed)
		code->items.items[jump].off = (int16_t) - (int)(jump + 1 - place);
}

static int call(int command, union bpf_attr *attr)
{
	int n = (int)syscall(SYS_bpf, command, attr, sizeof(*attr));

	return n < 0 ? -errno : n;
}

int ss_bpf_new_map(uint32_t type, uint32_t key_size, uint32_t value_size, uint32_t count,
		   uint32_t flags)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr)); /* the kernel rejects other padding */
	attr.map_type = type;
	attr.key_size = key_size;
	attr.value_size = value_size;
	attr.max_entries = count;
	attr.map_flags = flags;
	return call(BPF_MAP_CREATE, &attr);
}

static union bpf_attr describe_element(int map_fd, const void *key)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map_fd;
	attr.key = (uintptr_t)key;
	return attr;
}

int ss_bpf_set_element(int map_fd, const void *key, const void *value)
{
	union bpf_attr attr = describe_element(map_fd, key);

	attr.value = (uintptr_t)value;
	return call(BPF_MAP_UPDATE_ELEM, &attr);
}

int ss_bpf_remove_element(int map_fd, const void *key)
{
	union bpf_attr attr = describe_element(map_fd, key);

	return call(BPF_MAP_DELETE_ELEM, &attr);
}

/* The license of this program, as the kernel knows it: without one of the GPL, a program may not read
   the memory of processes. */
int ss_bpf_load(const struct ss_bpf_code *code)
{
	static const char license[] = "Dual MIT/GPL";
	union bpf_attr attr;

	if (code->failed)
		return -ENOMEM;
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_PERF_EVENT;
	attr.insn_cnt = (uint32_t)code->items.count;
	attr.insns = (uintptr_t)code->items.items;
	attr.license = (uintptr_t)license;
	return call(BPF_PROG_LOAD, &attr);
}
