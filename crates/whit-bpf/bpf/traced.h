/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stacks of tracepoints' hits. perf writes the sample with the tracepoint's data, under its own filters
 * and for its own targets, right behind this program; whoever reads the ring joins the two.
 *
 * Part of stacks.bpf.c.
 */

/* The stacks of a hit that the current thread is at. */
struct tell_trace {
	u8 kind;
	u8 unused;
	u16 unused_too;
	/* The kernel's number of the tracepoint. */
	u32 tracepoint;
	u64 user_stack;
	u64 kernel_stack;
	u32 unused_at_last;
};

#define TELL_TRACE_BYTES 28

/* Where a thread that is in the kernel was in user mode. */
static ALWAYS_INLINE void registers_of(struct task_struct *task, struct user_registers *user)
{
	struct pt_regs *regs = bpf_task_pt_regs(task);

	user->ip = regs->ip;
	user->sp = regs->sp;
	user->fp = regs->bp;
	user->cs = regs->cs;
}

SEC("tracepoint")
int traced(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *scratch = scratch_of(OF_TRACES);
	struct tell_trace record = { .kind = TELL_TRACE };
	u64 process = process_of(task->tgid);

	/* The kernel writes no samples of a tracepoint whose program gives 0, to nobody. */
	if (!scratch || !(settings.is_system_wide || process & PROCESS_IS_TARGET))
		return 1;
	scratch->counts.runs++;
	record.tracepoint = bpf_get_attach_cookie(ctx);
	if (settings.kernel_stacks) {
		u64 hash = kernel_walk(ctx, scratch);

		record.kernel_stack = hash ? tell_stack(ctx, scratch, hash) : 0;
	}
	if (task->mm && settings.user_stacks) {
		struct user_registers user = {};
		u32 tid = task->pid;

		registers_of(task, &user);
		struct memo_set *set = memo_take(tid, user.ip, user.sp);

		record.user_stack = user_stack(ctx, scratch, set, tid, process, &user);
		if (set)
			set->is_busy = 0;
	}
	tell(ctx, scratch, &record, TELL_TRACE_BYTES);
	return 1;
}
