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

/* How an event is read: bits. */
enum how {
	/*
	 * How long it was enabled and ran is counted too. One without these times runs when the nearest
	 * timed event before it runs.
	 */
	TIMED = 1,
	/* It counts the nanoseconds that it runs: as long as its times, or those before it, say. */
	CLOCK = 2,
	/* It counts switches; the kernel adds one to it right after our program. */
	SWITCHES = 4,
	/*
	 * The kernel counts it, not a PMU: what it counted is a word of memory. One that is timed
	 * never waits for a counter, nor do those that it times.
	 */
	SOFTWARE = 8,
};

/* No account. */
#define NOBODY 0xffffffff

/* Set before loading. */
const volatile struct {
	u32 events_count;
	u32 accounts_count;
	/* Whether software events are read where the kernel has them, without a call. */
	u32 reads_memory;
	u8 how[EVENTS_MAX];
	/* The first word of each event in an account. */
	u8 word[EVENTS_MAX];
} settings = { .events_count = 1, .accounts_count = 1, .reads_memory = 1 };

/* Has the verifier take an address for that of a kernel's structure, to be read. From 6.2 on. */
extern void *bpf_rdonly_cast(const void *address, u32 type) KERNEL_SYMBOL IF_ANY;

/* [CPU * settings.events_count + event] */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
	__uint(max_entries, 1);
} events SEC(".maps");

/*
 * The same indices: the addresses of software events, each a struct perf_event that `events` keeps
 * from going away. 0: it has to be asked for.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u64));
	__uint(max_entries, 1);
} addresses SEC(".maps");

/* An event when it was read last. */
struct seen {
	struct bpf_perf_event_value value;
	/* Its address, as in `addresses`. */
	u64 address;
	/* Of a timed software event: its `tstamp` when the kernel was asked for its time last. */
	u64 stamp;
	/* Whether its time goes on. */
	u64 is_on;
	/*
	 * How much less it has been enabled than the scheduler's clock shows. That clock may stand a
	 * while before a switch, and the difference comes out too small then: the largest is right.
	 */
	u64 behind;
};

/* No `tstamp`. */
#define NEVER 0xffffffffffffffffull
/* No time. */
#define UNKNOWN 0xffffffffffffffffull

/* What happens on a CPU. Of `seen`, there are as many as events. */
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
	/*
	 * The account that was closed by a switch which events of switches do not show yet, or NOBODY.
	 * Theirs is the first one that they show; there is none where the events are off.
	 */
	u32 owed;
	u32 unused;
	/* The address of its runqueue. */
	u64 runqueue;
	/* Reads that failed. */
	u64 failed_reads;
	/* Switches that the kernel did not show. */
	u64 unseen;
	/* Cgroups deeper than DEPTH_MAX below any watched one. */
	u64 too_deep;
	struct seen seen[EVENTS_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct cpu));
	__uint(max_entries, 1);
} cpus SEC(".maps");

/*
 * What events have counted for an account on a CPU: VALUE of each, at its word, and of timed ones
 * ENABLED and WAITED too. That one did not run is added up by itself: where events never wait for a
 * counter it stays 0, however a reader meets the words.
 */
enum {
	VALUE,
	ENABLED,
	WAITED,
	TIMED_WORDS,
};

/* There are as many words as the events have, and some, to fill whole cache lines. */
struct account {
	u64 words[TIMED_WORDS * EVENTS_MAX];
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

/* Gives the switch that closed another account to that one; the rest is for the open one. */
static ALWAYS_INLINE u64 pay(u32 owed, u32 word, u64 switches)
{
	struct account *account = open_account(owed);

	if (!account || !switches)
		return switches;
	account->words[word]++;
	return switches - 1;
}

/*
 * The clock that events are timed by, as it was when the scheduler began the switch that is under
 * way; 0 where it cannot be seen.
 */
static ALWAYS_INLINE u64 clock_of_switch(struct cpu *cpu)
{
	if (!settings.reads_memory || !cpu->runqueue)
		return 0;
	struct rq *runqueue = bpf_rdonly_cast((void *)cpu->runqueue, core_type_id(struct rq));
	return runqueue->clock;
}

/* The runqueue of the CPU that a task runs on; 0 where the kernel does not say. */
static ALWAYS_INLINE u64 runqueue_of(struct task_struct *task)
{
	if (!core_field_exists(task->se.cfs_rq) || !core_field_exists(task->se.cfs_rq->rq))
		return 0;
	return (u64)task->se.cfs_rq->rq;
}

static ALWAYS_INLINE struct perf_event *in_memory(struct seen *seen)
{
	return bpf_rdonly_cast((void *)seen->address, core_type_id(struct perf_event));
}

static ALWAYS_INLINE u64 count_in_memory(struct seen *seen)
{
	/* What is inside is called differently from machine to machine. */
	return *(const volatile u64 *)&in_memory(seen)->count;
}

/*
 * Asks the kernel how long a software event has been enabled; UNKNOWN where it does not say. A
 * function by itself, which the verifier looks at once, and not for each event again.
 */
NOT_INLINE u64 ask_for_time(u32 event, u64 clock)
{
	u32 index = bpf_get_smp_processor_id() * settings.events_count + event;
	struct bpf_perf_event_value now;
	struct cpu *cpu = this_cpu();

	if (!cpu || !settings.reads_memory || event >= settings.events_count || event >= EVENTS_MAX)
		return UNKNOWN;
	struct seen *seen = &cpu->seen[event];
	struct perf_event *kernels = in_memory(seen);
	u64 stamp = kernels->tstamp;
	if (bpf_perf_event_read_value(&events, index, &now, sizeof(now)))
		return UNKNOWN;
	u64 behind = clock - now.enabled;
	/* Outside of switches: the next one is a chance to be more exact. */
	seen->stamp = clock ? stamp : NEVER;
	seen->is_on = kernels->group_leader->state > PERF_EVENT_STATE_OFF;
	if (clock && (s64)(behind - seen->behind) > 0)
		seen->behind = behind;
	return now.enabled;
}

/*
 * How long a software event has been enabled. The kernel is asked when the event was switched on or
 * off since; else it is the scheduler's clock that has gone on.
 */
static ALWAYS_INLINE u64 time_of_software(struct seen *seen, u32 event, u64 clock)
{
	if (!clock || in_memory(seen)->tstamp != seen->stamp)
		return ask_for_time(event, clock);
	return seen->is_on ? clock - seen->behind : seen->value.enabled;
}

/* Adds what one event has counted since it was read last; false where it cannot be read. */
static ALWAYS_INLINE u32 settle_timed(struct seen *seen, u32 first, u32 event, u64 clock,
				      struct account *account, u64 *value, u64 *ran)
{
	struct bpf_perf_event_value now;
	u32 word = settings.word[event];

	if (settings.how[event] & SOFTWARE && settings.reads_memory && seen->address) {
		now.enabled = time_of_software(seen, event, clock);
		if (now.enabled == UNKNOWN)
			return 0;
		/* The two ways differ by a little; what is too much now is less the next time. */
		if ((s64)(now.enabled - seen->value.enabled) < 0)
			now.enabled = seen->value.enabled;
		now.running = seen->value.running + (now.enabled - seen->value.enabled);
		now.counter = count_in_memory(seen);
	} else if (bpf_perf_event_read_value(&events, first + event, &now, sizeof(now))) {
		return 0;
	}
	u64 enabled = now.enabled - seen->value.enabled;
	*ran = now.running - seen->value.running;
	*value = now.counter - seen->value.counter;
	account->words[word + ENABLED] += enabled;
	account->words[word + WAITED] += enabled - *ran;
	seen->value = now;
	return 1;
}

static ALWAYS_INLINE u64 settle_untimed(struct seen *seen, u8 how, u32 index)
{
	u64 counter, before = seen->value.counter;

	if (how & SOFTWARE && settings.reads_memory && seen->address)
		counter = count_in_memory(seen);
	else
		counter = bpf_perf_event_read(&events, index);
	seen->value.counter = counter;
	return counter - before;
}

/*
 * Adds what events have counted since they were read last to the account that is open. `clock` is
 * that of the switch, 0 outside of switches.
 */
static ALWAYS_INLINE void settle(struct cpu *cpu, u64 clock)
{
	u32 first = bpf_get_smp_processor_id() * settings.events_count;
	struct account *account = open_account(cpu->account);
	u64 present = cpu->present;
	u64 ran = 0;

	if (!account)
		return;
	for (u32 i = 0; i < settings.events_count && i < EVENTS_MAX; i++) {
		struct seen *seen = &cpu->seen[i];
		u32 word = settings.word[i];
		u8 how = settings.how[i];
		u64 value = 0;

		if (!(present >> i & 1))
			continue;
		if (how & TIMED &&
		    !settle_timed(seen, first, i, clock, account, &value, &ran)) {
			cpu->failed_reads++;
			ran = 0;
			continue;
		}
		if (how & CLOCK)
			value = ran;
		else if (!(how & TIMED))
			value = settle_untimed(seen, how, first + i);
		if (how & SWITCHES && cpu->owed != NOBODY)
			value = pay(cpu->owed, word, value);
		account->words[word + VALUE] += value;
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
		settle(cpu, is_switch ? clock_of_switch(cpu) : 0);
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

/*
 * Called by who has opened an event, with its descriptor and its index: finds out where the kernel
 * has it. The descriptor was put into `events` just before, so that it is one of an event.
 */
SEC("raw_tp")
int locate(u64 *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct fdtable *table = task->files->fdt;
	u32 descriptor = arguments[0], index = arguments[1];
	u64 *address = bpf_map_lookup_elem(&addresses, &index);
	struct file *file = NULL;

	if (!address)
		return 1;
	*address = 0;
	if (!settings.reads_memory || descriptor >= table->max_fds ||
	    bpf_probe_read_kernel(&file, sizeof(file), &table->fd[descriptor]) || !file)
		return 0;
	file = bpf_rdonly_cast(file, core_type_id(struct file));
	*address = (u64)file->private_data;
	return 0;
}

/* Called for each CPU before it is given other events. */
SEC("raw_tp")
int halt(void *arguments)
{
	struct cpu *cpu = this_cpu();

	if (cpu)
		cpu->present = 0;
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
		struct seen *seen = &cpu->seen[i];
		u32 index = first + i;
		u64 *address = bpf_map_lookup_elem(&addresses, &index);

		seen->address = address ? *address : 0;
		seen->stamp = NEVER;
		seen->behind = 0;
		if ((settings.how[i] & (TIMED | CLOCK)) != CLOCK)
			is_there = !bpf_perf_event_read_value(&events, index, &seen->value,
							      sizeof(seen->value));
		if (settings.how[i] & TIMED)
			has_times = is_there;
		if (has_times && (is_there || settings.how[i] & CLOCK))
			present |= 1ULL << i;
	}
	cpu->runqueue = runqueue_of(task);
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
	settle(cpu, 0);
	/* In case a move was not seen. */
	cpu->set = (u64)task->cgroups;
	cpu->account = account_of(cpu, task->cgroups);
	cpu->is_busy = 0;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
