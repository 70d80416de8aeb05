/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples and context switches with the stacks of user and kernel, unwound here and now.
 *
 * What is told goes through an event of the kind bpf-output, into the same ring as perf's own
 * records of that CPU. A stack is told once per CPU, in front of the first record that names it by its
 * hash; so whoever reads a ring from its beginning knows every stack.
 *
 * A sample may interrupt a switch: what both need is there twice.
 */
#include "kernel.h"

#define UNWIND_FN __attribute__((noinline))
#define UNWIND_INLINE ALWAYS_INLINE

/* Processes that are known at a time. */
#define PROCESSES_MAX 16384
/* Words of a chunk of table memory, a power of two. */
#define CHUNK_WORDS 65536
/* Threads whose last stack is remembered, a power of two; more threads than that share. */
#define MEMOS 4096
/* Stacks that a CPU remembers to have told of, a power of two; others are told again. */
#define TOLD 16384

struct unwind_mapping;
struct unwind_table;
static ALWAYS_INLINE const struct unwind_mapping *unwind_mapping(u32 number);
static ALWAYS_INLINE const struct unwind_table *unwind_table(u32 number);
static ALWAYS_INLINE u64 unwind_rule(u32 number);
static ALWAYS_INLINE u32 unwind_word(u32 number);

static ALWAYS_INLINE int unwind_copy(void *to, u32 size, u64 from)
{
	return bpf_probe_read_user(to, size, (const void *)from) != 0;
}

#include "unwind.h"

/* Set before loading. */
const volatile struct {
	/* Everybody's switches; else those of known processes. */
	u8 is_system_wide;
	u8 kernel_stacks;
	u8 user_stacks;
	/* For comparisons: nothing is remembered. */
	u8 no_memo;
} settings = { .kernel_stacks = 1, .user_stacks = 1 };

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

/* [CPU]: events of the kind bpf-output. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
	__uint(max_entries, 1);
} output SEC(".maps");

/* What records begin with: kinds. */
enum {
	TELL_STACK = 1,
	TELL_SAMPLE = 2,
	TELL_SWITCH = 3,
};

/* A stack, with frames_count addresses behind it, innermost first. */
struct tell_stack {
	u8 kind;
	/* enum unwind_reason; 0 for a stack of the kernel. */
	u8 reason;
	u16 frames_count;
	u32 unused;
	u64 hash;
	u64 frames[UNWIND_FRAMES_ROOM];
};

#define TELL_STACK_HEAD_BYTES 16

struct tell_sample {
	u8 kind;
	u8 is_user;
	u16 event;
	u32 unused;
	u64 period;
	/* 0: none. */
	u64 user_stack;
	u64 kernel_stack;
	u32 unused_too;
};

/* The thread of the record is switched out for another. */
struct tell_switch {
	u8 kind;
	/* Bits: whether it, and whether the other, are recorded; whether it was preempted. */
	u8 flags;
	/* Its state. */
	u16 state;
	u32 next_pid;
	u64 user_stack;
	u64 kernel_stack;
	u32 next_tid;
};

/* As bytes: there is none behind the last word. */
#define TELL_SAMPLE_BYTES 36
#define TELL_SWITCH_BYTES 28

enum {
	SWITCH_PREV_IS_TARGET = 1,
	SWITCH_NEXT_IS_TARGET = 2,
	SWITCH_IS_PREEMPTION = 4,
};

/* What happened on a CPU, by the two programs. */
struct counts {
	u64 runs;
	/* Records that the ring had no room for, and of these, stacks. */
	u64 lost;
	u64 lost_stacks;
	/* Stacks that were told. */
	u64 told;
	/* Walks, and stacks that were known to be the same. */
	u64 walks;
	u64 memo_hits;
	u64 frames;
	/* Kernel stacks that could not be taken. */
	u64 kernel_failures;
	u64 reasons[UNWIND_REASONS];
};

/* Which program. */
enum {
	OF_SAMPLES = 0,
	OF_SWITCHES = 1,
	PROGRAMS = 2,
};

/* What a program works with on a CPU. */
struct scratch {
	struct counts counts;
	struct unwind_state unwind;
	struct tell_stack stack;
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
	__uint(max_entries, TOLD);
} told SEC(".maps");

/* What a thread's last walk depended on, and what came out. */
struct memo {
	/* Whether somebody is at it. */
	u32 is_busy;
	u32 tid;
	/* What the process was: the value in `processes`. */
	u64 process;
	u64 ip;
	u64 sp;
	u64 fp;
	u64 hash;
	u32 needs_fp;
	u32 reads_count;
	struct unwind_read reads[UNWIND_READS_ROOM];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct memo));
	__uint(max_entries, MEMOS);
} memos SEC(".maps");

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

static ALWAYS_INLINE struct scratch *scratch_of(u32 program)
{
	return bpf_map_lookup_elem(&scratches, &program);
}

static ALWAYS_INLINE void tell(void *ctx, struct scratch *scratch, void *record, u64 size)
{
	if (bpf_perf_event_output(ctx, &output, BPF_F_CURRENT_CPU, record, size))
		scratch->counts.lost++;
}

/* Tells of the stack in scratch->stack, unless this CPU has told of it. Gives its hash, or 0 where it
 * could not be told. */
static ALWAYS_INLINE u64 tell_stack(void *ctx, struct scratch *scratch, u64 hash)
{
	u32 place = hash % TOLD;
	u64 *known = bpf_map_lookup_elem(&told, &place);

	if (!known)
		return 0;
	if (*known == hash)
		return hash;
	scratch->stack.kind = TELL_STACK;
	scratch->stack.hash = hash;
	u64 size = TELL_STACK_HEAD_BYTES + scratch->stack.frames_count % UNWIND_FRAMES_ROOM * 8;
	if (bpf_perf_event_output(ctx, &output, BPF_F_CURRENT_CPU, &scratch->stack, size)) {
		scratch->counts.lost_stacks++;
		return 0;
	}
	scratch->counts.told++;
	*known = hash;
	return hash;
}

/* Copies the frames of a walk to where they are told from. */
static ALWAYS_INLINE void take_frames(struct scratch *scratch)
{
	u32 count = scratch->unwind.frames_count;

	for (u32 i = 0; i < UNWIND_FRAMES_MAX; i++) {
		if (i >= count)
			break;
		scratch->stack.frames[i] = scratch->unwind.frames[i];
	}
	scratch->stack.frames_count = count;
}

/* Whether all words are as they were that the thread's last walk depended on. */
UNWIND_FN u32 memo_holds(struct unwind_state *s, struct memo *memo)
{
	if (!s || !memo)
		return 0;
	u32 count = memo->reads_count;
	if (count > UNWIND_READS_MAX)
		return 0;
	for (u32 i = 0; i < UNWIND_READS_MAX; i++) {
		if (i >= count)
			break;
		if (unwind_load(s, memo->reads[i].address) || s->value != memo->reads[i].value)
			return 0;
	}
	return 1;
}

UNWIND_FN u32 memo_keep(struct unwind_state *s, struct memo *memo)
{
	if (!s || !memo)
		return 0;
	u32 count = s->reads_count;
	for (u32 i = 0; i < UNWIND_READS_MAX; i++) {
		if (i >= count)
			break;
		memo->reads[i] = s->reads[i];
	}
	memo->reads_count = count;
	return 0;
}

/* Walks, whatever is known. The reason; the frames are in `unwind`. */
UNWIND_FN u32 walk(struct unwind_state *s)
{
	if (!s)
		return UNWIND_BAD_TABLE;
	return unwind_walk(s);
}

/* The hash of the current thread's user stack, told; 0 for none. */
static ALWAYS_INLINE u64 user_stack(void *ctx, struct scratch *scratch, u32 tid, u64 process,
				    u64 ip, u64 sp, u64 fp, u64 cs)
{
	struct unwind_state *s = &scratch->unwind;
	u32 place = tid % MEMOS;
	struct memo *memo = bpf_map_lookup_elem(&memos, &place);
	u32 reason;

	if (!memo)
		return 0;
	unwind_begin(s);
	s->ip = ip;
	s->sp = sp;
	s->fp = fp;
	s->mappings_first = process >> PROCESS_FIRST_SHIFT;
	s->mappings_count = process & PROCESS_COUNT_MASK;
	u32 is_mine = !settings.no_memo && !__sync_lock_test_and_set(&memo->is_busy, 1);
	if (is_mine && memo->tid == tid && memo->ip == ip && memo->sp == sp &&
	    memo->process == process && (!memo->needs_fp || memo->fp == fp) &&
	    memo_holds(s, memo)) {
		u32 told_place = memo->hash % TOLD;
		u64 *known = bpf_map_lookup_elem(&told, &told_place);

		if (known && *known == memo->hash) {
			u64 hash = memo->hash;

			memo->is_busy = 0;
			scratch->counts.memo_hits++;
			return hash;
		}
	}
	scratch->counts.walks++;
	if (cs != 0x33) {
		s->frames[0] = ip;
		s->frames_count = 1;
		s->hash = unwind_mix(s->hash, ip);
		s->reads_count = UNWIND_READS_MAX + 1;
		reason = UNWIND_NOT_64_BIT;
	} else {
		reason = walk(s);
		if (!s->mappings_count)
			reason = UNWIND_NO_PROCESS;
	}
	scratch->counts.reasons[reason % UNWIND_REASONS]++;
	scratch->counts.frames += s->frames_count;
	u64 hash = unwind_mix(s->hash, reason);
	/* 0 says that there is none. */
	hash |= !hash;
	if (is_mine) {
		memo->tid = tid;
		memo->process = process;
		memo->ip = ip;
		memo->sp = sp;
		memo->fp = fp;
		memo->needs_fp = s->needs_fp;
		memo->hash = hash;
		memo_keep(s, memo);
		memo->is_busy = 0;
	}
	take_frames(scratch);
	scratch->stack.reason = reason;
	return tell_stack(ctx, scratch, hash);
}

/* The hash of the kernel's stack, told; 0 for none. */
static ALWAYS_INLINE u64 kernel_stack(void *ctx, struct scratch *scratch)
{
	u64 hash = UNWIND_HASH_SEED;
	long bytes = bpf_get_stack(ctx, scratch->stack.frames, UNWIND_FRAMES_MAX * 8, 0);

	if (bytes <= 0) {
		scratch->counts.kernel_failures++;
		return 0;
	}
	u32 count = (u64)bytes / 8;
	for (u32 i = 0; i < UNWIND_FRAMES_MAX; i++) {
		if (i >= count)
			break;
		hash = unwind_mix(hash, scratch->stack.frames[i]);
	}
	scratch->stack.frames_count = count;
	scratch->stack.reason = 0;
	return tell_stack(ctx, scratch, hash | !hash);
}

static ALWAYS_INLINE u64 process_of(u32 pid)
{
	u64 *process = bpf_map_lookup_elem(&processes, &pid);

	return process ? *process : 0;
}

SEC("perf_event")
int sampled(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *scratch = scratch_of(OF_SAMPLES);
	struct tell_sample record = { .kind = TELL_SAMPLE };

	if (!scratch)
		return 0;
	scratch->counts.runs++;
	record.event = bpf_get_attach_cookie(ctx);
	record.period = ctx->sample_period;
	u64 ip = ctx->regs.rip, sp = ctx->regs.rsp, fp = ctx->regs.rbp, cs = ctx->regs.cs;
	/* Read here, and not by a pointer that is chosen later, which the verifier refuses. */
	asm volatile("" : "+r"(ip), "+r"(sp), "+r"(fp), "+r"(cs));
	record.is_user = (cs & 3) != 0;
	if (!record.is_user && settings.kernel_stacks)
		record.kernel_stack = kernel_stack(ctx, scratch);
	if (task->mm && settings.user_stacks) {
		if (!record.is_user) {
			struct pt_regs *regs = bpf_task_pt_regs(task);

			ip = regs->ip;
			sp = regs->sp;
			fp = regs->bp;
			cs = regs->cs;
		}
		record.user_stack = user_stack(ctx, scratch, task->pid, process_of(task->tgid), ip,
					       sp, fp, cs);
	}
	tell(ctx, scratch, &record, TELL_SAMPLE_BYTES);
	/* perf itself writes no sample. */
	return 0;
}

/* (bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state) */
SEC("tp_btf/sched_switch")
int switched(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct scratch *scratch = scratch_of(OF_SWITCHES);
	struct tell_switch record = { .kind = TELL_SWITCH };
	u32 prev_pid = prev->tgid;

	if (!scratch)
		return 0;
	record.next_pid = next->tgid;
	record.next_tid = next->pid;
	u64 process = process_of(prev_pid);
	if (settings.is_system_wide)
		record.flags = SWITCH_PREV_IS_TARGET | SWITCH_NEXT_IS_TARGET;
	if (process & PROCESS_IS_TARGET)
		record.flags |= SWITCH_PREV_IS_TARGET;
	if (process_of(record.next_pid) & PROCESS_IS_TARGET)
		record.flags |= SWITCH_NEXT_IS_TARGET;
	if (!record.flags)
		return 0;
	scratch->counts.runs++;
	if (ctx[0] & 1)
		record.flags |= SWITCH_IS_PREEMPTION;
	record.state = prev->__state;
	/* The idle thread has no stack to tell of. */
	if (record.flags & SWITCH_PREV_IS_TARGET && prev->pid) {
		if (settings.kernel_stacks)
			record.kernel_stack = kernel_stack(ctx, scratch);
		if (settings.user_stacks && prev->mm) {
			struct pt_regs *regs = bpf_task_pt_regs(prev);

			record.user_stack = user_stack(ctx, scratch, prev->pid, process, regs->ip,
						       regs->sp, regs->bp, regs->cs);
		}
	}
	tell(ctx, scratch, &record, TELL_SWITCH_BYTES);
	return 0;
}

/* (struct task_struct *parent, struct task_struct *child) */
SEC("tp_btf/sched_process_fork")
int forked(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	u32 from = parent->tgid, to = child->tgid;
	u64 process = process_of(from);

	/* A new process has its parent's memory. */
	if (from != to && process)
		bpf_map_update_elem(&processes, &to, &process, 0);
	return 0;
}

/* (struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm) */
SEC("tp_btf/sched_process_exec")
int executed(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	u32 pid = task->tgid;
	u64 *process = bpf_map_lookup_elem(&processes, &pid);

	/* Nothing is known of its memory now. */
	if (process)
		*process &= PROCESS_IS_TARGET;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
