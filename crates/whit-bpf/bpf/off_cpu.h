/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Samples of waits: one for each period of a thread's off-CPU time.
 *
 * A thread that leaves its CPU because it cannot go on notes the time. When it is back, still within the
 * scheduler, the wait is added to the thread's account. A wait that fills a period has its stacks taken
 * there: the kernel's and the user's are as they were when the thread left. The rest of the
 * wait stays in the account. An account begins anywhere in a period, so that a wait's chance of a
 * sample is its share of the period.
 *
 * Loaded where such samples are asked for, and nowhere else. Part of stacks.bpf.c.
 */

/* The id of the samples: `OFF_CPU_ID` of whit-perfdata. */
#define OFF_CPU_EVENT (1ull << 63 | 3)

/* Accounts that are found without a call, a power of two: by the lower bits of a thread's number. */
#define OFF_CPU_ACCOUNTS 65536
/* `task_struct::__state` of a thread that has ended (include/linux/sched.h). */
#define TASK_DEAD 0x80

/* A thread's account. */
struct off_cpu_account {
	/* When it left its CPU; 0 while it is on one, or could be. */
	u64 left;
	/* Off-CPU time that filled no period, and one: 0 stands for an account that has not begun. */
	u64 spent;
	/* The kernel's number of the thread that came first; 0 for none. Threads with this number, which may be
	 * given again, have the account. */
	u32 owner;
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct off_cpu_account));
	__uint(max_entries, OFF_CPU_ACCOUNTS);
} off_cpu_accounts SEC(".maps");

/* Those of other threads. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct off_cpu_account);
} off_cpu_others SEC(".maps");

/* Whether waits of a thread are sampled. */
static ALWAYS_INLINE u32 has_account(struct switch_memory *memory, struct task_struct *task)
{
	u32 pid;

	if (settings.is_system_wide)
		return 1;
	pid = pid_of(task);
	return is_target(task, tid_of(task), process_at_switch(memory, processes_generation(), pid));
}

/* The account at the place of a thread. Another thread may own it. */
static ALWAYS_INLINE struct off_cpu_account *account_at(u32 tid)
{
	u32 place = tid % OFF_CPU_ACCOUNTS;

	return bpf_map_lookup_elem(&off_cpu_accounts, &place);
}

/* Whether the account is the thread's, which becomes its owner where there is none. */
static ALWAYS_INLINE u32 owns(struct off_cpu_account *account, u32 tid)
{
	return account->owner == tid ||
	       (!account->owner && !__sync_val_compare_and_swap(&account->owner, 0, tid));
}

/* (bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state) */
SEC("tp_btf/sched_switch")
int off_cpu_began(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1];
	struct switch_memory *memory = switch_memory_of_cpu();
	u64 now = bpf_ktime_get_ns(), next = ctx[2];
	struct off_cpu_account *account;
	u32 state;

	if (!memory)
		return 0;
	memory->switched = now;
	memory->came = next;
	/* The idle thread does not wait, nor does one that could go on (see why_it_goes()), or has ended. */
	state = switch_state(ctx, prev->__state) & 0xffff;
	if (!prev->pid || ctx[0] & 1 || !state || state & TASK_DEAD || !has_account(memory, prev))
		return 0;
	account = account_at(prev->pid);
	if (account && !owns(account, prev->pid))
		account = bpf_task_storage_get(&off_cpu_others, prev, NULL,
					       BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!account)
		return 0;
	if (!account->spent)
		account->spent = 1 + ((u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32()) %
					     settings.off_cpu_period;
	account->left = now;
	return 0;
}

/* A function of its own: most waits fill no period. */
static __attribute__((noinline)) int emit_off_cpu(u64 *ctx, u64 period)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct scratch *scratch = scratch_of(OF_WAITS);
	struct sample_record record = {
		.kind = RECORD_SAMPLE,
		.period = period,
		.event = OFF_CPU_EVENT,
	};

	if (!scratch)
		return 0;
	scratch->counts.runs++;
	if (settings.kernel_stacks)
		record.kernel_stack = kernel_stack(ctx, scratch);
	if (task->mm && settings.user_stacks) {
		struct user_registers user = {};

		registers_of(task, &user);
		record.user_stack = user_stack(ctx, scratch, tid_of(task), process_of(pid_of(task)), &user);
	}
	emit(ctx, scratch, &record, RECORD_SAMPLE_BYTES);
	return 0;
}

/*
 * When the current thread came: at the switch, or now where that was hidden, as some kernels hide switches
 * out of the idle thread.
 */
static ALWAYS_INLINE u64 came_back(struct task_struct *task)
{
	struct switch_memory *memory = switch_memory_of_cpu();

	if (memory && memory->came == (u64)task)
		return memory->switched;
	return bpf_ktime_get_ns();
}

/* (bool is_switch): behind the switch, in the thread that came. Since Linux 6.15. */
SEC("tp_btf/sched_exit_tp")
int off_cpu_ended(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct off_cpu_account *account;
	u64 spent, periods;

	account = account_at(task->pid);
	if (!account || !account->owner)
		return 0;
	if (account->owner != (u32)task->pid)
		account = bpf_task_storage_get(&off_cpu_others, task, NULL, 0);
	if (!account || !account->left)
		return 0;
	/* While nobody sampled, the thread may have been back and gone again. */
	if (account->left < changes_by(SWITCHES_SINCE)) {
		account->left = 0;
		return 0;
	}
	spent = account->spent - 1 + (came_back(task) - account->left);
	account->left = 0;
	if (spent < settings.off_cpu_period) {
		account->spent = spent + 1;
		return 0;
	}
	periods = spent / settings.off_cpu_period;
	account->spent = spent - periods * settings.off_cpu_period + 1;
	return emit_off_cpu(ctx, periods * settings.off_cpu_period);
}
