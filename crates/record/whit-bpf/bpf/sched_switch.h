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

/* Writes a stack, or the object of a wait, into the CPU's channel, unless it is there. Returns its place plus one; 0 if
 * it did not fit. */
static ALWAYS_INLINE u32 take_place(struct scratch *scratch, struct switch_memory *memory, u32 place,
				    u64 hash, const u64 *frames, u32 count, u32 kind)
{
	u64 *known = &memory->announced[place];

	if (*known != hash) {
		u64 what = kind | count << 16 | (u64)place << 32;

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

	if (hash && is_announced(memory, kernel_place(hash), hash)) {
		scratch->counts.kernel_memo_hits++;
		return kernel_place(hash) + 1;
	}
	hash = kernel_walk_noted(ctx, look, set);
	if (!hash) {
		scratch->counts.kernel_failures++;
		return 0;
	}
	return take_place(scratch, memory, kernel_place(hash), hash, look->frames,
			  look->frames_count % UNWIND_FRAMES_ROOM, CHANNEL_STACK);
}

/* The place of the thread's stack in user mode, told, and one; 0 for none. */
static ALWAYS_INLINE u32 user_stack_at_switch(struct scratch *scratch, struct switch_memory *memory,
					      u32 tid, u64 process,
					      const struct user_registers *user)
{
	u32 reason;
	u64 hash = user_hash(memory, scratch, tid, process, user, &reason);

	if (!reason)
		return user_place(hash) + 1;
	return take_place(scratch, memory, user_place(hash), hash, scratch->unwind.frames,
			  scratch->unwind.frames_count % UNWIND_FRAMES_ROOM,
			  CHANNEL_STACK | reason << 8);
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

/* Records what the CPU spent besides a thread. */
static ALWAYS_INLINE void emit_account(struct scratch *scratch, struct rq *runqueue, u64 thread,
				       u32 is_recorded, u64 now)
{
	if (!record_account(stolen_clock(runqueue), thread, is_recorded, now))
		scratch->counts.lost++;
}

/* Whether a thread that could go on goes because its cgroup has used its quota of CPU time up. */
static ALWAYS_INLINE u32 is_throttled(struct task_struct *task)
{
	if (core_field_exists(task->throttled))
		return task->throttled != 0;
	if (core_field_exists(task->se.cfs_rq) && core_field_exists(task->se.cfs_rq->throttle_count))
		return task->se.cfs_rq->throttle_count > 0;
	return 0;
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
		flags |= is_throttled(task) ? SWITCH_IS_PREEMPTION | SWITCH_IS_THROTTLED
					    : SWITCH_IS_PREEMPTION;
	else
		state = switch_state(ctx, state) & 0xffff;
	if (ctx[0] & 1)
		flags |= SWITCH_IS_WITHIN_KERNEL;
	return CHANNEL_SWITCH | flags << 8 | state << 16;
}

/* The place of the object in scratch->object, described, and one; 0 if it did not fit. */
static ALWAYS_INLINE u32 take_object(struct scratch *scratch, struct switch_memory *memory, u64 hash)
{
	u32 count = 0;

	if (!is_announced(memory, object_place(hash), hash))
		count = describe_object(&scratch->object,
					(struct channel_frames *)scratch->unwind.frames);
	return take_place(scratch, memory, object_place(hash), hash, scratch->unwind.frames,
			  count % UNWIND_FRAMES_ROOM, CHANNEL_OBJECT);
}

/* Records the file by which the wait of a thread ends that comes from an epoll call. */
static ALWAYS_INLINE void ready_at_switch(void *ctx, struct scratch *scratch, struct channel *channel,
					  struct switch_memory *memory, struct kernel_look *look,
					  struct task_struct *next, u32 tid, u32 pid, u64 now)
{
	struct call_registers registers;

	if (!settings.user_stacks || !registers_offset || !next->mm || next->flags & PF_KTHREAD)
		return;
	call_registers_at(next, registers_address(next, look), &registers);
	if (!registers.is_call || !registers.is_64_bit || way_of_call(registers.call) != CALL_EPOLL)
		return;
	scratch->object.task = number_of(next, look);
	u64 hash = ready_object(&scratch->object, registers.arguments[0]);
	u32 place = hash ? take_object(scratch, memory, hash) : 0;

	if (!place)
		return;
	struct channel_record record = {
		.what = CHANNEL_READY | (u64)tid << 32,
		.time = now,
		.owner = pid | (u64)place << 32,
	};

	emit_timed(ctx, scratch, channel, &record);
}

/* Notes the object that a thread goes to wait for: `address` is that of its registers, 0 without any. */
static ALWAYS_INLINE void object_at_switch(struct scratch *scratch, struct switch_memory *memory,
					   struct task_struct *task, u64 address,
					   struct channel_record *record)
{
	struct wait_object *object = &scratch->object;
	struct call_registers registers;
	u64 state = record->what >> 16 & 0xffff, hash;

	if (record->what >> 8 & SWITCH_IS_PREEMPTION || state & TASK_DEAD)
		return;
	u32 unknown = task->flags & PF_KTHREAD ? OBJECT_OF_KERNEL : OBJECT_OF_EXIT;
	object->head = object_head(OBJECT_UNKNOWN, unknown, 0);
	hash = unwind_mix(object->head, 0);
	if (address) {
		call_registers_at(task, address, &registers);
		/* A thread that waits for a page of the futex itself is not interruptible. */
		if ((registers.call == NR_FUTEX || registers.call == NR_FUTEX_WAIT) &&
		    registers.is_64_bit && state & TASK_INTERRUPTIBLE) {
			record->what |= SWITCH_HAS_FUTEX << 8;
			record->object = registers.arguments[0];
			return;
		}
		object->head = object_head(OBJECT_UNKNOWN, OBJECT_NO_CALL, 0);
		hash = unwind_mix(object->head, 0);
		if (registers.is_call && registers.is_64_bit) {
			object->task = (u64)bpf_get_current_task_btf();
			object->time = 0;
			hash = call_object(object, registers.call, registers.arguments[0],
					   registers.arguments[1], registers.arguments[2]);
		}
	}
	u32 place = take_object(scratch, memory, hash);
	if (place) {
		record->what |= SWITCH_HAS_OBJECT << 8;
		record->object = place;
	}
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

	u32 is_recorded = tid && is_target(prev, tid, process);

	compare_clocks(scratch, prev, now);
	if (has_next)
		ready_at_switch(ctx, scratch, channel, memory, look, next, came, next_pid, now);
	if (!is_recorded) {
		emit_account(scratch, runqueue_of(prev), 0, settings.is_system_wide, now);
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
	emit_account(scratch, runqueue_of(prev), pid | (u64)tid << 32, 1, now);
	u64 of_kernel = 0, of_user = 0;
	struct channel_record record = {
		.what = why_it_leaves(ctx, prev) | (u64)tid << 32,
		.time = now,
	};
	if (settings.kernel_stacks)
		of_kernel = kernel_stack_at_switch(ctx, scratch, memory, look, prev);
	if (settings.user_stacks && prev->mm) {
		u64 address = registers_address(prev, look);
		struct user_registers user;

		object_at_switch(scratch, memory, prev, address, &record);
		user_registers_at(prev, address, &user);
		of_user = user_stack_at_switch(scratch, memory, tid, process, &user);
	} else if (!prev->mm) {
		object_at_switch(scratch, memory, prev, 0, &record);
	}
	record.owner = pid | of_user << 32 | of_kernel << 48;
	if (has_next || settings.is_system_wide) {
		record.what |= SWITCH_HAS_NEXT << 8;
		record.next = next_pid | (u64)came << 32;
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
	u64 now = bpf_ktime_get_ns();
	/* The hidden switch is that of the idle thread. */
	emit_account(scratch, runqueue, 0, settings.is_system_wide, now);
	if (!tid || !is_target(next, tid, process_at_switch(memory, processes_generation(), pid)))
		return 0;
	u32 user = KERNEL_AT_SWITCH;
	struct kernel_look *look = bpf_map_lookup_elem(&kernel_looks, &user);

	if (look)
		ready_at_switch(ctx, scratch, channel, memory, look, next, tid, pid, now);
	emit_switch_in(ctx, scratch, channel, tid, pid, now);
	return 0;
}

/*
 * Run by the loader (BPF_PROG_TEST_RUN) on each CPU: with an argument when recording begins, which says what accounts
 * have, and without before it ends, since no switch may follow.
 */
SEC("raw_tp")
int settle_account(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *scratch = scratch_of(OF_SWITCHES);
	struct channel *channel = channel_of_cpu();
	u32 tid = tid_of(task), pid = pid_of(task);

	if (!scratch || !channel || !channel->is_open)
		return 0;
	if (ctx->args[0])
		begin_account();
	u32 is_recorded = tid && is_target(task, tid, process_of(pid));
	u64 thread = is_recorded ? pid | (u64)tid << 32 : 0;
	emit_account(scratch, runqueue_of(task), thread, is_recorded || settings.is_system_wide,
		     bpf_ktime_get_ns());
	return 0;
}
