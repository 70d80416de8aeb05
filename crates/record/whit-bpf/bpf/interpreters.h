/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs' side of the walk of interpreted frames (interpreter.h): the interpreters that the loader has made
 * known, the memory of threads' states, and the ring on which the loader hears of functions and reads their names.
 *
 * The including file has `settings` and unwind_copy().
 */
#ifndef WHIT_INTERPRETERS_H
#define WHIT_INTERPRETERS_H

#include "interpreter_layout.h"
#include "task_ids.h"
#include "unwind_state.h"

/* Binaries with an interpreter. */
#define INTERPRETERS_MAX 64
/* Threads whose states are remembered, a power of two. */
#define INTERPRETER_THREADS 4096
/* Functions that a CPU remembers as announced, a power of two; others are announced again. */
#define ANNOUNCED_FUNCTIONS 4096
/* Bytes of the ring of functions: a power of two, and whole pages. */
#define FUNCTIONS_RING_BYTES (1 << 19)
/* Bytes of a page of the process. */
#define USER_PAGE_BYTES 4096
/* In a dictionary, the keys; in these, the logarithm of the size of their index, their kind, and the index, with the
 * entries behind. The kind says whether entries have a hash in front. */
#define PYTHON_KEYS_AT 32
#define PYTHON_INDEX_BYTES_AT 9
#define PYTHON_KEYS_KIND_AT 10
#define PYTHON_INDEX_AT 32
/* The length of a string, and the one that names modules: `__name__`. */
#define PYTHON_LENGTH_AT 16
#define PYTHON_MODULE_NAME 0x5f5f656d616e5f5full

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
	__uint(max_entries, ANNOUNCED_FUNCTIONS);
} announced_functions SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, FUNCTIONS_RING_BYTES);
} functions SEC(".maps");

/* Names of a module that are looked at for its own, which is the first one of an imported module. */
#define MODULE_ENTRIES_MAX 4

/* Pieces of the process's memory that come with a function: its code object; its file, name and lines; the names of its
 * module, their keys, the entry of its own name, and the strings of that. */
enum function_piece {
	PIECE_CODE = 0,
	PIECE_FILE = 1,
	PIECE_NAME = 2,
	PIECE_LINES = 3,
	PIECE_GLOBALS = 4,
	PIECE_KEYS = 5,
	PIECE_ENTRY = 6,
	PIECE_KEY = 7,
	PIECE_MODULE = 8,
	FUNCTION_PIECES = 9,
};

/* See crates/record/whit-bpf/src/stacks/functions.rs. */
struct function_record {
	struct interpreted function;
	u32 pid;
	u32 unused;
	/* The address of each piece, and how many of its bytes are there. */
	u64 addresses[FUNCTION_PIECES];
	u64 sizes[FUNCTION_PIECES];
	u64 code[32];
	u64 file[32];
	u64 name[24];
	u64 lines[128];
	u64 globals[6];
	u64 keys[4];
	u64 entry[3];
	u64 key[8];
	u64 module[16];
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

/* Copies a piece, up to the end of its page where the next one is not in memory. */
static ALWAYS_INLINE void copy_piece(struct function_record *record, u32 piece, void *to, u32 size, u64 from)
{
	u32 room = USER_PAGE_BYTES - (from & (USER_PAGE_BYTES - 1));

	if (!from)
		return;
	if (unwind_copy(to, size, from)) {
		if (room >= size || unwind_copy(to, room, from))
			return;
		size = room;
	}
	record->addresses[piece] = from;
	record->sizes[piece] = size;
}

#define COPY_PIECE(record, piece, field, from) \
	copy_piece(record, piece, (record)->field, sizeof((record)->field), from)

/* A word of the code object at one of the offsets that the loader has given. */
static ALWAYS_INLINE u64 code_word(const struct function_record *record, u32 offset)
{
	return record->code[offset % sizeof(record->code) / 8];
}

/* Whether the copied key is the name of modules: behind its head, the shorter one of 3.12 or the longer one. */
static ALWAYS_INLINE u32 is_module_name(const struct function_record *record)
{
	return record->key[PYTHON_LENGTH_AT / 8] == sizeof(u64) &&
	       (record->key[5] == PYTHON_MODULE_NAME || record->key[6] == PYTHON_MODULE_NAME);
}

/* Copies an entry, and its strings where it has the module's name. Whether it has. */
static ALWAYS_INLINE u32 copy_entry(struct function_record *record, u64 entry, u32 has_hash)
{
	/* A copy that fails leaves nothing there. */
	record->sizes[PIECE_ENTRY] = 0;
	record->sizes[PIECE_KEY] = 0;
	__builtin_memset(record->entry, 0, sizeof(record->entry));
	__builtin_memset(record->key, 0, sizeof(record->key));
	COPY_PIECE(record, PIECE_ENTRY, entry, entry);
	u64 key = has_hash ? record->entry[1] : record->entry[0];
	u64 value = has_hash ? record->entry[2] : record->entry[1];
	COPY_PIECE(record, PIECE_KEY, key, key);
	if (!is_module_name(record))
		return 0;
	COPY_PIECE(record, PIECE_MODULE, module, value);
	return 1;
}

static ALWAYS_INLINE void copy_module(struct function_record *record)
{
	COPY_PIECE(record, PIECE_GLOBALS, globals, record->function.globals);
	u64 keys = record->globals[PYTHON_KEYS_AT / 8];
	COPY_PIECE(record, PIECE_KEYS, keys, keys);
	const u8 *head = (const u8 *)record->keys;
	u64 entry = keys + PYTHON_INDEX_AT + (1ull << (head[PYTHON_INDEX_BYTES_AT] & 31));
	u32 has_hash = !head[PYTHON_KEYS_KIND_AT];
	if (!keys)
		return;
	for (u32 i = 0; i < MODULE_ENTRIES_MAX; i++) {
		if (copy_entry(record, entry, has_hash))
			return;
		entry += has_hash ? 24 : 16;
	}
}

/* Hands a function over with the memory that names it: the code of a module or a class is gone as soon as it has run. */
UNWIND_FN u32 interpreter_announce(struct unwind_state *s, u64 code, u64 identity, u64 globals)
{
	const struct interpreter *it;
	struct function_record *record;

	if (!s)
		return 0;
	it = unwind_interpreter(s->run.number);
	if (!it)
		return 0;
	record = bpf_ringbuf_reserve(&functions, sizeof(*record), 0);
	if (!record)
		return 0;
	/* The bytes of a piece mean something where its size says so, and words that lead to others. */
	__builtin_memset(record->addresses, 0, sizeof(record->addresses));
	__builtin_memset(record->sizes, 0, sizeof(record->sizes));
	__builtin_memset(record->code, 0, sizeof(record->code));
	__builtin_memset(record->globals, 0, sizeof(record->globals));
	__builtin_memset(record->keys, 0, sizeof(record->keys));
	__builtin_memset(record->entry, 0, sizeof(record->entry));
	record->unused = 0;
	record->function.unused = 0;
	record->function.code = code;
	record->function.identity = identity;
	record->function.globals = globals;
	record->function.interpreter = s->run.number;
	record->pid = s->pid;
	COPY_PIECE(record, PIECE_CODE, code, code);
	COPY_PIECE(record, PIECE_FILE, file, code_word(record, it->python.filename));
	COPY_PIECE(record, PIECE_NAME, name, code_word(record, it->python.qualname));
	COPY_PIECE(record, PIECE_LINES, lines, code_word(record, it->python.linetable));
	copy_module(record);
	bpf_ringbuf_submit(record, 0);
	return 1;
}

static ALWAYS_INLINE void interpreter_emit(struct unwind_state *s, const struct interpreted *function)
{
	u64 name = unwind_mix(unwind_mix(UNWIND_HASH_SEED ^ s->pid, function->code), function->identity);
	u32 place = name % ANNOUNCED_FUNCTIONS;
	u64 *announced = bpf_map_lookup_elem(&announced_functions, &place);

	if (!announced || *announced == name)
		return;
	/* Without room, the next frame of the function announces it. */
	if (interpreter_announce(s, function->code, function->identity, function->globals))
		*announced = name;
}

#endif
