/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps that the loader fills: processes, threads, mappings and unwind tables, and how programs read them. Two objects
 * have these maps; the loader gives the second one those of the first.
 *
 * The including file has `settings` and unwind_copy().
 */
#ifndef WHIT_KNOWN_H
#define WHIT_KNOWN_H

#include "chosen.h"
#include "unwind_state.h"

/* Processes that are known at a time. */
#define PROCESSES_MAX 16384
/* Words of a chunk of table memory, a power of two. */
#define CHUNK_WORDS 65536

/* Process: number of its first mapping, shifted, and how many there are. One word, so that it is
 * read whole. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u64));
	__uint(max_entries, PROCESSES_MAX);
} processes SEC(".maps");

#define PROCESS_FIRST_SHIFT 32
#define PROCESS_COUNT_MASK 0xffff
/* It is one of those that are recorded. */
#define PROCESS_IS_TARGET (1ull << 16)
/* It is the command, before its program: an exec leaves nothing but the bit above. */
#define PROCESS_AWAITS_EXEC (1ull << 17)

/* Those threads. The value means nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
	__uint(max_entries, PROCESSES_MAX);
} threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct unwind_mapping));
	__uint(max_entries, 1);
} mappings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct unwind_table));
	__uint(max_entries, 1);
} tables SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u64));
	__uint(max_entries, 1);
} rules SEC(".maps");

struct chunk {
	u32 words[CHUNK_WORDS];
};

/* The words of all tables. Chunks come as they are needed. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
	__uint(max_entries, 1);
	__array(values, struct {
		__uint(type, BPF_MAP_TYPE_ARRAY);
		__uint(key_size, sizeof(u32));
		__uint(value_size, sizeof(struct chunk));
		__uint(max_entries, 1);
	});
} chunks SEC(".maps");

static ALWAYS_INLINE const struct unwind_mapping *unwind_mapping(u32 number)
{
	return bpf_map_lookup_elem(&mappings, &number);
}

static ALWAYS_INLINE const struct unwind_table *unwind_table(u32 number)
{
	return bpf_map_lookup_elem(&tables, &number);
}

static ALWAYS_INLINE u64 unwind_rule(u32 number)
{
	const u64 *rule = bpf_map_lookup_elem(&rules, &number);

	return rule ? *rule : 0xff;
}

static ALWAYS_INLINE u32 unwind_word(u32 number)
{
	u32 at = number / CHUNK_WORDS, zero = 0;
	void *inner = bpf_map_lookup_elem(&chunks, &at);

	if (!inner)
		return 0;
	struct chunk *chunk = bpf_map_lookup_elem(inner, &zero);
	return chunk ? chunk->words[number % CHUNK_WORDS] : 0;
}

/* Where a thread's registers were in user mode. */
struct user_registers {
	u64 ip;
	u64 sp;
	u64 fp;
	/* rbx on x86-64, the link register on arm64. */
	u64 extra;
	/* See MODE_REGISTER. */
	u64 mode;
};

/* Reads them from a structure of the kernel, into their places. */
#define take_registers(user, from)                       \
	do {                                             \
		(user)->ip = (from)->IP_REGISTER;        \
		(user)->sp = (from)->SP_REGISTER;        \
		(user)->fp = (from)->FP_REGISTER;        \
		(user)->extra = (from)->EXTRA_REGISTER;  \
		(user)->mode = (from)->MODE_REGISTER;    \
	} while (0)

/* Where a thread that is in the kernel was in user mode. */
static ALWAYS_INLINE void registers_of(struct task_struct *task, struct user_registers *user)
{
	struct pt_regs *regs = bpf_task_pt_regs(task);

	take_registers(user, regs);
}

static ALWAYS_INLINE u64 process_of(u32 pid)
{
	u64 *process = bpf_map_lookup_elem(&processes, &pid);

	return process ? *process : 0;
}

/* Whether switches and wake-ups of a thread are emitted. */
static ALWAYS_INLINE u32 is_target(struct task_struct *task, u32 tid, u64 process)
{
	if (settings.is_system_wide)
		return 1;
	if (settings.chosen_by)
		return is_chosen(task);
	if (!(process & PROCESS_IS_TARGET))
		return 0;
	return !settings.by_thread || bpf_map_lookup_elem(&threads, &tid) != NULL;
}

#endif
