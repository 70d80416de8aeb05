/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads events, and adds their counts to the open account.
 */
#ifndef WHIT_CGROUP_SETTLE_H
#define WHIT_CGROUP_SETTLE_H

#include "cgroup_maps.h"

/* An account's counts on this CPU. */
static ALWAYS_INLINE struct account *open_account(u32 account)
{
	u32 index = bpf_get_smp_processor_id() * settings.accounts_stride + account;

	return bpf_map_lookup_elem(&accounts, &index);
}

/*
 * Adds to a word of an account. The verifiers of Linux 5.15 and 6.1 forget the result of comparing a
 * number that is kept on the stack. So the number is compared and used in one register.
 */
static ALWAYS_INLINE u32 add_to(struct account *account, u32 word, u64 value)
{
	u64 at = word;

	asm volatile("" : "+r"(at));
	if (at >= settings.words_count)
		return 0;
	account->words[at] += value;
	return 1;
}

/* Gives the switch that closed another account to that one; the rest is for the open one. */
static ALWAYS_INLINE u64 pay(u32 owed, u32 word, u64 switches)
{
	struct account *account = open_account(owed);

	if (!account || !switches || !add_to(account, word, 1))
		return switches;
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
	/* The field inside has different names on different machines. */
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

/* Adds how long an event was enabled since it was read last; false where it cannot be read. */
static ALWAYS_INLINE u32 settle_timed(struct seen *seen, u32 read, u64 clock,
				      struct account *account, u32 times, u64 *value)
{
	u32 event = settings.reads[read].event;
	u32 index = bpf_get_smp_processor_id() * settings.events_count + event;
	u8 how = settings.reads[read].how;
	struct bpf_perf_event_value now;

	if (how & SOFTWARE && settings.reads_memory && seen->address) {
		now.enabled = time_of_software(seen, event, clock);
		if (now.enabled == UNKNOWN)
			return 0;
		/* The two ways differ a little; an excess now is taken off the next time. */
		if ((s64)(now.enabled - seen->value.enabled) < 0)
			now.enabled = seen->value.enabled;
		now.running = seen->value.running + (now.enabled - seen->value.enabled);
		now.counter = how & CLOCK ? 0 : count_in_memory(seen);
	} else if (bpf_perf_event_read_value(&events, index, &now, sizeof(now))) {
		return 0;
	}
	u64 enabled = now.enabled - seen->value.enabled;
	*value = now.counter - seen->value.counter;
	add_to(account, times + ENABLED, enabled);
	if (!(how & SOFTWARE))
		add_to(account, times + WAITED, enabled - (now.running - seen->value.running));
	seen->value = now;
	return 1;
}

static ALWAYS_INLINE u64 settle_untimed(struct seen *seen, u32 read)
{
	u32 event = settings.reads[read].event;
	u32 index = bpf_get_smp_processor_id() * settings.events_count + event;
	u64 counter, before = seen->value.counter;

	if (settings.reads[read].how & SOFTWARE && settings.reads_memory && seen->address)
		counter = count_in_memory(seen);
	else
		counter = bpf_perf_event_read(&events, index);
	seen->value.counter = counter;
	return counter - before;
}

/*
 * Adds the count of one event since its last read. It is a function of its own, so that the verifier
 * looks at it once, and not for each event again.
 */
NOT_INLINE u32 settle_any(u32 read, u64 clock)
{
	struct cpu *cpu = this_cpu();

	if (!cpu || read >= settings.reads_count || read >= EVENTS_MAX)
		return 0;
	u32 event = settings.reads[read].event, word = settings.reads[read].value;
	struct account *account = open_account(cpu->account);
	u32 times = settings.reads[read].times;
	u8 how = settings.reads[read].how;
	u64 value;

	if (!account || event >= EVENTS_MAX || event >= settings.events_count)
		return 0;
	struct seen *seen = &cpu->seen[event];
	if (!(how & TIMED)) {
		value = settle_untimed(seen, read);
	} else if (!settle_timed(seen, read, clock, account, times, &value)) {
		cpu->failed_reads++;
		return 0;
	}
	if (how & CLOCK)
		return 1;
	if (how & SWITCHES && cpu->owed != NO_ACCOUNT)
		value = pay(cpu->owed, word, value);
	return add_to(account, word, value);
}

/* The same in few steps, where all that it takes is in memory, as nearly always; false where not. */
static ALWAYS_INLINE u32 settle_in_memory(struct cpu *cpu, struct account *account, u32 read,
					  u64 clock)
{
	struct seen *seen = &cpu->seen[settings.reads[read].event];
	u8 how = settings.reads[read].how;

	if (!(how & SOFTWARE) || how & SWITCHES || !settings.reads_memory || !seen->address)
		return 0;
	if (how & TIMED) {
		if (!clock || in_memory(seen)->tstamp != seen->stamp || !seen->is_on)
			return 0;
		s64 enabled = clock - seen->behind - seen->value.enabled;
		if (enabled > 0) {
			account->words[settings.reads[read].times + ENABLED] += enabled;
			seen->value.enabled += enabled;
			seen->value.running += enabled;
		}
	}
	if (how & CLOCK)
		return 1;
	u64 counter = count_in_memory(seen);
	account->words[settings.reads[read].value] += counter - seen->value.counter;
	seen->value.counter = counter;
	return 1;
}

/*
 * Adds what events have counted since they were read last to the account that is open. `clock` is
 * that of the switch, 0 outside of switches.
 */
static ALWAYS_INLINE void settle(struct cpu *cpu, u64 clock)
{
	struct account *account = open_account(cpu->account);
	u32 count = settings.reads_count;
	u64 present = cpu->present;

	if (!account)
		return;
	for (u32 read = 0; read < count && read < EVENTS_MAX; read++) {
		u32 event = settings.reads[read].event;

		if (event >= EVENTS_MAX || !(present >> event & 1))
			continue;
		if (!settle_in_memory(cpu, account, read, clock))
			settle_any(read, clock);
	}
	cpu->owed = NO_ACCOUNT;
}

#endif
