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

/* Accounts that are found without a call, a power of two: by the lower 16 bits of a thread's number. */
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
	/* The lower bits of the time from which waits were sampled when it left. */
	u32 era;
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
static ALWAYS_INLINE u32 has_account(struct task_struct *task)
{
	struct switch_memory *memory;
	u64 process;

	if (settings.is_system_wide)
		return 1;
	memory = switch_memory_of_cpu();
	if (!memory)
		return 0;
	process = process_at_switch(memory, processes_generation(), pid_of(task));
	return is_target(task, tid_of(task), process);
}

/*
 * When a thread leaves its CPU, and when the current one came. The scheduler has both by the clock of the CPU's
 * runqueue, also for switches that some kernels hide. Reading a clock again takes longer than all else here.
 */
static ALWAYS_INLINE u32 has_scheduler_times(struct task_struct *task)
{
	return core_field_exists(task->se.cfs_rq) && core_field_exists(task->se.cfs_rq->rq) &&
	       core_field_exists(task->sched_info.last_arrival);
}

static ALWAYS_INLINE u64 leaves_at(struct task_struct *task)
{
	return has_scheduler_times(task) ? runqueue_of(task)->clock : bpf_ktime_get_ns();
}

static ALWAYS_INLINE u64 came_back_at(struct task_struct *task)
{
	return has_scheduler_times(task) ? task->sched_info.last_arrival : bpf_ktime_get_ns();
}

/* The account at the place of a thread. Another thread may own it. */
static ALWAYS_INLINE struct off_cpu_account *account_at(u32 tid)
{
	/* Threads of a process have numbers in a row: their accounts share no line of a CPU's cache. */
	u32 place = ((tid << 4) | ((tid >> 12) & 15)) % OFF_CPU_ACCOUNTS;

	return bpf_map_lookup_elem(&off_cpu_accounts, &place);
}

/* Whether the account is the thread's, which becomes its owner where there is none. */
static ALWAYS_INLINE u32 owns(struct off_cpu_account *account, u32 tid)
{
	return account->owner == tid ||
	       (!account->owner && !__sync_val_compare_and_swap(&account->owner, 0, tid));
}

/* Whether the thread's account has begun, so that its waits are sampled. A chosen thread may be chosen no more. */
static ALWAYS_INLINE u32 is_known(struct off_cpu_account *account, u32 tid)
{
	return account->owner == tid && account->spent && !settings.chosen_by;
}

/* (bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state) */
SEC("tp_btf/sched_switch")
int off_cpu_began(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1];
	struct off_cpu_account *account;
	u32 state;

	/* The idle thread does not wait, nor does one that could go on (see why_it_leaves()). */
	state = switch_state(ctx, prev->__state) & 0xffff;
	if (!prev->pid || ctx[0] & 1 || !state)
		return 0;
	account = account_at(prev->pid);
	if (!account)
		return 0;
	if (state & TASK_DEAD) {
		/* Its number may be given to a thread that is not recorded. */
		if (account->owner == (u32)prev->pid)
			account->spent = 0;
		return 0;
	}
	if (!is_known(account, prev->pid) && !has_account(prev))
		return 0;
	if (!owns(account, prev->pid))
		account = bpf_task_storage_get(&off_cpu_others, prev, NULL,
					       BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!account)
		return 0;
	if (!account->spent)
		account->spent = 1 + ((u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32()) %
					     settings.off_cpu_period;
	account->left = leaves_at(prev);
	account->era = changes_by(SWITCHES_SINCE);
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
	record.cgroup = sampled_cgroup(task);
	emit(ctx, scratch, &record, bytes_with_cgroup(RECORD_SAMPLE_BYTES));
	return 0;
}

/* (bool is_switch): behind the switch, in the thread that came. Since Linux 6.15. */
SEC("tp_btf/sched_exit_tp")
int off_cpu_ended(u64 *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct off_cpu_account *account;
	u64 came, spent, periods;

	account = account_at(task->pid);
	if (!account || !account->owner)
		return 0;
	if (account->owner != (u32)task->pid)
		account = bpf_task_storage_get(&off_cpu_others, task, NULL, 0);
	if (!account || !account->left)
		return 0;
	/* While nobody sampled, the thread may have been back and gone again. */
	if (account->era != (u32)changes_by(SWITCHES_SINCE)) {
		account->left = 0;
		return 0;
	}
	came = came_back_at(task);
	/* Clocks of two CPUs may differ a little. */
	spent = account->spent - 1 + (came > account->left ? came - account->left : 0);
	account->left = 0;
	if (spent < settings.off_cpu_period) {
		account->spent = spent + 1;
		return 0;
	}
	periods = spent / settings.off_cpu_period;
	account->spent = spent - periods * settings.off_cpu_period + 1;
	return emit_off_cpu(ctx, periods * settings.off_cpu_period);
}
