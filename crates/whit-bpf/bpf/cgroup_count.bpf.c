/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts events per cgroup without touching the PMU's configuration.
 *
 * The events count for whole CPUs, always. Each CPU has an account that is open: that of the
 * nearest watched cgroup at or above the one whose task runs. When another account is to be opened,
 * each event is read once, and what it counted since it was read last belongs to the account that
 * is closed. While the account stays the same, nothing is read.
 *
 * Who wants the count of a cgroup adds up the accounts of the watched cgroups below it.
 */
#include "kernel.h"

/* Bits of a word: the events that a CPU has. */
#define EVENTS_MAX 64
/* Ancestors that are looked at to find a watched one. */
#define DEPTH_MAX 256
/* Accounts fit into what a memo has for them. */
#define ACCOUNT_BITS 16
/* Memos; a cgroup beyond shares one with another, and is looked up anew after that. */
#define MEMOS 65536

/* How an event is read. */
enum how {
	/* What it counted, and how long it was enabled and ran. */
	TIMED,
	/* What it counted. It runs when the timed event before it runs. */
	UNTIMED,
	/* Not at all: it counts the nanoseconds that the timed event before it runs. */
	CLOCK,
	/* As an untimed one; the kernel adds a switch to it right after our program. */
	SWITCHES,
	/* The same, timed. */
	TIMED_SWITCHES,
};

/* No account. */
#define NOBODY 0xffffffff

/* Set before loading. */
const volatile struct {
	u32 events_count;
	u32 accounts_count;
	u8 how[EVENTS_MAX];
} settings = { .events_count = 1, .accounts_count = 1 };

/* [CPU * settings.events_count + event] */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
	__uint(max_entries, 1);
} events SEC(".maps");

/* What happens on a CPU. Of `last`, there are as many as events. */
struct cpu {
	/* The account that is open. */
	u32 account;
	/* Whether a program is at it already; it may be interrupted by another. */
	u32 is_busy;
	/* Addresses of the running task and of its css_set, to be compared and no more. */
	u64 task;
	u64 set;
	/* Bit n: event n can be read here. 0 until begin() ran. */
	u64 present;
	/* Accounts that were closed. */
	u64 changes;
	/* Reads that failed. */
	u64 failed_reads;
	/* Switches that the kernel did not show. */
	u64 unseen;
	/* Cgroups deeper than DEPTH_MAX below any watched one. */
	u64 too_deep;
	/*
	 * The account that was closed by a switch which events of switches do not show yet, or NOBODY.
	 * Theirs is the first one that they show; there is none where the events are off.
	 */
	u32 owed;
	u32 unused;
	/* The events when they were read last. */
	struct bpf_perf_event_value last[EVENTS_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct cpu));
	__uint(max_entries, 1);
} cpus SEC(".maps");

/*
 * What an event has counted for an account on a CPU; the times are those of timed events alone. That
 * one did not run is added up by itself: where events never wait for a counter it stays 0, however a
 * reader meets the three words.
 */
struct count {
	u64 value;
	u64 enabled;
	u64 waited;
};

/* Of these, there are as many as events. */
struct account {
	struct count counts[EVENTS_MAX];
};

/*
 * [CPU * settings.accounts_count + account]; account 0 is of everything that is below no watched
 * cgroup. Who counts reads them where they are, without a call.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct account));
	__uint(max_entries, 1);
} accounts SEC(".maps");

/* Id of a watched cgroup: its account. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(key_size, sizeof(u64));
	__uint(value_size, sizeof(u32));
	__uint(max_entries, 1);
} watched SEC(".maps");

/*
 * The account of each cgroup, watched or not, once it was found. By the subsystem state's id, which
 * is small and dense, and used again after the cgroup is gone; so the memo says whose it is: above
 * the account, the state's serial number, which is not used again.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u64));
	__uint(max_entries, MEMOS);
} memos SEC(".maps");

static ALWAYS_INLINE struct cpu *this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

/* The account of a cgroup: that of the nearest watched one at or above it. */
static ALWAYS_INLINE u32 find_account(struct cpu *cpu, struct cgroup_subsys_state *state)
{
	for (u32 level = 0; level < DEPTH_MAX; level++) {
		if (!state)
			return 0;
		u64 id = state->cgroup->kn->id;
		u32 *account = bpf_map_lookup_elem(&watched, &id);
		if (account)
			return *account;
		state = state->parent;
	}
	cpu->too_deep++;
	return 0;
}

static ALWAYS_INLINE u32 account_of(struct cpu *cpu, struct css_set *set)
{
	u32 subsystem = core_enum(enum cgroup_subsys_id, perf_event_cgrp_id);
	struct cgroup_subsys_state *state = set->subsys[subsystem];
	u64 tag = state->serial_nr << ACCOUNT_BITS;
	u32 index = (u32)state->id % MEMOS;
	u64 *memo = bpf_map_lookup_elem(&memos, &index);

	if (!memo)
		return 0;
	u64 known = *memo;
	if ((known ^ tag) >> ACCOUNT_BITS == 0)
		return (u32)(known & ((1 << ACCOUNT_BITS) - 1));
	u32 account = find_account(cpu, state);
	/* One word: another CPU sees the memo of one cgroup or of the other. */
	*memo = tag | account;
	return account;
}

/* What this CPU has counted for an account. */
static ALWAYS_INLINE struct account *open_account(u32 account)
{
	u32 index = bpf_get_smp_processor_id() * settings.accounts_count + account;

	return bpf_map_lookup_elem(&accounts, &index);
}

static ALWAYS_INLINE u32 is_timed(u8 how)
{
	return how == TIMED || how == TIMED_SWITCHES;
}

static ALWAYS_INLINE u32 is_of_switches(u8 how)
{
	return how == SWITCHES || how == TIMED_SWITCHES;
}

/* Gives the switch that closed another account to that one; the rest is for the open one. */
static ALWAYS_INLINE u64 pay(u32 owed, u32 event, u64 switches)
{
	struct account *account = open_account(owed);

	if (!account || !switches || event >= EVENTS_MAX)
		return switches;
	account->counts[event].value++;
	return switches - 1;
}

/* Adds what events have counted since they were read last to the account that is open. */
static ALWAYS_INLINE void settle(struct cpu *cpu)
{
	u32 first = bpf_get_smp_processor_id() * settings.events_count;
	struct account *account = open_account(cpu->account);
	u64 present = cpu->present;
	u64 ran = 0;

	if (!account)
		return;
	for (u32 i = 0; i < settings.events_count && i < EVENTS_MAX; i++) {
		struct bpf_perf_event_value *last = &cpu->last[i];
		struct count *count = &account->counts[i];
		struct bpf_perf_event_value now;
		u8 how = settings.how[i];
		u64 value;

		if (!(present >> i & 1))
			continue;
		if (how == CLOCK) {
			value = ran;
		} else if (!is_timed(how)) {
			now.counter = bpf_perf_event_read(&events, first + i);
			value = now.counter - last->counter;
			last->counter = now.counter;
		} else if (bpf_perf_event_read_value(&events, first + i, &now, sizeof(now))) {
			cpu->failed_reads++;
			ran = 0;
			continue;
		} else {
			u64 enabled = now.enabled - last->enabled;

			ran = now.running - last->running;
			value = now.counter - last->counter;
			count->enabled += enabled;
			count->waited += enabled - ran;
			*last = now;
		}
		if (is_of_switches(how) && cpu->owed != NOBODY)
			value = pay(cpu->owed, i, value);
		count->value += value;
	}
	cpu->owed = NOBODY;
}

/*
 * Tasks of this css_set run on this CPU from here on. Tasks with the same cgroups share one, which
 * lives as long as one of them; so its address tells a change.
 */
static ALWAYS_INLINE void go_over(struct cpu *cpu, struct css_set *set, u32 is_switch)
{
	if (cpu->set == (u64)set || cpu->is_busy)
		return;
	cpu->is_busy = 1;
	cpu->set = (u64)set;
	u32 account = account_of(cpu, set);
	if (account != cpu->account) {
		settle(cpu);
		if (is_switch)
			cpu->owed = cpu->account;
		cpu->account = account;
		cpu->changes++;
	}
	cpu->is_busy = 0;
}

/*
 * `task` runs on this CPU, and may not be the one that we have seen switched in: some kernels do not
 * show the switches of some tasks. How long each ran is not known then; `task` gets it all.
 */
static ALWAYS_INLINE void adopt(struct cpu *cpu, struct task_struct *task)
{
	if (cpu->task == (u64)task || cpu->is_busy)
		return;
	cpu->unseen++;
	cpu->task = (u64)task;
	cpu->set = (u64)task->cgroups;
	cpu->account = account_of(cpu, task->cgroups);
}

/* (bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state) */
SEC("tp_btf/sched_switch")
int switched(u64 *arguments)
{
	struct task_struct *next = (void *)arguments[2];
	struct cpu *cpu = this_cpu();

	if (!cpu || !cpu->present)
		return 0;
	adopt(cpu, (void *)arguments[1]);
	cpu->task = (u64)next;
	go_over(cpu, next->cgroups, 1);
	return 0;
}

/*
 * The running task may have been moved to another cgroup. Attached to csd_function_exit, the end of
 * any call from CPU to CPU: perf's part of a move calls the CPU that the task runs on
 * (perf_cgroup_attach() in kernel/events/core.c; __perf_cgroup_move() runs there). Where the kernel
 * does not show such calls, to cgroup_attach_task, which tells of tasks that move themselves.
 */
SEC("raw_tp")
int moved(void *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu *cpu = this_cpu();

	if (!cpu || !cpu->present)
		return 0;
	adopt(cpu, task);
	go_over(cpu, task->cgroups, 0);
	return 0;
}

/* Called for each CPU before it counts: what its events show now is nobody's. */
SEC("raw_tp")
int begin(void *arguments)
{
	u32 first = bpf_get_smp_processor_id() * settings.events_count;
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu *cpu = this_cpu();
	u32 is_there = 0, has_times = 0;
	u64 present = 0;

	if (!cpu)
		return 1;
	for (u32 i = 0; i < settings.events_count && i < EVENTS_MAX; i++) {
		if (settings.how[i] != CLOCK)
			is_there = !bpf_perf_event_read_value(&events, first + i, &cpu->last[i],
							      sizeof(cpu->last[i]));
		if (is_timed(settings.how[i]))
			has_times = is_there;
		if (has_times && (is_there || settings.how[i] == CLOCK))
			present |= 1ULL << i;
	}
	cpu->task = (u64)task;
	cpu->set = (u64)task->cgroups;
	cpu->account = account_of(cpu, task->cgroups);
	cpu->owed = NOBODY;
	cpu->present = present;
	return 0;
}

/* Called for each CPU before it is read: brings the account that is open up to date. */
SEC("raw_tp")
int flush(void *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu *cpu = this_cpu();

	if (!cpu || cpu->is_busy)
		return 1;
	adopt(cpu, task);
	cpu->is_busy = 1;
	settle(cpu);
	/* In case a move was not seen. */
	cpu->set = (u64)task->cgroups;
	cpu->account = account_of(cpu, task->cgroups);
	cpu->is_busy = 0;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
