/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The numbers of threads and processes as the recorder and perf's records have them: those of the
 * recorder's PID namespace.
 *
 * Part of stacks.bpf.c.
 */
#ifndef WHIT_TASK_IDS_H
#define WHIT_TASK_IDS_H

/* Namespaces within each other, at most (include/linux/pid_namespace.h). */
#define PID_LEVELS_MAX 32

/* A number in the recorder's namespace, of a `struct pid` that is at an address; 0 where it has none there,
 * or is gone. */
UNWIND_FN u32 number_in_namespace(u64 address)
{
	struct pid *pid = (struct pid *)address;
	struct upid at = {};
	u32 level = 0, number = 0;

	if (bpf_probe_read_kernel(&level, sizeof(level), &pid->level))
		return 0;
	for (u32 up = 0; up < PID_LEVELS_MAX; up++) {
		const void *there = (const void *)&pid->numbers + (u64)(level - up) * sizeof(at);

		if (up > level || bpf_probe_read_kernel(&at, sizeof(at), there) ||
		    bpf_probe_read_kernel(&number, sizeof(number), &at.ns->ns.inum))
			return 0;
		if (number == settings.pid_namespace)
			return at.nr;
	}
	return 0;
}

/* A number as records have it, of a `struct pid` that is at an address. */
static ALWAYS_INLINE u32 number_of_pid(u64 address)
{
	u32 number = 0;

	if (settings.pid_namespace)
		return number_in_namespace(address);
	bpf_probe_read_kernel(&number, sizeof(number), &((struct pid *)address)->numbers[0].nr);
	return number;
}

/* The thread. */
static ALWAYS_INLINE u32 tid_of(struct task_struct *task)
{
	u64 pid = 0;

	if (!settings.pid_namespace)
		return task->pid;
	bpf_probe_read_kernel(&pid, sizeof(pid), &task->thread_pid);
	return number_in_namespace(pid);
}

/* Its process. */
static ALWAYS_INLINE u32 pid_of(struct task_struct *task)
{
	u64 pid = 0;

	if (!settings.pid_namespace)
		return task->tgid;
	bpf_probe_read_kernel(&pid, sizeof(pid), &task->group_leader->thread_pid);
	return number_in_namespace(pid);
}

#endif
