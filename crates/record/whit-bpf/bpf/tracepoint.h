/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks of tracepoints' and probes' hits. perf writes the sample with the tracepoint's data, under its own filters
 * and for its own targets, right behind this program; the reader of the ring joins the two.
 *
 * Part of stacks.bpf.c.
 */

/* The stacks of a hit that the current thread is at. */
struct trace_record {
	u8 kind;
	u8 unused;
	u16 unused_too;
	/* The kernel's number of the tracepoint. */
	u32 tracepoint;
	u64 user_stack;
	u64 kernel_stack;
	/* As in a sample. */
	u64 cgroup;
	u32 unused_at_last;
};

#define RECORD_TRACE_BYTES 28

/* Whether the hits of a process's threads are recorded. */
static ALWAYS_INLINE u32 is_traced(u64 process)
{
	return settings.is_system_wide || process & PROCESS_IS_TARGET;
}

SEC("tracepoint")
int traced(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *scratch = scratch_of(OF_TRACES);
	struct trace_record record = { .kind = RECORD_TRACE };
	u64 process = process_of(pid_of(task));

	/* The kernel writes no samples of a tracepoint whose program gives 0, to nobody. */
	if (!scratch || !is_traced(process))
		return 1;
	scratch->counts.runs++;
	record.tracepoint = bpf_get_attach_cookie(ctx);
	if (settings.kernel_stacks)
		record.kernel_stack = kernel_stack(ctx, scratch);
	if (task->mm && settings.user_stacks) {
		struct user_registers user = {};

		registers_of(task, &user);
		record.user_stack = user_stack(ctx, scratch, task->pid, process, &user);
	}
	record.cgroup = sampled_cgroup(task);
	emit(ctx, scratch, &record, bytes_with_cgroup(RECORD_TRACE_BYTES));
	return 1;
}

/*
 * The same for probes, which the kernel gives programs of another kind, and the registers of where the probe is:
 * in user mode or in the kernel.
 *
 * At a probe in user mode the scheduler may take the thread off its CPU meanwhile, and another comes to a
 * probe. That one has no stacks, and the recorder counts its sample as one without.
 */
SEC("kprobe")
int probed(struct user_pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *scratch = scratch_of(OF_PROBES);
	struct trace_record record = { .kind = RECORD_TRACE };
	u64 process = process_of(pid_of(task));

	if (!scratch || !is_traced(process))
		return 1;
	if (__sync_lock_test_and_set(&scratch->is_busy, 1))
		return 1;
	struct user_registers user;
	take_registers(&user, ctx);
	/* Read here: see sampled(). */
	asm volatile("" : "+r"(user.ip), "+r"(user.sp), "+r"(user.fp), "+r"(user.extra), "+r"(user.mode));
	u32 is_user = IS_USER_MODE(user.mode);
	scratch->counts.runs++;
	record.tracepoint = bpf_get_attach_cookie(ctx);
	if (!is_user && settings.kernel_stacks)
		record.kernel_stack = kernel_stack(ctx, scratch);
	if (task->mm && settings.user_stacks) {
		if (!is_user)
			registers_of(task, &user);
		record.user_stack = user_stack(ctx, scratch, task->pid, process, &user);
	}
	record.cgroup = sampled_cgroup(task);
	emit(ctx, scratch, &record, bytes_with_cgroup(RECORD_TRACE_BYTES));
	__sync_lock_test_and_set(&scratch->is_busy, 0);
	return 1;
}
