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
	u32 unused;
	/* The socket that the waker sends to: as wait_object.h has it. */
	u64 socket[INET_WORDS];
};

/* As bytes: without and with the waker's name. */
#define RECORD_WAKE_BYTES 44
#define RECORD_WAKE_NAMED_BYTES 60
#define RECORD_WAKE_SOCKET_BYTES (64 + INET_WORDS * 8)

#define WAKE_HAS_NAME 1
#define WAKE_HAS_SOCKET 2

/*
 * The socket of the call of a thread, in which a softirq has come: what the thread sends to another one of this machine
 * arrives so. Returns 0 where there is none.
 */
static ALWAYS_INLINE u32 socket_at_wake(struct scratch *scratch, struct task_struct *waker,
					struct kernel_look *look, u64 address, u64 *words)
{
	struct wait_object *object = &scratch->object;
	struct channel_frames *description = (struct channel_frames *)scratch->unwind.frames;
	struct cpu_account *account = account_of_cpu();
	struct call_registers registers;

	if (!address || !account || !account->softirq_since)
		return 0;
	call_registers_at(waker, address, &registers);
	u32 way = registers.is_call && registers.is_64_bit ? way_of_call(registers.call) : 0;

	if (way != CALL_FILE && way != CALL_SEND_FILE)
		return 0;
	u32 descriptor = registers.arguments[0];
	u64 file = file_of_task(number_of(waker, look), descriptor);

	if (!file_object(object, file, descriptor) ||
	    (u8)object->head != OBJECT_INET)
		return 0;
	describe_object(object, description);
	for (u32 at = 0; at < INET_WORDS; at++)
		words[at] = description->words[at];
	return 1;
}

/* The hash of the stack of the kernel, told in the CPU's ring; 0 for none. */
static ALWAYS_INLINE u64 kernel_stack_at_wake(void *ctx, struct scratch *scratch,
					      struct kernel_look *look, struct task_struct *waker)
{
	struct kernel_set *set;
	u64 hash = kernel_again(KERNEL_AT_WAKE, look, waker, &set);

	if (hash && is_announced(NULL, 0, hash)) {
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

	if (has_user) {
		u64 address = registers_address(waker, look);

		user_registers_at(waker, address, &user);
		if (socket_at_wake(scratch, waker, look, address, record.socket)) {
			record.flags |= WAKE_HAS_SOCKET;
			size = RECORD_WAKE_SOCKET_BYTES;
		}
	}
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
