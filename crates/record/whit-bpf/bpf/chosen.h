/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Threads that are chosen by the name of their cgroup, or by their own name. The answer is that of the moment: a thread
 * that moves to another cgroup, or gets another name, is chosen or not from then on.
 *
 * The including file has `settings`.
 */
#ifndef WHIT_CHOSEN_H
#define WHIT_CHOSEN_H

/* Bits of settings.chosen_by. With both, a thread has to pass both. */
#define CHOSEN_BY_CGROUP 1
#define CHOSEN_BY_NAME 2
/* settings.cgroup_subsystem: the hierarchy of version 2. */
#define CGROUP_VERSION_2 0xffffffff
/* Cgroups within each other, at most. */
#define CGROUP_LEVELS_MAX 64

/*
 * By id of a cgroup: whether it is chosen, or below one that is. The loader enters the chosen ones, and programs the
 * others. The kernel uses no id again, and moves no cgroup to another parent.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(key_size, sizeof(u64));
	__uint(value_size, sizeof(u32));
	__uint(max_entries, 1);
} chosen_cgroups SEC(".maps");

/* By name, with zeros behind it. The value means nothing. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(key_size, TASK_COMM_LEN);
	__uint(value_size, sizeof(u32));
	__uint(max_entries, 1);
} chosen_names SEC(".maps");

/* The id of the cgroup of a state; 0 where it cannot be read. */
static ALWAYS_INLINE u64 cgroup_id_of(u64 state)
{
	u64 cgroup = 0, node = 0, id = 0;

	if (!state ||
	    bpf_probe_read_kernel(&cgroup, sizeof(cgroup), &((struct cgroup_subsys_state *)state)->cgroup) ||
	    bpf_probe_read_kernel(&node, sizeof(node), &((struct cgroup *)cgroup)->kn) ||
	    bpf_probe_read_kernel(&id, sizeof(id), &((struct kernfs_node *)node)->id))
		return 0;
	return id;
}

/* Whether the cgroup of a state is chosen, or below one that is. */
UNWIND_FN u32 is_state_chosen(u64 state)
{
	u64 own = cgroup_id_of(state), id = own;
	u32 chosen = 0;

	for (u32 level = 0; level < CGROUP_LEVELS_MAX && id; level++) {
		u32 *known = bpf_map_lookup_elem(&chosen_cgroups, &id);

		if (known) {
			if (id == own)
				return *known;
			chosen = *known;
			break;
		}
		if (bpf_probe_read_kernel(&state, sizeof(state),
					  &((struct cgroup_subsys_state *)state)->parent))
			return 0;
		id = cgroup_id_of(state);
	}
	/* Where it cannot be entered it is looked for again. */
	if (own)
		bpf_map_update_elem(&chosen_cgroups, &own, &chosen, 0);
	return chosen;
}

static ALWAYS_INLINE u32 is_in_chosen_cgroup(struct task_struct *task)
{
	u64 set = 0, state = 0;

	if (bpf_probe_read_kernel(&set, sizeof(set), &task->cgroups) || !set)
		return 0;
	if (settings.cgroup_subsystem == CGROUP_VERSION_2) {
		u64 cgroup = 0;

		bpf_probe_read_kernel(&cgroup, sizeof(cgroup), &((struct css_set *)set)->dfl_cgrp);
		state = cgroup ? (u64)&((struct cgroup *)cgroup)->self : 0;
	} else {
		u32 subsystem = settings.cgroup_subsystem;

		bpf_probe_read_kernel(&state, sizeof(state), &((struct css_set *)set)->subsys[subsystem]);
	}
	return is_state_chosen(state);
}

static ALWAYS_INLINE u32 has_chosen_name(struct task_struct *task)
{
	char name[TASK_COMM_LEN] = {};

	/* Bytes behind the end are not the name's. */
	if (bpf_probe_read_kernel_str(name, sizeof(name), &task->comm) < 0)
		return 0;
	return bpf_map_lookup_elem(&chosen_names, name) != NULL;
}

/* Whether a thread is chosen. By name: its own, or that of its process, which is its first thread's. */
static __attribute__((noinline)) u32 is_chosen(struct task_struct *task)
{
	if (settings.chosen_by & CHOSEN_BY_CGROUP && !is_in_chosen_cgroup(task))
		return 0;
	if (settings.chosen_by & CHOSEN_BY_NAME && !has_chosen_name(task) &&
	    !has_chosen_name(task->group_leader))
		return 0;
	return 1;
}

#endif
