/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Counts events per cgroup without touching the PMU's configuration.
 *
 * The events count for whole CPUs, always. Each CPU has one open account: that of the nearest
 * watched cgroup at or above the cgroup of the running task. When another account is opened, each
 * event is read once. Its count since the previous read belongs to the closed account. While the
 * account stays the same, nothing is read.
 *
 * The count of a cgroup is the sum of the accounts of the watched cgroups at and below it.
 */
#include "cgroup_account.h"
#include "cgroup_maps.h"
#include "cgroup_settle.h"

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
static NOT_INLINE void adopt(struct cpu *cpu, struct task_struct *task)
{
	if (cpu->is_busy)
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
	struct task_struct *previous = (void *)arguments[1];
	if (cpu->task != (u64)previous)
		adopt(cpu, previous);
	cpu->task = (u64)next;
	go_over(cpu, next->cgroups, 1);
	return 0;
}

/*
 * The running task may have been moved to another cgroup. Attached to csd_function_exit, the end of
 * any call from CPU to CPU: perf's part of a move calls the CPU that the task runs on
 * (perf_cgroup_attach() in kernel/events/core.c; __perf_cgroup_move() runs there). Where the kernel
 * does not show such calls, attached to cgroup_attach_task, which shows tasks that move themselves.
 */
SEC("raw_tp")
int moved(void *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu *cpu = this_cpu();

	if (!cpu || !cpu->present)
		return 0;
	if (cpu->task != (u64)task)
		adopt(cpu, task);
	go_over(cpu, task->cgroups, 0);
	return 0;
}

/*
 * (struct cgroup *cgroup, const char *path)
 * A cgroup was made, and no task is in it yet. Its state may be where that of another one was.
 */
SEC("tp_btf/cgroup_mkdir")
int made(u64 *arguments)
{
	struct cgroup *cgroup = (void *)arguments[0];
	u32 subsystem = core_enum(enum cgroup_subsys_id, perf_event_cgrp_id);
	u64 address;

	if (!bpf_probe_read_kernel(&address, sizeof(address), &cgroup->subsys[subsystem]))
		forget(address);
	return 0;
}

/*
 * Attached to cgroup_setup_root and cgroup_destroy_root: a hierarchy is mounted for the first time, or
 * is no more, by which all cgroups of another one may be given new states.
 */
SEC("raw_tp")
int remounted(void *arguments)
{
	for (u32 block = 0; block < BLOCKS_MAX; block++)
		if (forget_block(block))
			break;
	return 0;
}

/*
 * The opener of an event calls it with the event's descriptor and index: finds the event's place in
 * the kernel. The descriptor was put into `events` just before, so it is the descriptor of an
 * event.
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

/*
 * Reads an event of this CPU without giving its count to an account. Returns whether it can be read; the times
 * of an event that another one times are 0. A function by itself, so that the verifier does not look at the
 * rest for each way through it.
 */
NOT_INLINE u32 begin_event(u32 event)
{
	u32 index = bpf_get_smp_processor_id() * settings.events_count + event;
	struct cpu *cpu = this_cpu();

	if (!cpu || event >= EVENTS_MAX || event >= settings.events_count)
		return 0;
	struct seen *seen = &cpu->seen[event];
	u64 *address = bpf_map_lookup_elem(&addresses, &index);

	seen->address = address ? *address : 0;
	seen->stamp = NEVER;
	seen->behind = 0;
	if ((settings.how[event] & (TIMED | CLOCK)) == CLOCK)
		return 0;
	return !bpf_perf_event_read_value(&events, index, &seen->value, sizeof(seen->value));
}

/* All of them; gives those that can be read. Without branches, for the same reason. */
NOT_INLINE u64 begin_events(void)
{
	u64 present = 0, has_times = 0;

	for (u32 i = 0; i < settings.events_count && i < EVENTS_MAX; i++) {
		u64 is_there = begin_event(i) & 1;

		if (settings.how[i] & TIMED)
			has_times = is_there;
		if (settings.how[i] & CLOCK)
			is_there = 1;
		present |= (has_times & is_there) << i;
	}
	return present;
}

/* Called for each CPU before it counts. */
SEC("raw_tp")
int begin(void *arguments)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct cpu *cpu = this_cpu();

	if (!cpu)
		return 1;
	u64 present = begin_events();
	cpu->runqueue = runqueue_of(task);
	cpu->task = (u64)task;
	cpu->set = (u64)task->cgroups;
	cpu->account = account_of(cpu, task->cgroups);
	cpu->owed = NO_ACCOUNT;
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
	if (cpu->task != (u64)task)
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
