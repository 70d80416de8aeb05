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
#include "perf_event_id.h"
#include "switch_state.h"

#define UNWIND_FN __attribute__((noinline))
#define UNWIND_INLINE ALWAYS_INLINE

/* Processes that are known at a time. */
#define PROCESSES_MAX 16384
/* Words of a chunk of table memory, a power of two. */
#define CHUNK_WORDS 65536
/* Places for a thread's stacks that may come again, a power of two; others may share one. */
#define MEMOS 8192
/* Words of the kernel's stack that are looked through for return addresses: a power of two. */
#define KERNEL_WORDS 128
/* Size of struct pt_regs, which the entry into the kernel leaves at the end of the stack. */
#define PT_REGS_BYTES 168
/* Places of return addresses that are remembered of a stack of the kernel, a power of two, and
 * frames that it may have for that. */
#define KERNEL_SLOTS 32
#define KERNEL_FRAMES 24
/* Frames at the beginning of a stack that are the program's own: not on the stack above it. */
#define KERNEL_OWN_FRAMES 4
/* Where the kernel's code begins. */
#define KERNEL_CODE 0xffffffff80000000ull
/* A thread's stack in the kernel has so many bytes at least. */
#define KERNEL_STACK_BYTES 16384
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
	/* For comparisons: perf writes its own sample as well, behind ours. */
	u8 perf_samples;
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

/* The code segment of 64-bit programs. */
#define USER_CS_64 0x33

/* What records begin with: kinds. */
enum {
	TELL_STACK = 1,
	TELL_SAMPLE = 2,
	TELL_SWITCH = 3,
	TELL_TRACE = 4,
	TELL_WAKE = 5,
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
	u16 unused;
	u32 unused_too;
	u64 period;
	/* 0: none. */
	u64 user_stack;
	u64 kernel_stack;
	/* perf's id of the event. */
	u64 event;
	u32 unused_at_last;
};

/* The thread of the record is switched out for another. */
struct tell_switch {
	u8 kind;
	/* Bits: whether it, and whether the other, are recorded; whether it was preempted, and that
	 * within the kernel. */
	u8 flags;
	/* Its state. */
	u16 state;
	u32 next_pid;
	u64 user_stack;
	u64 kernel_stack;
	u32 next_tid;
};

/* As bytes: there is none behind the last word. */
#define TELL_SAMPLE_BYTES 44
#define TELL_SWITCH_BYTES 28

enum {
	SWITCH_PREV_IS_TARGET = 1,
	SWITCH_NEXT_IS_TARGET = 2,
	SWITCH_IS_PREEMPTION = 4,
	SWITCH_IS_WITHIN_KERNEL = 8,
};

/* What happened on a CPU, by each program. */
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
	u64 kernel_memo_hits;
	u64 reasons[UNWIND_REASONS];
};

/* Which program. */
enum {
	OF_SAMPLES = 0,
	OF_SWITCHES = 1,
	OF_TRACES = 2,
	OF_WAKES = 3,
	PROGRAMS = 4,
};

/* What a program works with on a CPU. */
struct scratch {
	struct counts counts;
	struct unwind_state unwind;
	struct tell_stack stack;
	/* Where the program's own frame is. */
	u64 frame;
	/* The kernel's stack from there on. */
	u64 kernel[KERNEL_WORDS];
	u32 kernel_words;
	/* The return address in front of the registers at the end of the stack. */
	u64 kernel_entry;
	/* Bits of its frames whose addresses were found there, and in how many places. */
	u32 kernel_found;
	u32 kernel_slots;
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

/* A place on the kernel's stack, counted in words from the program's frame, and what is there. */
struct kernel_slot {
	u64 word;
	u64 value;
};

/* What a walk depended on, and what came out. */
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
	/* The same of the kernel's stack: its outermost frame's address, the stack's hash, every place
	 * that holds an address of the stack. */
	u64 kernel_entry;
	u64 kernel_hash;
	u64 kernel_slots_count;
	struct kernel_slot kernel_slots[KERNEL_SLOTS];
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

/* Whether this CPU has told of a stack. */
static ALWAYS_INLINE u32 is_told(u64 hash)
{
	u32 place = hash % TOLD;
	u64 *known = bpf_map_lookup_elem(&told, &place);

	return known && *known == hash;
}

/* Where a thread's registers were in user mode. */
struct user_registers {
	u64 ip;
	u64 sp;
	u64 fp;
	u64 cs;
};

/*
 * The memo for a thread at a place in its program, for us alone; NULL where somebody else is at it.
 * `salt` tells apart what comes from the same place: threads alternate between few stacks.
 */
static ALWAYS_INLINE struct memo *memo_take(u32 tid, u64 ip, u64 salt)
{
	u32 place = unwind_mix(ip ^ salt, tid) % MEMOS;
	struct memo *memo = bpf_map_lookup_elem(&memos, &place);

	if (settings.no_memo || !memo || __sync_lock_test_and_set(&memo->is_busy, 1))
		return NULL;
	return memo;
}

/* The hash of the current thread's user stack, told; 0 for none. */
static ALWAYS_INLINE u64 user_stack(void *ctx, struct scratch *scratch, struct memo *memo, u32 tid,
				    u64 process, const struct user_registers *registers)
{
	struct unwind_state *s = &scratch->unwind;
	u64 ip = registers->ip, sp = registers->sp, fp = registers->fp;
	u32 reason;

	unwind_begin(s);
	s->ip = ip;
	s->sp = sp;
	s->fp = fp;
	s->mappings_first = process >> PROCESS_FIRST_SHIFT;
	s->mappings_count = process & PROCESS_COUNT_MASK;
	if (memo && memo->tid == tid && memo->ip == ip && memo->sp == sp &&
	    memo->process == process && (!memo->needs_fp || memo->fp == fp) &&
	    memo_holds(s, memo) && is_told(memo->hash)) {
		scratch->counts.memo_hits++;
		return memo->hash;
	}
	scratch->counts.walks++;
	if (registers->cs != USER_CS_64) {
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
	if (memo) {
		memo->tid = tid;
		memo->process = process;
		memo->ip = ip;
		memo->sp = sp;
		memo->fp = fp;
		memo->needs_fp = s->needs_fp;
		memo->hash = hash;
		memo_keep(s, memo);
	}
	take_frames(scratch);
	scratch->stack.reason = reason;
	return tell_stack(ctx, scratch, hash);
}

/* Takes the kernel's stack into scratch->stack; gives its hash, or 0. */
static ALWAYS_INLINE u64 kernel_walk(void *ctx, struct scratch *scratch)
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
	return hash | !hash;
}

/* Whether every place of the kernel's stack that matters holds what it held. */
UNWIND_FN u32 kernel_memo_holds(struct scratch *scratch, struct memo *memo)
{
	if (!scratch || !memo)
		return 0;
	u64 count = memo->kernel_slots_count;
	if (!count || count > KERNEL_SLOTS)
		return 0;
	for (u32 i = 0; i < KERNEL_SLOTS; i++) {
		if (i >= count)
			break;
		struct kernel_slot *slot = &memo->kernel_slots[i];
		if (scratch->kernel[slot->word % KERNEL_WORDS] != slot->value)
			return 0;
	}
	return 1;
}

/* Number of the first frame of the kernel's stack at an address; KERNEL_FRAMES for none. */
UNWIND_FN u32 kernel_frame_at(struct scratch *scratch, u64 address)
{
	if (!scratch)
		return KERNEL_FRAMES;
	u32 count = scratch->stack.frames_count;
	for (u32 i = 0; i < KERNEL_FRAMES; i++) {
		if (i >= count)
			break;
		if (scratch->stack.frames[i] == address)
			return i;
	}
	return KERNEL_FRAMES;
}

/*
 * The same stack was walked again although a place has changed: it was none of a return address, but
 * held one that was left over. The first place, which is that of the program's caller, stands in.
 */
UNWIND_FN u32 kernel_memo_prune(struct scratch *scratch, struct memo *memo)
{
	if (!scratch || !memo)
		return 0;
	for (u32 i = 1; i < KERNEL_SLOTS; i++) {
		struct kernel_slot *slot = &memo->kernel_slots[i];

		if (scratch->kernel[slot->word % KERNEL_WORDS] != slot->value)
			*slot = memo->kernel_slots[0];
	}
	return 0;
}

/* Remembers one place, if it holds an address of the stack. 1 where there is no room. */
UNWIND_FN u32 kernel_memo_word(struct scratch *scratch, struct memo *memo, u32 word)
{
	if (!scratch || !memo)
		return 1;
	u64 value = scratch->kernel[word % KERNEL_WORDS];
	/* The kernel's code, its modules and BPF programs lie above. */
	if (value < KERNEL_CODE)
		return 0;
	u32 frame = kernel_frame_at(scratch, value);
	if (frame >= KERNEL_FRAMES)
		return 0;
	u32 slot = scratch->kernel_slots;
	if (slot >= KERNEL_SLOTS)
		return 1;
	memo->kernel_slots[slot].word = word;
	memo->kernel_slots[slot].value = value;
	scratch->kernel_slots = slot + 1;
	scratch->kernel_found |= 1u << frame;
	return 0;
}

/*
 * Remembers each place that holds an address of the stack: the real ones are among them, and it does
 * not matter which they are. Where an address is nowhere, the stack is deeper than what was looked
 * at, and is not remembered; neither is one in which a function calls itself: the second of two
 * frames of one address is never found.
 */
UNWIND_FN u32 kernel_memo_keep(struct scratch *scratch, struct memo *memo)
{
	if (!scratch || !memo)
		return 0;
	u32 count = scratch->stack.frames_count;
	scratch->kernel_found = (1u << KERNEL_OWN_FRAMES) - 1;
	scratch->kernel_slots = 0;
	memo->kernel_slots_count = 0;
	if (count <= KERNEL_OWN_FRAMES || count > KERNEL_FRAMES)
		return 0;
	u32 words = scratch->kernel_words;
	for (u32 word = 0; word < KERNEL_WORDS; word++) {
		if (word >= words)
			break;
		if (kernel_memo_word(scratch, memo, word))
			return 0;
	}
	/* The outermost frame's is in front of the registers, see kernel_stack(). */
	u32 last = (count - 1) % UNWIND_FRAMES_ROOM;
	if (scratch->stack.frames[last] == scratch->kernel_entry)
		scratch->kernel_found |= 1u << (count - 1);
	if (scratch->kernel_found == (1u << count) - 1)
		memo->kernel_slots_count = scratch->kernel_slots;
	return 0;
}

/*
 * The hash of the kernel's stack, told; 0 for none. A walk costs the most of all, and most switches of
 * a thread happen in few places. Frames follow each other at distances that their code fixes, so the
 * stack is the same where every place, counted from the program's frame, that held a return address
 * holds the same one. The entry into the kernel alone is apart from the rest, by a random distance; its
 * return address is in front of the registers.
 */
static ALWAYS_INLINE u64 kernel_stack(void *ctx, struct scratch *scratch, struct memo *memo,
				      u32 tid, u64 base)
{
	u64 frame = scratch->frame;
	u64 above = base + KERNEL_STACK_BYTES - frame;
	u64 entry = base + KERNEL_STACK_BYTES - PT_REGS_BYTES - 8;

	/* Some kernels run programs on a stack of their own: nothing is known of this one then. */
	if (frame - base >= KERNEL_STACK_BYTES || above < KERNEL_WORDS * 8 ||
	    bpf_probe_read_kernel(scratch->kernel, KERNEL_WORDS * 8, (void *)frame) ||
	    bpf_probe_read_kernel(&scratch->kernel_entry, 8, (void *)entry))
		memo = NULL;
	scratch->kernel_words = KERNEL_WORDS;
	if (memo && memo->tid == tid && memo->kernel_entry == scratch->kernel_entry &&
	    kernel_memo_holds(scratch, memo) && is_told(memo->kernel_hash)) {
		scratch->counts.kernel_memo_hits++;
		return memo->kernel_hash;
	}
	u64 hash = kernel_walk(ctx, scratch);
	if (memo && memo->tid == tid && hash == memo->kernel_hash && memo->kernel_slots_count &&
	    memo->kernel_entry == scratch->kernel_entry &&
	    scratch->kernel[memo->kernel_slots[0].word % KERNEL_WORDS] ==
		    memo->kernel_slots[0].value) {
		kernel_memo_prune(scratch, memo);
	} else if (memo && hash) {
		memo->kernel_entry = scratch->kernel_entry;
		memo->kernel_hash = hash;
		kernel_memo_keep(scratch, memo);
	}
	return hash ? tell_stack(ctx, scratch, hash) : 0;
}

static ALWAYS_INLINE u64 process_of(u32 pid)
{
	u64 *process = bpf_map_lookup_elem(&processes, &pid);

	return process ? *process : 0;
}

/* `task_struct::__state` of a task that runs or may run (include/linux/sched.h). */
#define TASK_RUNNING 0

SEC("perf_event")
int sampled(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *scratch = scratch_of(OF_SAMPLES);
	struct tell_sample record = { .kind = TELL_SAMPLE };

	if (!scratch)
		return 0;
	scratch->counts.runs++;
	record.event = perf_event_id(ctx);
	record.period = ctx->sample_period;
	struct user_registers user = {
		.ip = ctx->regs.rip,
		.sp = ctx->regs.rsp,
		.fp = ctx->regs.rbp,
		.cs = ctx->regs.cs,
	};
	/* Read here, and not by a pointer that is chosen later, which the verifier refuses. */
	asm volatile("" : "+r"(user.ip), "+r"(user.sp), "+r"(user.fp), "+r"(user.cs));
	record.is_user = (user.cs & 3) != 0;
	if (!record.is_user && settings.kernel_stacks) {
		u64 hash = kernel_walk(ctx, scratch);

		record.kernel_stack = hash ? tell_stack(ctx, scratch, hash) : 0;
	}
	if (task->mm && settings.user_stacks) {
		if (!record.is_user) {
			struct pt_regs *regs = bpf_task_pt_regs(task);

			user.ip = regs->ip;
			user.sp = regs->sp;
			user.fp = regs->bp;
			user.cs = regs->cs;
		}
		u32 tid = task->pid;
		struct memo *memo = memo_take(tid, user.ip, user.sp);

		record.user_stack = user_stack(ctx, scratch, memo, tid, process_of(task->tgid), &user);
		if (memo)
			memo->is_busy = 0;
	}
	tell(ctx, scratch, &record, TELL_SAMPLE_BYTES);
	/* Where this is 0, perf itself writes no sample. */
	return settings.perf_samples;
}

/*
 * (bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
 *
 * A function of its own: the program itself must have a small frame to be on the thread's stack.
 */
static __attribute__((noinline)) int tell_switch(u64 *ctx, struct scratch *scratch)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct tell_switch record = { .kind = TELL_SWITCH };
	u32 prev_pid = prev->tgid;

	record.next_pid = next->tgid;
	record.next_tid = next->pid;
	u64 process = process_of(prev_pid);
	u64 next_process = record.next_pid == prev_pid ? process : process_of(record.next_pid);
	if (settings.is_system_wide)
		record.flags = SWITCH_PREV_IS_TARGET | SWITCH_NEXT_IS_TARGET;
	if (process & PROCESS_IS_TARGET)
		record.flags |= SWITCH_PREV_IS_TARGET;
	if (next_process & PROCESS_IS_TARGET)
		record.flags |= SWITCH_NEXT_IS_TARGET;
	if (!record.flags)
		return 0;
	scratch->counts.runs++;
	record.state = prev->__state;
	/*
	 * As the kernel's own switch records have it: taken off while it could have gone on. The first
	 * argument alone tells only of those that were taken off within the kernel.
	 */
	u32 is_preemption = ctx[0] & 1 || record.state == TASK_RUNNING;
	if (is_preemption)
		record.flags |= SWITCH_IS_PREEMPTION;
	else
		record.state = switch_state(ctx, record.state);
	if (ctx[0] & 1)
		record.flags |= SWITCH_IS_WITHIN_KERNEL;
	u32 tid = prev->pid;
	/* The idle thread has no stack to tell of. */
	if (record.flags & SWITCH_PREV_IS_TARGET && tid) {
		struct user_registers user = {};
		u32 has_user = settings.user_stacks && prev->mm;

		if (has_user) {
			struct pt_regs *regs = bpf_task_pt_regs(prev);

			user.ip = regs->ip;
			user.sp = regs->sp;
			user.fp = regs->bp;
			user.cs = regs->cs;
		}
		/* Preemptions and waits of one place have different stacks in the kernel. */
		struct memo *memo = memo_take(tid, user.ip, user.sp ^ is_preemption);

		if (settings.kernel_stacks)
			record.kernel_stack =
				kernel_stack(ctx, scratch, memo, tid, (u64)prev->stack);
		if (has_user)
			record.user_stack = user_stack(ctx, scratch, memo, tid, process, &user);
		if (memo) {
			memo->tid = tid;
			memo->is_busy = 0;
		}
	}
	tell(ctx, scratch, &record, TELL_SWITCH_BYTES);
	return 0;
}

SEC("tp_btf/sched_switch")
int switched(u64 *ctx)
{
	struct scratch *scratch = scratch_of(OF_SWITCHES);
	u64 frame;

	if (!scratch)
		return 0;
	asm volatile("%0 = r10" : "=r"(frame));
	/* Through memory it becomes a number. */
	scratch->frame = frame;
	return tell_switch(ctx, scratch);
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

#include "traced.h"
#include "woken.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";
