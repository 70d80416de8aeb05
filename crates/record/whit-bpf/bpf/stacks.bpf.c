/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples and context switches with the stacks of user and kernel, unwound here and now.
 *
 * Records go through an event of the kind bpf-output, into the same ring as perf's own records of that
 * CPU. A CPU emits a stack once, in front of the first record that names it by its hash; so a reader
 * that begins at the start of a ring knows every stack.
 *
 * A sample may interrupt a switch: what both need is there twice.
 */
#include "kernel.h"
#include "perf_event_id.h"
#include "switch_state.h"

#define UNWIND_FN __attribute__((noinline))
#define UNWIND_INLINE ALWAYS_INLINE

/* Sets of threads' stacks that may come again, a power of two, and stacks in each; threads may share
 * one. */
#define MEMO_SETS 2048
#define MEMO_WAYS 4
/* Processes that a CPU remembers, a power of two; others are looked up again. */
#define KNOWN_PROCESSES 1024
/* Stacks that a CPU remembers as emitted in its ring, a power of two; others are emitted again. */
#define ANNOUNCED_STACKS 16384
/* The same for its channel, for each kind: a switch names one of each, and none of them may have taken the place of
 * another. */
#define USER_PLACES 16384
#define KERNEL_PLACES 4096
#define OBJECT_PLACES 4096

struct unwind_state;
static ALWAYS_INLINE u32 unwind_learn(struct unwind_state *s, u64 address);

static ALWAYS_INLINE int unwind_copy(void *to, u32 size, u64 from)
{
	return bpf_probe_read_user(to, size, (const void *)from) != 0;
}

/* Set before loading. */
const volatile struct {
	/* Everybody's switches; else those of known processes. */
	u8 is_system_wide;
	u8 kernel_stacks;
	u8 user_stacks;
	/* For comparisons: nothing is remembered. */
	u8 no_memo;
	/* For comparisons: perf writes its own sample as well, behind ours. */
	u8 perf_samples;
	/* Only some threads of the known processes. */
	u8 by_thread;
	/* The program may ask the kernel for mappings that are not announced: it has bpf_find_vma(). */
	u8 learns;
	/* Threads that are chosen by cgroup or name: see chosen.h. */
	u8 chosen_by;
	/* Words of a channel, less one. */
	u32 channel_mask;
	/* The recorder's PID namespace; 0 for the first of the machine. */
	u32 pid_namespace;
	/* The hierarchy of chosen cgroups: the number of one of its controllers. */
	u32 cgroup_subsystem;
	/* ACCOUNT_HAS_IRQ where programs add the time of interrupts up. */
	u32 irq_time;
	/* A hierarchy of version 1 with cgroups of threads that are in the root of version 2, in the same way;
	 * CGROUP_VERSION_2 for none. */
	u32 sampled_subsystem;
	/* The size of a page is two to the power of this. */
	u32 page_shift;
	/* Nanoseconds of off-CPU time for each sample of a wait. */
	u64 off_cpu_period;
} settings = {
	.kernel_stacks = 1,
	.user_stacks = 1,
	.channel_mask = 1023,
	.sampled_subsystem = 0xffffffff,
	.page_shift = 12,
	.off_cpu_period = 1,
};

#include "interpreters.h"
#include "known.h"

static ALWAYS_INLINE int interpreter_copy(u64 *to, u64 from)
{
	return unwind_copy(to, INTERPRETER_CODE_WORDS * sizeof(*to), from);
}

#include "probed_return.h"
#include "unwind.h"
#include "channel.h"
#include "cpu_account.h"
#include "kernel_stack.h"
#include "find_vma.h"
#include "wait_object.h"

/* [CPU]: events of the kind bpf-output. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
	__uint(max_entries, 1);
} output SEC(".maps");

/* The same: those that wake the reader with each record. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
	__uint(max_entries, 1);
} wakeup_events SEC(".maps");

/* The first byte of a record: its kind. */
enum {
	RECORD_STACK = 1,
	RECORD_SAMPLE = 2,
	RECORD_TRACE = 4,
	RECORD_WAKE = 5,
};

/* A stack, with frames_count addresses behind it, innermost first. */
struct stack_record {
	u8 kind;
	/* enum unwind_reason; 0 for a stack of the kernel. */
	u8 reason;
	u16 frames_count;
	u32 unused;
	u64 hash;
	u64 frames[UNWIND_FRAMES_ROOM];
};

#define RECORD_STACK_HEAD_BYTES 16

struct sample_record {
	u8 kind;
	u8 is_user;
	u16 unused;
	/* If nobody has told that the thread came: how long ago that was, in nanoseconds; else 0. */
	u32 unseen_for;
	u64 period;
	/* 0: none. */
	u64 user_stack;
	u64 kernel_stack;
	/* perf's id of the event. */
	u64 event;
	/* Written where there is a hierarchy of version 1. 0: the kernel's own, behind the record, counts. */
	u64 cgroup;
	u32 unused_at_last;
};

/* As bytes: there is none behind the last word. Without the cgroup. */
#define RECORD_SAMPLE_BYTES 44

/* Distinguishes numbers of cgroups of version 1: both hierarchies count from 1 on. */
#define OF_VERSION_1 (1ULL << 62)
/* The number of the root of a hierarchy. */
#define ROOT_CGROUP 1

/* Bytes of a record with its cgroup, which is written where there is a hierarchy of version 1. */
static ALWAYS_INLINE u64 bytes_with_cgroup(u64 size)
{
	return settings.sampled_subsystem == CGROUP_VERSION_2 ? size : size + sizeof(u64);
}

/* The cgroup of version 1 of a thread that is in the root of version 2; else 0. */
static ALWAYS_INLINE u64 sampled_cgroup(struct task_struct *task)
{
	u32 subsystem = settings.sampled_subsystem;
	u64 set = 0, cgroup = 0, state = 0;

	if (subsystem == CGROUP_VERSION_2 || bpf_probe_read_kernel(&set, sizeof(set), &task->cgroups) || !set ||
	    bpf_probe_read_kernel(&cgroup, sizeof(cgroup), &((struct css_set *)set)->dfl_cgrp) || !cgroup)
		return 0;
	if (cgroup_id_of((u64)&((struct cgroup *)cgroup)->self) != ROOT_CGROUP ||
	    bpf_probe_read_kernel(&state, sizeof(state), &((struct css_set *)set)->subsys[subsystem]))
		return 0;
	u64 id = cgroup_id_of(state);

	return id > ROOT_CGROUP ? id | OF_VERSION_1 : 0;
}

/* Counts of one program on one CPU. */
struct counts {
	u64 runs;
	/* Records that the ring had no room for, and of these, stacks. */
	u64 lost;
	u64 lost_stacks;
	/* Emitted stacks. */
	u64 announced;
	/* Walks, and stacks that were known to be the same. */
	u64 walks;
	u64 memo_hits;
	u64 frames;
	/* Kernel stacks that could not be taken. */
	u64 kernel_failures;
	u64 kernel_memo_hits;
	/* Switches out of the idle thread that the tracepoint shows; threads whose coming was noticed late. */
	u64 from_idle;
	u64 late;
	/* Mappings found without an announcement. */
	u64 learned;
	u64 reasons[UNWIND_REASONS_ROOM];
	/* Frames of interpreted functions; walks in which native frames stayed in their place, by the first reason. */
	u64 interpreted;
	u64 interpreter_reasons[INTERPRETER_REASONS];
};

/* Which program. */
enum {
	OF_SAMPLES = 0,
	OF_SWITCHES = 1,
	OF_TRACES = 2,
	OF_WAKES = 3,
	OF_PROBES = 4,
	OF_WAITS = 5,
	PROGRAMS = 6,
};

/* The working memory of a program on a CPU. */
struct scratch {
	struct counts counts;
	/* For switches: the thread that came last, as a number, and whether the tracepoint shows this
	 * switch. */
	u64 running;
	u64 is_seen;
	/* By how much the clock of the records is ahead of the runqueue's, and when they were compared. */
	u64 ahead;
	u64 compared;
	/* Comparisons in a row that gave a larger difference than the one that counts. */
	u64 larger;
	/* For probes: a program that the scheduler took off its CPU in the middle still uses this memory. */
	u64 is_busy;
	/* For switches. */
	struct wait_object object;
	struct unwind_state unwind;
	struct stack_record stack;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct scratch));
	__uint(max_entries, PROGRAMS);
} scratches SEC(".maps");

/* [hash]: the hash of the stack that was told last of those that share this place. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u64));
	__uint(max_entries, ANNOUNCED_STACKS);
} announced SEC(".maps");

/* A copy of a process's entry in `processes`, valid as long as `changes` stands still. */
struct known_process {
	u64 generation;
	u64 pid;
	u64 process;
};

/* The memory of a CPU's switches, which no program interrupts that uses it: `announced` as for rings, but of its
 * channel, and processes. */
struct switch_memory {
	u64 announced[USER_PLACES + KERNEL_PLACES + OBJECT_PLACES];
	struct known_process processes[KNOWN_PROCESSES];
};

/* [CPU]: found once in a switch, where each look into an array for each CPU reads where the CPU's element is. The
 * loader gives them their number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct switch_memory));
	__uint(max_entries, 1);
} switch_memories SEC(".maps");

/* Counters of changes of `processes`, one for each writer. Behind them are the time from which switches are recorded, or
 * waits sampled, and the most frames of a walk; 0 for UNWIND_FRAMES_MAX. */
enum {
	CHANGED_BY_LOADER = 0,
	CHANGED_BY_PROGRAMS = 1,
	SWITCHES_SINCE = 2,
	WALKED_FRAMES_MAX = 3,
	CHANGERS = 4,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u64));
	__uint(max_entries, CHANGERS);
} changes SEC(".maps");

/* The inputs of a walk besides words of memory, and its result: a line of the cache. */
struct memo {
	/* The process as it was: its entry in `processes`. */
	u64 process;
	u64 ip;
	u64 sp;
	u64 fp;
	/* 0: none. */
	u64 hash;
	u64 extra;
	u32 tid;
	u16 needs_fp;
	u16 needs_extra;
	/* The words among them that one copy of `near_bytes` of the stack holds. */
	u16 near_count;
	u16 near_bytes;
	u16 reads_count;
	/* As it was for the walk. */
	u16 frames_max;
};

/* Stacks that have a thread and its place in common: callers differ. */
struct memo_set {
	/* Odd during a write; a new number after it. A read during which it changes is void. */
	u32 sequence;
	/* Which one goes next. */
	u32 next;
	/* Which one was found last. */
	u32 last;
	u32 unused[13];
	struct memo ways[MEMO_WAYS];
	/* The words of each; the address of a near one is a number of bytes from the stack pointer. Those
	 * come first. */
	struct unwind_read reads[MEMO_WAYS][UNWIND_READS_ROOM];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct memo_set));
	__uint(max_entries, MEMO_SETS);
} memos SEC(".maps");

/* The key of a stack in the cache. */
struct memo_key {
	u64 process;
	u64 ip;
	u64 sp;
	u64 fp;
	u64 extra;
	u32 tid;
	u32 frames_max;
};

/* The identity of a process as announced, without its targets. */
static ALWAYS_INLINE u64 announced_process(u64 first, u32 count)
{
	return first << PROCESS_FIRST_SHIFT | count;
}

static ALWAYS_INLINE u32 unwind_learn(struct unwind_state *s, u64 address)
{
	u64 process = announced_process(s->mappings_first, s->mappings_count);
	u32 learnt = learn(process, address, !s->has_asked, &s->mapping);

	if (learnt == LEARN_NEW)
		s->has_learned = 1;
	if (learnt == LEARN_BUSY)
		s->was_busy = 1;
	if (learnt != LEARN_KNOWN)
		s->has_asked = 1;
	return learnt == LEARN_KNOWN || learnt == LEARN_NEW;
}

static ALWAYS_INLINE struct scratch *scratch_of(u32 program)
{
	return bpf_map_lookup_elem(&scratches, &program);
}

/* Result of bpf_perf_event_output() on a CPU that is not recorded: -ENOENT. */
#define NOT_RECORDED -2

static ALWAYS_INLINE void emit(void *ctx, struct scratch *scratch, void *record, u64 size)
{
	long error = bpf_perf_event_output(ctx, &output, BPF_F_CURRENT_CPU, record, size);

	if (error && error != NOT_RECORDED)
		scratch->counts.lost++;
}

/* Emits the stack in scratch->stack, unless this CPU did before. Returns its hash, or 0 if it could
 * not be emitted. */
static ALWAYS_INLINE u64 emit_stack(void *ctx, struct scratch *scratch, u64 hash)
{
	u32 place = hash % ANNOUNCED_STACKS;
	u64 *known = bpf_map_lookup_elem(&announced, &place);

	if (!known)
		return 0;
	if (*known == hash)
		return hash;
	scratch->stack.kind = RECORD_STACK;
	scratch->stack.hash = hash;
	u64 size = RECORD_STACK_HEAD_BYTES + scratch->stack.frames_count % UNWIND_FRAMES_ROOM * 8;
	long error = bpf_perf_event_output(ctx, &output, BPF_F_CURRENT_CPU, &scratch->stack, size);
	if (error) {
		if (error != NOT_RECORDED)
			scratch->counts.lost_stacks++;
		return 0;
	}
	scratch->counts.announced++;
	*known = hash;
	return hash;
}

/* Copies the frames of a walk to where they are told from. */
static ALWAYS_INLINE void take_frames(struct scratch *scratch, const u64 *frames, u32 count,
				      u32 reason)
{
	for (u32 i = 0; i < UNWIND_FRAMES_MAX; i++) {
		if (i >= count)
			break;
		scratch->stack.frames[i] = frames[i];
	}
	scratch->stack.reason = reason;
	scratch->stack.frames_count = count;
}

/* Whether a word that a walk depended on is as it was. */
UNWIND_FN u32 memo_word_holds(struct unwind_state *s, u64 address, u64 value)
{
	if (!s)
		return 0;
	if (address & INTERPRETED_FRAME)
		return interpreter_holds(s, address, value);
	return !unwind_load(s, address) && s->value == value;
}

/* Whether the words beyond the near ones are as they were that a walk depended on. */
UNWIND_FN u32 memo_holds_far(struct unwind_state *s, const struct memo_set *set, u32 way)
{
	if (!s || !set)
		return 0;
	way %= MEMO_WAYS;
	u32 near = set->ways[way].near_count, count = set->ways[way].reads_count;
	s->window_address = UNWIND_NO_WINDOW;
	for (u32 i = 0; i < UNWIND_READS_MAX; i++) {
		if (i >= count)
			break;
		if (i < near)
			continue;
		const struct unwind_read *read = &set->reads[way][i];

		if (!memo_word_holds(s, read->address, read->value))
			return 0;
	}
	return 1;
}

/* Whether all words are. `copied` bytes of the stack are in the window. */
static ALWAYS_INLINE u32 memo_holds(struct unwind_state *s, const struct memo_set *set, u32 way,
				    const struct memo_key *key, u32 *copied)
{
	const struct memo *memo = &set->ways[way];
	u32 count = memo->near_count, bytes = memo->near_bytes;

	if (!memo->hash || memo->sp != key->sp || memo->ip != key->ip || memo->tid != key->tid || memo->frames_max != key->frames_max ||
	    memo->process != key->process || (memo->needs_fp && memo->fp != key->fp) ||
	    (memo->needs_extra && memo->extra != key->extra) ||
	    memo->reads_count > UNWIND_READS_MAX || bytes > UNWIND_WINDOW_BYTES)
		return 0;
	if (bytes > *copied) {
		if (unwind_copy(s->window, bytes, key->sp))
			return 0;
		*copied = bytes;
	}
	for (u32 i = 0; i < UNWIND_READS_MAX; i++) {
		if (i >= count)
			break;
		const struct unwind_read *read = &set->reads[way][i];
		u64 offset = read->address & (UNWIND_WINDOW_BYTES - 8);

		if (*(const u64 *)((const char *)s->window + offset) != read->value)
			return 0;
	}
	if (count == memo->reads_count)
		return 1;
	*copied = 0;
	return memo_holds_far(s, set, way);
}

/* The hash of the stack that a thread has again; 0 for none. */
UNWIND_FN u64 memo_known(struct unwind_state *s, struct memo_set *set, const struct memo_key *key)
{
	if (!s || !set || !key)
		return 0;
	u32 sequence = ordered_load(&set->sequence), last = set->last, copied = 0;
	if (sequence & 1)
		return 0;
	for (u32 i = 0; i < MEMO_WAYS; i++) {
		u32 way = (last + i) % MEMO_WAYS;

		if (!memo_holds(s, set, way, key, &copied))
			continue;
		u64 hash = set->ways[way].hash;
		/* Written meanwhile, by another CPU or by an interrupting program. */
		if (ordered_load(&set->sequence) != sequence)
			return 0;
		if (i)
			set->last = way;
		return hash;
	}
	return 0;
}

/* Remembers a word that the walk depended on, if it is near, or if it is not. */
UNWIND_FN u32 memo_keep_word(struct unwind_state *s, struct memo_set *set, u32 way, u32 read,
			     u32 if_near)
{
	if (!s || !set)
		return 0;
	way %= MEMO_WAYS;
	struct memo *memo = &set->ways[way];
	struct unwind_read kept = s->reads[read % UNWIND_READS_ROOM];
	u64 offset = kept.address - memo->sp;
	u32 is_near = offset <= UNWIND_WINDOW_BYTES - 8 && !(offset % 8), slot = memo->reads_count;

	if (is_near != if_near)
		return 0;
	if (is_near) {
		kept.address = offset;
		memo->near_count = slot + 1;
		if (memo->near_bytes < offset + 8)
			memo->near_bytes = offset + 8;
	}
	set->reads[way][slot % UNWIND_READS_ROOM] = kept;
	memo->reads_count = slot + 1;
	return 0;
}

/* The entry of a set for a stack: the one that holds it, or the next to replace. A function of its own, so
 * that the verifier looks at the code behind it once, and not for each entry. */
UNWIND_FN u32 memo_way(struct memo_set *set, u64 hash)
{
	if (!set)
		return 0;
	for (u32 way = 0; way < MEMO_WAYS; way++)
		if (set->ways[way].hash == hash)
			return way;
	return set->next++ % MEMO_WAYS;
}

/* Remembers what a walk depended on, in a set that nobody else writes. */
static ALWAYS_INLINE void memo_write(struct unwind_state *s, struct memo_set *set,
				     const struct memo_key *key, u64 hash)
{
	u32 way = memo_way(set, hash) % MEMO_WAYS, count = s->reads_count;
	struct memo *memo = &set->ways[way];

	memo->hash = 0;
	/* Too much. */
	if (count > UNWIND_READS_MAX)
		return;
	memo->near_count = memo->near_bytes = memo->reads_count = 0;
	memo->sp = key->sp;
	for (u32 pass = 0; pass < 2; pass++) {
		for (u32 i = 0; i < UNWIND_READS_MAX; i++) {
			if (i >= count)
				break;
			memo_keep_word(s, set, way, i, !pass);
		}
	}
	memo->tid = key->tid;
	memo->frames_max = key->frames_max;
	memo->process = key->process;
	memo->ip = key->ip;
	memo->fp = key->fp;
	memo->extra = key->extra;
	memo->needs_fp = s->needs_fp;
	memo->needs_extra = s->needs_extra;
	memo->hash = hash;
	set->last = way;
}

/* The same, unless somebody else writes: another CPU, or who is interrupted. */
UNWIND_FN u32 memo_keep(struct unwind_state *s, struct memo_set *set, const struct memo_key *key,
			u64 hash)
{
	if (!s || !set || !key)
		return 0;
	u32 sequence = ordered_load(&set->sequence);
	if (sequence & 1 ||
	    __sync_val_compare_and_swap(&set->sequence, sequence, sequence + 1) != sequence)
		return 0;
	memo_write(s, set, key, hash);
	ordered_store(&set->sequence, sequence + 2);
	return 0;
}

/* Walks without the cache. Returns the reason of the end; the frames are in `unwind`. */
UNWIND_FN u32 walk(struct unwind_state *s)
{
	if (!s)
		return UNWIND_BAD_TABLE;
	return unwind_walk(s);
}

/* The places in a CPU's channel. */
static ALWAYS_INLINE u32 user_place(u64 hash)
{
	return hash % USER_PLACES;
}

static ALWAYS_INLINE u32 kernel_place(u64 hash)
{
	return USER_PLACES + hash % KERNEL_PLACES;
}

static ALWAYS_INLINE u32 object_place(u64 hash)
{
	return USER_PLACES + KERNEL_PLACES + hash % OBJECT_PLACES;
}

/* Whether the last emitted stack of a place has such a hash: in the CPU's channel, or without `memory` in its ring. */
static ALWAYS_INLINE u32 is_announced(struct switch_memory *memory, u32 place, u64 hash)
{
	if (memory)
		return memory->announced[place] == hash;
	place = hash % ANNOUNCED_STACKS;
	u64 *known = bpf_map_lookup_elem(&announced, &place);

	return known && *known == hash;
}

/* The set of memos for a thread at a place in its program. */
static ALWAYS_INLINE struct memo_set *memo_set_of(u32 tid, u64 ip, u64 sp)
{
	u32 place = unwind_mix(ip ^ sp, tid) % MEMO_SETS;

	return settings.no_memo ? NULL : bpf_map_lookup_elem(&memos, &place);
}

static ALWAYS_INLINE void count_interpreted(struct scratch *scratch, const struct unwind_state *s)
{
	if (!s->chain_state)
		return;
	scratch->counts.interpreted += s->interpreted_count;
	/* The bound of frames ends a walk within a run. */
	if (s->run.frame)
		scratch->counts.interpreted += s->frames_count - s->run.native_count;
	if (s->interpreter_reason)
		scratch->counts.interpreter_reasons[s->interpreter_reason % INTERPRETER_REASONS]++;
}

static ALWAYS_INLINE u64 changes_by(u32 who)
{
	u64 *count = bpf_map_lookup_elem(&changes, &who);

	return count ? *(volatile u64 *)count : 0;
}

/* The hash of the current thread's user stack. If it was walked, its frames are in `unwind`; a stack
 * from the cache was emitted before. */
static ALWAYS_INLINE u64 user_hash(struct switch_memory *memory, struct scratch *scratch, u32 tid, u64 process,
				   const struct user_registers *registers, u32 *reason)
{
	struct unwind_state *s = &scratch->unwind;
	struct memo_set *set = memo_set_of(tid, registers->ip, registers->sp);
	struct memo_key key = {
		.process = process,
		.ip = registers->ip,
		.sp = registers->sp,
		.fp = registers->fp,
		.extra = registers->extra,
		.tid = tid,
		.frames_max = changes_by(WALKED_FRAMES_MAX),
	};
	u64 hash = set ? memo_known(s, set, &key) : 0;

	*reason = UNWIND_ON;
	if (hash && is_announced(memory, user_place(hash), hash)) {
		scratch->counts.memo_hits++;
		return hash;
	}
	unwind_begin(s);
	s->task = (u64)bpf_get_current_task_btf();
	s->ip = key.ip;
	s->sp = key.sp;
	s->fp = key.fp;
	s->extra = registers->extra;
	if (key.frames_max)
		s->frames_max = key.frames_max;
	s->mappings_first = process >> PROCESS_FIRST_SHIFT;
	s->mappings_count = process & PROCESS_COUNT_MASK;
	scratch->counts.walks++;
	if (!IS_64_BIT_MODE(registers->mode)) {
		s->frames[0] = key.ip;
		s->frames_count = 1;
		s->hash = unwind_mix(s->hash, key.ip);
		s->reads_count = UNWIND_READS_MAX + 1;
		*reason = UNWIND_NOT_64_BIT;
	} else {
		*reason = walk(s);
		if (!s->mappings_count && *reason == UNWIND_NO_MAPPING)
			*reason = UNWIND_NO_PROCESS;
		/* Another walk may go further. */
		if (s->was_busy)
			s->reads_count = UNWIND_READS_MAX + 1;
	}
	scratch->counts.learned += s->has_learned;
	scratch->counts.reasons[*reason % UNWIND_REASONS_ROOM]++;
	scratch->counts.frames += s->frames_count;
	count_interpreted(scratch, s);
	hash = unwind_mix(s->hash, *reason);
	/* 0 says that there is none. */
	hash |= !hash;
	if (set)
		memo_keep(s, set, &key, hash);
	return hash;
}

/* The same, told in the CPU's ring; 0 for none. */
static ALWAYS_INLINE u64 user_stack(void *ctx, struct scratch *scratch, u32 tid, u64 process,
				    const struct user_registers *registers)
{
	u32 reason;
	u64 hash = user_hash(NULL, scratch, tid, process, registers, &reason);

	if (!reason)
		return hash;
	take_frames(scratch, scratch->unwind.frames, scratch->unwind.frames_count, reason);
	return emit_stack(ctx, scratch, hash);
}

/* The hash of the kernel's stack, told in the CPU's ring; 0 for none. */
static ALWAYS_INLINE u64 kernel_stack(void *ctx, struct scratch *scratch)
{
	long bytes = bpf_get_stack(ctx, scratch->stack.frames, UNWIND_FRAMES_MAX * 8, 0);

	if (bytes <= 0) {
		scratch->counts.kernel_failures++;
		return 0;
	}
	scratch->stack.frames_count = (u64)bytes / 8;
	scratch->stack.reason = 0;
	return emit_stack(ctx, scratch,
			  kernel_hash(scratch->stack.frames, scratch->stack.frames_count));
}

/* `processes` has changed. */
static ALWAYS_INLINE void processes_changed(void)
{
	u32 who = CHANGED_BY_PROGRAMS;
	u64 *count = bpf_map_lookup_elem(&changes, &who);

	if (count)
		__sync_fetch_and_add(count, 1);
}

/* Another number whenever `processes` has changed. Both only grow; one more, because nothing is known at the
 * beginning. */
static ALWAYS_INLINE u64 processes_generation(void)
{
	return changes_by(CHANGED_BY_LOADER) + changes_by(CHANGED_BY_PROGRAMS) + 1;
}

/* The same as process_of(), which it asks only where something has changed. */
static ALWAYS_INLINE u64 process_at_switch(struct switch_memory *memory, u64 generation, u32 pid)
{
	struct known_process *known = &memory->processes[pid % KNOWN_PROCESSES];

	if (known->generation != generation || known->pid != pid) {
		known->process = process_of(pid);
		known->pid = pid;
		known->generation = generation;
	}
	return known->process;
}

/* The runqueue of the CPU that a task is on; NULL where the kernel does not say. */
static ALWAYS_INLINE struct rq *runqueue_of(struct task_struct *task)
{
	if (!core_field_exists(task->se.cfs_rq) || !core_field_exists(task->se.cfs_rq->rq))
		return NULL;
	return task->se.cfs_rq->rq;
}

/* Clocks are compared again after so many nanoseconds. */
#define COMPARED_FOR (1 << 16)
/* Nanoseconds of two clocks differ by less than one of so many, a power of two, while the machine's time is
 * adjusted. */
#define CLOCK_DRIFT_SHIFT 14
/* So many comparisons in a row with a larger difference say that the clocks drift faster than that. */
#define COMPARED_LARGER_MAX 1024

/* Compares the clocks within a switch. The kernel has set the runqueue's at the beginning of the switch, and may have
 * looked for threads of other CPUs since: the difference is never too small, and often too large. The smallest counts,
 * and grows no faster than clocks drift; where they drift faster for long, the present one counts. A thread runs only
 * after the end of its switch, so that no thread is said to have come later than it did. */
static ALWAYS_INLINE void compare_clocks(struct scratch *switches, struct task_struct *prev, u64 now)
{
	u64 since = now - switches->compared, ahead, most;
	struct rq *runqueue;

	if (since < COMPARED_FOR)
		return;
	runqueue = runqueue_of(prev);
	if (!runqueue)
		return;
	ahead = now - runqueue->clock;
	most = switches->ahead + (since >> CLOCK_DRIFT_SHIFT);
	if (switches->compared && (s64)(ahead - most) > 0 && switches->larger < COMPARED_LARGER_MAX) {
		switches->larger++;
		ahead = most;
	} else {
		switches->larger = 0;
	}
	switches->ahead = ahead;
	switches->compared = now;
}

/* When a thread that runs came onto its CPU; 0 where that is unknown, or before switches were emitted. The
 * runqueue's clock stands still between switches, and so says nothing of now. */
static ALWAYS_INLINE u64 came_at(struct scratch *switches, struct task_struct *task, u64 now)
{
	u64 time;

	if (!switches->compared || !core_field_exists(task->sched_info.last_arrival))
		return 0;
	time = task->sched_info.last_arrival + switches->ahead;
	if (time > now)
		time = now;
	return time > changes_by(SWITCHES_SINCE) ? time : 0;
}

/* Nanoseconds since the current thread came, if no record says so; else 0. */
static ALWAYS_INLINE u32 unseen_for(struct task_struct *task, u64 process)
{
	struct scratch *switches = scratch_of(OF_SWITCHES);
	struct rq *runqueue = runqueue_of(task);
	u64 now = bpf_ktime_get_ns(), time;

	/* An NMI may come in the middle of a switch. */
	if (!switches || !switches->running || switches->running == (u64)task || !runqueue ||
	    runqueue->curr != task || !is_target(task, tid_of(task), process))
		return 0;
	switches->running = (u64)task;
	time = came_at(switches, task, now);
	if (!time)
		return 0;
	/* 0 says that it was seen. */
	if (time == now)
		return 1;
	return now - time < 0xffffffff ? now - time : 0xffffffff;
}

/* `task_struct::__state` of a task that runs or may run (include/linux/sched.h). */
#define TASK_RUNNING 0

/*
 * Whether a sample belongs to a thread that is not recorded. All threads hit the events of CPUs; only recorded ones hit
 * the events of threads, known here or not.
 */
static ALWAYS_INLINE u32 is_others(void *ctx, struct task_struct *task, u64 process)
{
	/* One that has ended has no number any more, and no event of its own. */
	if (is_target(task, tid_of(task), process) && !(process & PROCESS_AWAITS_EXEC) && task->thread_pid)
		return 0;
	return is_of_cpu(ctx);
}

SEC("perf_event")
int sampled(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *scratch = scratch_of(OF_SAMPLES);
	struct sample_record record = { .kind = RECORD_SAMPLE };

	u64 process = process_of(pid_of(task));

	if (!scratch || is_others(ctx, task, process))
		return 0;
	scratch->counts.runs++;
	record.event = perf_event_id(ctx);
	record.period = ctx->sample_period;
	struct user_registers user;
	take_registers(&user, &ctx->regs);
	/* Read here, and not by a pointer that is chosen later, which the verifier refuses. */
	asm volatile("" : "+r"(user.ip), "+r"(user.sp), "+r"(user.fp), "+r"(user.extra), "+r"(user.mode));
	record.is_user = IS_USER_MODE(user.mode);
	if (!record.is_user && settings.kernel_stacks)
		record.kernel_stack = kernel_stack(ctx, scratch);
	record.unseen_for = unseen_for(task, process);
	if (record.unseen_for)
		scratch->counts.late++;
	if (task->mm && settings.user_stacks) {
		if (!record.is_user)
			registers_of(task, &user);
		record.user_stack = user_stack(ctx, scratch, task->pid, process, &user);
	}
	record.cgroup = sampled_cgroup(task);
	emit(ctx, scratch, &record, bytes_with_cgroup(RECORD_SAMPLE_BYTES));
	/* Where this is 0, perf itself writes no sample. */
	return settings.perf_samples;
}

/* The registers that a thread had in user mode, which are at an address. */
static ALWAYS_INLINE void user_registers_at(struct task_struct *task, u64 address,
					    struct user_registers *user)
{
	struct pt_regs *regs;

	if (CAN_LOAD_KERNEL)
		regs = kernel_cast(struct pt_regs, address);
	else
		regs = bpf_task_pt_regs(task);
	take_registers(user, regs);
}

/* (struct task_struct *parent, struct task_struct *child) */
SEC("tp_btf/sched_process_fork")
int forked(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	u32 from = pid_of(parent), to = pid_of(child);
	u64 process = process_of(from);

	/* With vfork() the memory is the parent's itself. */
	if (space_of(child) != space_of(parent))
		learned_forget(space_of(child));
	/* A new process has its parent's memory. */
	if (from != to && process) {
		bpf_map_update_elem(&processes, &to, &process, 0);
		processes_changed();
	}
	return 0;
}

/* Here interrupts are on, so that the kernel may be asked more than once: for the program, for where it begins,
 * which is the dynamic linker, and for the kernel's own code. */
static ALWAYS_INLINE void learn_first(struct task_struct *task)
{
	u64 process = announced_process(0, 0);
	struct unwind_mapping mapping = {};
	u64 vdso = 0;

	learn(process, task->mm->start_code, 1, &mapping);
	learn(process, bpf_task_pt_regs(task)->IP_REGISTER, 1, &mapping);
	if (core_field_exists(task->mm->context.vdso) &&
	    !bpf_probe_read_kernel(&vdso, sizeof(vdso), &task->mm->context.vdso))
		learn(process, vdso, 1, &mapping);
}

/* (struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm) */
SEC("tp_btf/sched_process_exec")
int executed(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 pid = pid_of(task);
	u64 *process = bpf_map_lookup_elem(&processes, &pid);

	learned_forget(space_of(task));
	/* Nothing is known of its memory now. */
	if (process) {
		*process &= PROCESS_IS_TARGET;
		processes_changed();
	}
	if (process || settings.is_system_wide || settings.chosen_by)
		learn_first(task);
	return 0;
}

#include "sched_switch.h"
#include "off_cpu.h"
#include "tracepoint.h"
#include "sched_waking.h"
#include "sockets.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
