/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Context switches: who goes, why and at which stacks, and who comes.
 *
 * The tracepoint shows both threads. Some kernels hide the events of the idle thread from programs at
 * tracepoints: there, the kernel's own event for switches runs a program that records the threads that
 * come after it. A switch that neither sees is noticed when the thread goes again; the kernel has the
 * time at which it came.
 *
 * Part of stacks.bpf.c.
 */

static ALWAYS_INLINE struct switch_memory *switch_memory_of_cpu(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&switch_memories, &cpu);
}

/* Writes a stack into the CPU's channel, unless it is there. Returns its place plus one; 0 if it did not
 * fit. */
static ALWAYS_INLINE u32 place_of(struct scratch *scratch, struct switch_memory *memory, u64 hash,
				  const u64 *frames, u32 count, u32 reason)
{
	u64 *known = announced_at(memory, hash);
	u64 place = hash % ANNOUNCED_STACKS;

	if (*known != hash) {
		u64 what = CHANNEL_STACK | reason << 8 | count << 16 | place << 32;

		if (!channel_stack((const struct channel_frames *)frames, what)) {
			scratch->counts.lost_stacks++;
			return 0;
		}
		scratch->counts.announced++;
		*known = hash;
	}
	return place + 1;
}

/* The place of the stack of the kernel, told, and one; 0 for none. */
static ALWAYS_INLINE u32 kernel_stack_at_switch(void *ctx, struct scratch *scratch,
						struct switch_memory *memory,
						struct kernel_look *look, struct task_struct *task)
{
	struct kernel_set *set;
	u64 hash = kernel_again(KERNEL_AT_SWITCH, look, task, &set);

	if (hash && is_announced(memory, hash)) {
		scratch->counts.kernel_memo_hits++;
		return hash % ANNOUNCED_STACKS + 1;
	}
	hash = kernel_walk_noted(ctx, look, set);
	if (!hash) {
		scratch->counts.kernel_failures++;
		return 0;
	}
	return place_of(scratch, memory, hash, look->frames,
			look->frames_count % UNWIND_FRAMES_ROOM, 0);
}

/* The place of the thread's stack in user mode, told, and one; 0 for none. */
static ALWAYS_INLINE u32 user_stack_at_switch(struct scratch *scratch, struct switch_memory *memory,
					      u32 tid, u64 process,
					      const struct user_registers *user)
{
	u32 reason;
	u64 hash = user_hash(memory, scratch, tid, process, user, &reason);

	if (!reason)
		return hash % ANNOUNCED_STACKS + 1;
	return place_of(scratch, memory, hash, scratch->unwind.frames,
			scratch->unwind.frames_count % UNWIND_FRAMES_ROOM, reason);
}

/* Writes a record with a time into the CPU's channel. Its reader is woken at a fill level. */
static ALWAYS_INLINE void emit_timed(void *ctx, struct scratch *scratch, struct channel *channel,
				     const struct channel_record *record)
{
	u64 word = 0;

	if (!channel_write(record))
		scratch->counts.lost++;
	/* Without room it tries again. */
	if (channel_is_due(channel) &&
	    bpf_perf_event_output(ctx, &wakeup_events, BPF_F_CURRENT_CPU, &word, sizeof(word)))
		channel->rung = 0;
}

/* Records that a thread comes, if no record did yet. */
static ALWAYS_INLINE void emit_switch_in(void *ctx, struct scratch *scratch, struct channel *channel,
				    u32 tid, u32 pid, u64 time)
{
	struct channel_record record = {
		.what = CHANNEL_CAME | (u64)tid << 32,
		.time = time,
		.owner = pid,
	};

	emit_timed(ctx, scratch, channel, &record);
}

/* The reason why a thread goes, as the first word of its record. */
static ALWAYS_INLINE u32 why_it_leaves(u64 *ctx, struct task_struct *task)
{
	u32 state = task->__state & 0xffff, flags = 0;

	/*
	 * As the kernel's own switch records have it: taken off while it could have gone on. The first
	 * argument alone tells only of those that were taken off within the kernel.
	 */
	if (ctx[0] & 1 || state == TASK_RUNNING)
		flags |= SWITCH_IS_PREEMPTION;
	else
		state = switch_state(ctx, state) & 0xffff;
	if (ctx[0] & 1)
		flags |= SWITCH_IS_WITHIN_KERNEL;
	return CHANNEL_SWITCH | flags << 8 | state << 16;
}

/* Calls that wait at the futex whose address is their first argument (x86-64). */
#define NR_FUTEX 202
#define NR_FUTEX_WAIT 455
/* `task_struct::__state` of a task that a signal may wake (include/linux/sched.h). */
#define TASK_INTERRUPTIBLE 1

/* The address of the futex that a thread goes to wait at; 0 for any other wait. A thread that can go on waits at none,
 * and one that waits for a page of the futex itself is not interruptible. */
static ALWAYS_INLINE u64 futex_at_switch(struct task_struct *task, u64 what, u64 address)
{
	struct pt_regs *regs;

	if (what >> 8 & SWITCH_IS_PREEMPTION || !(what >> 16 & TASK_INTERRUPTIBLE))
		return 0;
	if (CAN_LOAD_KERNEL)
		regs = kernel_cast(struct pt_regs, address);
	else
		regs = bpf_task_pt_regs(task);
	u64 call = regs->orig_ax;

	if ((call != NR_FUTEX && call != NR_FUTEX_WAIT) || regs->cs != USER_CS_64)
		return 0;
	return regs->di;
}

/*
 * (bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
 *
 * A function of its own: the program itself must have a small frame to be on the thread's stack.
 */
static __attribute__((noinline)) int emit_switch(u64 *ctx, struct kernel_look *look)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct scratch *scratch = scratch_of(OF_SWITCHES);
	struct channel *channel = channel_of_cpu();
	struct switch_memory *memory = switch_memory_of_cpu();
	u32 tid = tid_of(prev), came = tid_of(next), next_pid = pid_of(next);

	if (!scratch || !channel || !memory)
		return 0;
	u64 ran = scratch->running;
	scratch->running = (u64)next;
	scratch->is_seen = 1;
	if (!prev->pid)
		scratch->counts.from_idle++;
	if (!channel->is_open)
		return 0;
	u32 pid = pid_of(prev);
	u64 generation = processes_generation(), now = bpf_ktime_get_ns();
	u64 process = process_at_switch(memory, generation, pid), next_process = process;

	if (next_pid != pid)
		next_process = process_at_switch(memory, generation, next_pid);
	u32 has_next = came && is_target(next, came, next_process);

	compare_clocks(scratch, prev, now);
	if (!tid || !is_target(prev, tid, process)) {
		if (has_next)
			emit_switch_in(ctx, scratch, channel, came, next_pid, now);
		return 0;
	}
	scratch->counts.runs++;
	if (ran && ran != (u64)prev) {
		u64 time = came_at(scratch, prev, now);

		scratch->counts.late++;
		if (time)
			emit_switch_in(ctx, scratch, channel, tid, pid, time);
	}
	u64 kernel_place = 0, user_place = 0, futex = 0;
	u32 why = why_it_leaves(ctx, prev);
	if (settings.kernel_stacks)
		kernel_place = kernel_stack_at_switch(ctx, scratch, memory, look, prev);
	if (settings.user_stacks && prev->mm) {
		u64 address = registers_address(prev, look);
		struct user_registers user;

		user_registers_at(prev, address, &user);
		futex = futex_at_switch(prev, why, address);
		user_place = user_stack_at_switch(scratch, memory, tid, process, &user);
	}
	struct channel_record record = {
		.what = why | (u64)tid << 32,
		.time = now,
		.owner = pid | user_place << 32 | kernel_place << 48,
	};
	if (has_next || settings.is_system_wide) {
		record.what |= SWITCH_HAS_NEXT << 8;
		record.next = next_pid | (u64)came << 32;
	}
	if (futex) {
		record.what |= SWITCH_HAS_FUTEX << 8;
		record.futex = futex;
	}
	emit_timed(ctx, scratch, channel, &record);
	return 0;
}

SEC("tp_btf/sched_switch")
int switched(u64 *ctx)
{
	u32 user = KERNEL_AT_SWITCH;
	struct kernel_look *look = bpf_map_lookup_elem(&kernel_looks, &user);
	u64 frame;

	if (!look)
		return 0;
	asm volatile("%0 = r10" : "=r"(frame));
	/* Through memory it becomes a number. */
	look->frame = frame;
	return emit_switch(ctx, look);
}

/* At an event that the kernel counts context switches by: behind the tracepoint, in the thread that goes. */
SEC("perf_event")
int switched_in(void *ctx)
{
	struct scratch *scratch = scratch_of(OF_SWITCHES);
	struct channel *channel = channel_of_cpu();
	struct switch_memory *memory = switch_memory_of_cpu();
	struct task_struct *next, *prev = bpf_get_current_task_btf();
	struct rq *runqueue = runqueue_of(prev);

	if (!scratch || !channel || !memory || !runqueue)
		return 0;
	if (scratch->is_seen || !channel->is_open) {
		scratch->is_seen = 0;
		return 0;
	}
	next = runqueue->curr;
	if (!next)
		return 0;
	u32 tid = tid_of(next), pid = pid_of(next);
	scratch->running = (u64)next;
	if (tid && is_target(next, tid, process_at_switch(memory, processes_generation(), pid)))
		emit_switch_in(ctx, scratch, channel, tid, pid, bpf_ktime_get_ns());
	return 0;
}
