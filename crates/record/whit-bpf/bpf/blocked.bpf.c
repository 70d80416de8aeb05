/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that are on no CPU at this moment, with their stacks. An iterator runs the program for each thread, and the
 * recorder reads the iterator. A thread that is blocked all the time hits no event and never switches, so that no
 * other program sees it.
 *
 * The program may sleep, and so reads other processes' memory even if it is not resident. It does so piece by piece: a
 * step of the walk that misses a piece fails, the piece is fetched, and the step is done again.
 */
#include "kernel.h"

#define UNWIND_FN __attribute__((noinline))
#define UNWIND_INLINE ALWAYS_INLINE

struct unwind_state;
static ALWAYS_INLINE int unwind_copy(void *to, u32 size, u64 from);
static ALWAYS_INLINE int interpreter_copy(u64 *to, u64 from);

/* The kernel finds mappings of the current task alone. */
static ALWAYS_INLINE u32 unwind_learn(struct unwind_state *s, u64 address)
{
	return 0;
}

/* Set before loading; see stacks.bpf.c. */
const volatile struct {
	u8 is_system_wide;
	u8 kernel_stacks;
	u8 user_stacks;
	u8 by_thread;
	u8 chosen_by;
	/* The recorder's PID namespace; 0 for the first of the machine. */
	u32 pid_namespace;
	/* Threads that are emitted, at most. */
	u32 threads_max;
	u32 cgroup_subsystem;
} settings = { .threads_max = 1 };

#include "interpreters.h"
#include "known.h"
#include "probed_return.h"
#include "unwind.h"

/* Bytes that are fetched at once, and how many such pieces are kept. */
#define PIECE_BYTES 1024
#define PIECES 8
/* Steps of a walk, with those that are done again. */
#define STEPS_MAX 1024

/* `task_struct::__state` (include/linux/sched.h). */
#define TASK_UNINTERRUPTIBLE 2
#define TASK_DEAD 0x80
#define TASK_RTLOCK_WAIT 0x1000
/* TASK_UNINTERRUPTIBLE | TASK_NOLOAD. */
#define TASK_IDLE 0x402
/* Bits of states that `prev_state` of sched:sched_switch has, and its bit for TASK_IDLE. */
#define TASK_REPORTED 0x7f
#define TASK_REPORT_IDLE 0x80

/* A thread. Its stacks follow: that of the kernel, then that of user mode, innermost frame first. */
struct blocked_record {
	u64 time;
	/* How often the thread has left a CPU. */
	u64 switches;
	u32 pid;
	u32 tid;
	/* As `prev_state` of sched:sched_switch tells it; 0: runnable. */
	u32 state;
	/* enum unwind_reason; 0 where the user stack was not walked. */
	u32 reason;
	u32 kernel_count;
	u32 user_count;
	/* Where the thread was last. */
	u32 cpu;
	u32 unused;
};

struct blocked_counts {
	u64 emitted;
	/* Beyond settings.threads_max. */
	u64 left_out;
	/* They ran meanwhile. */
	u64 ran;
};

struct piece {
	/* Its first address; 0 for none. */
	u64 address;
	u64 words[PIECE_BYTES / 8];
};

struct blocked_scratch {
	struct blocked_counts counts;
	/* An address that no piece holds. */
	u64 missed;
	/* A piece without memory: a step that asks for it again fails, which takes a run of an interpreter back. */
	u64 absent;
	u32 next_piece;
	u32 unused;
	struct piece pieces[PIECES];
	struct unwind_state unwind;
	struct blocked_record record;
	u64 kernel[UNWIND_FRAMES_ROOM];
};

/* One reader reads at a time. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct blocked_scratch));
	__uint(max_entries, 1);
} blocked_scratch SEC(".maps");

static ALWAYS_INLINE struct blocked_scratch *the_scratch(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&blocked_scratch, &zero);
}

/* Words only, of pieces that were fetched. */
static ALWAYS_INLINE int unwind_copy(void *to, u32 size, u64 from)
{
	struct blocked_scratch *scratch = the_scratch();
	u64 address = from & ~(PIECE_BYTES - 1ull);

	if (!scratch || size != 8 || from % 8)
		return 1;
	for (u32 i = 0; i < PIECES; i++) {
		if (scratch->pieces[i].address == address) {
			*(u64 *)to = scratch->pieces[i].words[from % PIECE_BYTES / 8];
			return 0;
		}
	}
	if (!address || address != scratch->absent)
		scratch->missed = from;
	return 1;
}

static ALWAYS_INLINE int interpreter_copy(u64 *to, u64 from)
{
	for (u32 i = 0; i < INTERPRETER_CODE_WORDS; i++) {
		if (unwind_copy(&to[i], 8, from + i * 8))
			return 1;
	}
	return 0;
}

/* Fields of a state that a failed step has changed. */
struct before_step {
	u64 ip;
	u64 sp;
	u64 fp;
	u64 fp_address;
	u64 extra_address;
	u64 hash;
	u32 is_return;
	u32 frames_count;
	u32 reads_count;
	u32 needs_fp;
	u32 chain_state;
	u32 interpreter_reason;
	u32 interpreted_count;
	u64 chain;
	struct unwind_run run;
	/* The frame in the place of a run's native one. */
	u64 first_of_run;
};

/* A step of the walk. One that misses a piece changes nothing, and says which. A function of its own, so that the
 * verifier looks at it once, and not for each step. */
UNWIND_FN u32 step_or_miss(struct blocked_scratch *scratch)
{
	struct unwind_state *s;
	struct before_step before;
	u32 reason;

	if (!scratch)
		return UNWIND_BAD_TABLE;
	s = &scratch->unwind;
	before.ip = s->ip;
	before.sp = s->sp;
	before.fp = s->fp;
	before.fp_address = s->fp_address;
	before.extra_address = s->extra_address;
	before.hash = s->hash;
	before.is_return = s->is_return;
	before.frames_count = s->frames_count;
	before.reads_count = s->reads_count;
	before.needs_fp = s->needs_fp;
	before.chain_state = s->chain_state;
	before.interpreter_reason = s->interpreter_reason;
	before.interpreted_count = s->interpreted_count;
	before.chain = s->chain;
	before.run = s->run;
	before.first_of_run = s->frames[s->run.native_count % UNWIND_FRAMES_ROOM];
	scratch->missed = 0;
	reason = unwind_step(s);
	/* Without a word a step may end in any way. */
	if (!scratch->missed)
		return reason;
	s->ip = before.ip;
	s->sp = before.sp;
	s->fp = before.fp;
	s->fp_address = before.fp_address;
	s->extra_address = before.extra_address;
	s->hash = before.hash;
	s->is_return = before.is_return;
	s->frames_count = before.frames_count;
	s->reads_count = before.reads_count;
	s->needs_fp = before.needs_fp;
	s->chain_state = before.chain_state;
	s->interpreter_reason = before.interpreter_reason;
	s->interpreted_count = before.interpreted_count;
	s->chain = before.chain;
	s->run = before.run;
	s->frames[s->run.native_count % UNWIND_FRAMES_ROOM] = before.first_of_run;
	return UNWIND_UNREADABLE;
}

/* Fetches the piece that a step missed, or notes that there is no memory. The step is done again; 0 where it need
 * not be. */
static ALWAYS_INLINE u32 fetch(struct blocked_scratch *scratch, struct task_struct *task)
{
	struct piece *piece = &scratch->pieces[scratch->next_piece++ % PIECES];
	u64 address = scratch->missed & ~(PIECE_BYTES - 1ull);

	scratch->missed = 0;
	piece->address = 0;
	if (!address)
		return 0;
	if (bpf_copy_from_user_task(piece->words, PIECE_BYTES, (const void *)address, task, 0)) {
		scratch->absent = address;
		return 1;
	}
	piece->address = address;
	return 1;
}

static ALWAYS_INLINE u32 walk_of(struct blocked_scratch *scratch, struct task_struct *task)
{
	u32 reason = UNWIND_ON;

	scratch->absent = 0;
	for (u32 i = 0; i < PIECES; i++)
		scratch->pieces[i].address = 0;
	for (u32 step = 0; step < STEPS_MAX; step++) {
		reason = step_or_miss(scratch);
		if (!reason)
			continue;
		if (!scratch->missed || !fetch(scratch, task))
			break;
	}
	return reason;
}

/* The thread's user stack, in `unwind`; gives how its walk ended. */
static ALWAYS_INLINE u32 take_user_stack(struct blocked_scratch *scratch, struct task_struct *task,
					 u64 process)
{
	struct unwind_state *s = &scratch->unwind;
	struct user_registers user;
	u32 reason;

	registers_of(task, &user);
	unwind_begin(s);
	s->task = (u64)task;
	s->ip = user.ip;
	s->sp = user.sp;
	s->fp = user.fp;
	s->extra = user.extra;
	s->mappings_first = process >> PROCESS_FIRST_SHIFT;
	s->mappings_count = process & PROCESS_COUNT_MASK;
	if (!IS_64_BIT_MODE(user.mode)) {
		s->frames[0] = user.ip;
		s->frames_count = 1;
		return UNWIND_NOT_64_BIT;
	}
	reason = walk_of(scratch, task);
	if (!s->mappings_count && reason == UNWIND_NO_MAPPING)
		reason = UNWIND_NO_PROCESS;
	return reason;
}

static ALWAYS_INLINE u32 reported_state(u32 state)
{
	if ((state & TASK_IDLE) == TASK_IDLE)
		return TASK_REPORT_IDLE;
	if (state & TASK_RTLOCK_WAIT)
		return TASK_UNINTERRUPTIBLE;
	return state & TASK_REPORTED;
}

static ALWAYS_INLINE u64 switches_of(struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

static ALWAYS_INLINE u32 cpu_of(struct task_struct *task)
{
	if (core_field_exists(task->thread_info.cpu))
		return task->thread_info.cpu;
	return task->cpu;
}

SEC("iter.s/task")
int blocked(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	struct blocked_scratch *scratch = the_scratch();

	if (!task || !scratch)
		return 0;
	struct blocked_record *record = &scratch->record;
	u32 tid = tid_of(task), pid = pid_of(task);
	u64 process = process_of(pid);
	if (!tid || !is_target(task, tid, process) || process & PROCESS_AWAITS_EXEC)
		return 0;
	record->switches = switches_of(task);
	u32 state = task->__state;
	/* One that has never been on a CPU waits for its first run. */
	if (task->on_cpu || task->exit_state || state & TASK_DEAD || !record->switches)
		return 0;
	record->state = reported_state(state);
	if (scratch->counts.emitted >= settings.threads_max) {
		scratch->counts.left_out++;
		return 0;
	}
	record->time = bpf_ktime_get_ns();
	record->pid = pid;
	record->tid = tid;
	record->cpu = cpu_of(task);
	record->unused = record->reason = 0;
	record->kernel_count = record->user_count = 0;
	scratch->unwind.frames_count = 0;
	if (settings.kernel_stacks) {
		long bytes = bpf_get_task_stack(task, scratch->kernel, UNWIND_FRAMES_MAX * 8, 0);

		if (bytes > 0)
			record->kernel_count = (u64)bytes / 8;
	}
	if (settings.user_stacks && task->mm)
		record->reason = take_user_stack(scratch, task, process);
	record->user_count = scratch->unwind.frames_count;
	/* It ran: its own switches are emitted. */
	if (task->on_cpu || switches_of(task) != record->switches) {
		scratch->counts.ran++;
		return 0;
	}
	u64 kernel_bytes = record->kernel_count % UNWIND_FRAMES_ROOM * 8;
	u64 user_bytes = record->user_count % UNWIND_FRAMES_ROOM * 8;
	/* Without room the kernel calls again with a larger buffer: only the last call counts. */
	if (bpf_seq_write(seq, record, sizeof(*record)) ||
	    bpf_seq_write(seq, scratch->kernel, kernel_bytes) ||
	    bpf_seq_write(seq, scratch->unwind.frames, user_bytes))
		return 0;
	scratch->counts.emitted++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
