/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Wake-ups, with the waker's stacks: recorded when the woken thread is recorded and leaves a wait.
 *
 * Part of stacks.bpf.c.
 */

/* A wake-up by the current thread, or by an interrupt of it. */
struct wake_record {
	u8 kind;
	/* WAKE_HAS_NAME. */
	u8 flags;
	s16 prio;
	/* The woken thread. */
	s32 tid;
	u64 user_stack;
	u64 kernel_stack;
	/* The name of the one that is woken. */
	char comm[TASK_COMM_LEN];
	/* Where it will run. */
	u32 target_cpu;
	/* That of the one that wakes, where it is not recorded itself. */
	char waker_comm[TASK_COMM_LEN];
};

/* As bytes: without and with the waker's name. */
#define RECORD_WAKE_BYTES 44
#define RECORD_WAKE_NAMED_BYTES 60

#define WAKE_HAS_NAME 1

/* The hash of the stack of the kernel, told in the CPU's ring; 0 for none. */
static ALWAYS_INLINE u64 kernel_stack_at_wake(void *ctx, struct scratch *scratch,
					      struct kernel_look *look, struct task_struct *waker)
{
	struct kernel_set *set;
	u64 hash = kernel_again(KERNEL_AT_WAKE, look, waker, &set);

	if (hash && is_announced(NULL, hash)) {
		scratch->counts.kernel_memo_hits++;
		return hash;
	}
	hash = kernel_walk_noted(ctx, look, set);
	if (!hash) {
		scratch->counts.kernel_failures++;
		return 0;
	}
	take_frames(scratch, look->frames, look->frames_count, 0);
	return emit_stack(ctx, scratch, hash);
}

/* A function of its own, as emit_switch() is. */
static __attribute__((noinline)) int emit_wake(u64 *ctx, struct kernel_look *look)
{
	struct task_struct *wakee = (void *)ctx[0], *waker = bpf_get_current_task_btf();
	struct wake_record record = { .kind = RECORD_WAKE };
	u64 process = process_of(pid_of(waker)), size = RECORD_WAKE_BYTES;
	struct scratch *scratch = scratch_of(OF_WAKES);

	if (!scratch)
		return 0;
	u32 tid = tid_of(wakee);
	if (!tid || !is_target(wakee, tid, process_of(pid_of(wakee))))
		return 0;
	scratch->counts.runs++;
	record.prio = wakee->prio;
	record.tid = tid;
	if (__builtin_preserve_field_info(wakee->thread_info.cpu, BPF_FIELD_EXISTS))
		record.target_cpu = wakee->thread_info.cpu;
	else
		record.target_cpu = wakee->cpu;
	bpf_probe_read_kernel(record.comm, TASK_COMM_LEN, &wakee->comm);
	if (!is_target(waker, tid_of(waker), process)) {
		record.flags = WAKE_HAS_NAME;
		bpf_probe_read_kernel(record.waker_comm, TASK_COMM_LEN, &waker->comm);
		size = RECORD_WAKE_NAMED_BYTES;
	}

	/* A process that is not known has neither mappings nor tables. */
	struct user_registers user = {};
	u32 has_user = settings.user_stacks && waker->mm && process;

	if (has_user)
		user_registers_at(waker, registers_address(waker, look), &user);
	if (settings.kernel_stacks)
		record.kernel_stack = kernel_stack_at_wake(ctx, scratch, look, waker);
	if (has_user)
		record.user_stack = user_stack(ctx, scratch, waker->pid, process, &user);
	emit(ctx, scratch, &record, size);
	return 0;
}

/* (struct task_struct *wakee) */
SEC("tp_btf/sched_waking")
int woken(u64 *ctx)
{
	struct task_struct *wakee = (void *)ctx[0], *waker = bpf_get_current_task_btf();
	struct kernel_look *look;
	u32 user = KERNEL_AT_WAKE;
	u64 frame;

	/*
	 * It never left its CPU. Only here may an interrupt come and wake as well, which finds this program
	 * busy on its CPU: so there is nothing done before.
	 */
	if (wakee->pid == waker->pid)
		return 0;
	look = bpf_map_lookup_elem(&kernel_looks, &user);
	if (!look)
		return 0;
	asm volatile("%0 = r10" : "=r"(frame));
	/* Through memory it becomes a number. */
	look->frame = frame;
	return emit_wake(ctx, look);
}
