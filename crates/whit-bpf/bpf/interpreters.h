/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs' side of the walk of interpreted frames (interpreter.h): the interpreters that the loader has made
 * known, the memory of threads' states, and the ring on which the loader hears of functions and reads their names.
 *
 * Part of known.h.
 */
#ifndef WHIT_INTERPRETERS_H
#define WHIT_INTERPRETERS_H

/* Binaries with an interpreter. */
#define INTERPRETERS_MAX 64
/* Threads whose states are remembered, a power of two. */
#define INTERPRETER_THREADS 4096
/* Functions that a CPU remembers as announced, a power of two; others are announced again. */
#define TOLD_FUNCTIONS 4096
/* Bytes of the ring of functions: a power of two, and whole pages. */
#define FUNCTIONS_RING_BYTES (1 << 18)

/* [number]; 0 stands for none. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct interpreter));
	__uint(max_entries, INTERPRETERS_MAX);
} interpreters SEC(".maps");

struct interpreter_thread {
	u64 task;
	u64 thread;
};

/* [hash of the task]. Two threads may share a place, and a write may be torn: a reader asks the state itself. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct interpreter_thread));
	__uint(max_entries, INTERPRETER_THREADS);
} interpreter_threads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u64));
	__uint(max_entries, TOLD_FUNCTIONS);
} told_functions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, FUNCTIONS_RING_BYTES);
} functions SEC(".maps");

/* See crates/whit-bpf/src/stacks/functions.rs. */
struct function_record {
	struct interpreted function;
	u32 pid;
	u32 unused;
};

static ALWAYS_INLINE const struct interpreter *unwind_interpreter(u32 number)
{
	return bpf_map_lookup_elem(&interpreters, &number);
}

static ALWAYS_INLINE struct interpreter_thread *interpreter_place(u64 task)
{
	u32 place = unwind_mix(UNWIND_HASH_SEED, task) % INTERPRETER_THREADS;

	return bpf_map_lookup_elem(&interpreter_threads, &place);
}

static ALWAYS_INLINE u64 interpreter_thread(struct unwind_state *s)
{
	struct interpreter_thread *kept = interpreter_place(s->task);

	return kept && kept->task == s->task ? kept->thread : 0;
}

static ALWAYS_INLINE void interpreter_keep_thread(struct unwind_state *s, u64 thread)
{
	struct interpreter_thread *kept = interpreter_place(s->task);

	if (!kept)
		return;
	kept->thread = thread;
	kept->task = s->task;
}

/* The number of a `struct pid` in its innermost namespace; 0 where it cannot be read. */
static ALWAYS_INLINE u32 innermost_number(u64 address)
{
	struct pid *pid = (struct pid *)address;
	struct upid at = {};
	u32 level = 0;

	if (bpf_probe_read_kernel(&level, sizeof(level), &pid->level) || level > PID_LEVELS_MAX)
		return 0;
	const void *there = (const void *)&pid->numbers + (u64)level * sizeof(at);
	return bpf_probe_read_kernel(&at, sizeof(at), there) ? 0 : at.nr;
}

/* The same of the walked thread, and its process's number in the recorder's namespace. */
UNWIND_FN u32 interpreter_ids(struct unwind_state *s)
{
	if (!s)
		return 0;
	struct task_struct *task = (struct task_struct *)s->task;
	u64 pid = 0, leader = 0;
	u32 tgid = 0;

	if (bpf_probe_read_kernel(&pid, sizeof(pid), &task->thread_pid) ||
	    bpf_probe_read_kernel(&tgid, sizeof(tgid), &task->tgid))
		return 0;
	s->pid = tgid;
	if (settings.pid_namespace) {
		if (bpf_probe_read_kernel(&leader, sizeof(leader), &task->group_leader) ||
		    bpf_probe_read_kernel(&leader, sizeof(leader), &((struct task_struct *)leader)->thread_pid))
			return 0;
		s->pid = number_in_namespace(leader);
	}
	s->own_tid = innermost_number(pid);
	return s->own_tid;
}

static ALWAYS_INLINE void interpreter_tell(struct unwind_state *s, const struct interpreted *function)
{
	u64 name = unwind_mix(unwind_mix(UNWIND_HASH_SEED ^ s->pid, function->code), function->identity);
	u32 place = name % TOLD_FUNCTIONS;
	u64 *told = bpf_map_lookup_elem(&told_functions, &place);

	if (!told || *told == name)
		return;
	struct function_record record = { .function = *function, .pid = s->pid };
	/* Without room, the next frame of the function announces it. */
	if (!bpf_ringbuf_output(&functions, &record, sizeof(record), 0))
		*told = name;
}

#endif
