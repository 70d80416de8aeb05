/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which account a task belongs to.
 */
#ifndef WHIT_CGROUP_ACCOUNT_H
#define WHIT_CGROUP_ACCOUNT_H

#include "cgroup_maps.h"

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

/*
 * A memo where the state at this address may be. The lower half of the address decides. States lie in
 * runs, one page of the kernel each. Two runs that want the same memos by their first place differ in
 * the upper bits, which give the distance of the second place; so they hardly ever meet again.
 */
static ALWAYS_INLINE u64 *memo_of(u32 address, u32 way)
{
	u32 above = (address >> WAY_SHIFT) * WAY_FACTOR >> 16 | 1;
	u32 index = (address >> STATE_BITS) ^ (way ? above * RUN_STATES : 0);

	index &= settings.memos_count - 1;
	return bpf_map_lookup_elem(&memos, &index);
}

/* The lower half of an address, as a number: the verifier has no other arithmetic on addresses. */
static ALWAYS_INLINE u32 lower_half(const void *address)
{
	u32 half;

	asm("%0 = %1" : "=w"(half) : "w"((u32)(u64)address));
	return half;
}

/* The account of a state that has no memo; it has one then. */
static NOT_INLINE u32 look_up_account(struct cpu *cpu, struct css_set *set)
{
	u32 subsystem = core_enum(enum cgroup_subsys_id, perf_event_cgrp_id);
	u32 account = find_account(cpu, set->subsys[subsystem]);
	u64 address;

	if (bpf_probe_read_kernel(&address, sizeof(address), &set->subsys[subsystem]) ||
	    address % (1 << STATE_BITS))
		return account;
	u64 *memo = memo_of(address, 0), *other = memo_of(address, 1);
	/* Where both are taken, one has to go. */
	if (memo && other && *memo && (!*other || cpu->changes % WAYS))
		memo = other;
	/* One word: another CPU sees the memo of one cgroup or of the other. */
	if (memo)
		*memo = address << (ACCOUNT_BITS - STATE_BITS) | account;
	return account;
}

static ALWAYS_INLINE u32 account_of(struct cpu *cpu, struct css_set *set)
{
	u32 subsystem = core_enum(enum cgroup_subsys_id, perf_event_cgrp_id);
	struct cgroup_subsys_state *state = set->subsys[subsystem];
	u32 address = lower_half(state);

	for (u32 way = 0; way < WAYS; way++) {
		u64 *memo = memo_of(address, way);
		s64 known = memo ? *memo : 0;

		/* The bits that the memo leaves out are equal in all addresses of the kernel. */
		if ((u64)(known >> ACCOUNT_BITS << STATE_BITS) == (u64)state)
			return known & ((1 << ACCOUNT_BITS) - 1);
	}
	return look_up_account(cpu, set);
}

/* Forgets whose state was at an address. */
static ALWAYS_INLINE void forget(u32 address)
{
	for (u32 way = 0; way < WAYS; way++) {
		u64 *memo = memo_of(address, way);

		if (memo)
			*memo = 0;
	}
}

/* Forgets a part of all. Global, for the verifier not to look at each part again. */
NOT_INLINE u32 forget_block(u32 block)
{
	for (u32 i = 0; i < MEMOS_BLOCK; i++) {
		u32 index = block * MEMOS_BLOCK + i;
		u64 *memo = bpf_map_lookup_elem(&memos, &index);

		if (!memo)
			return 1;
		*memo = 0;
	}
	return 0;
}

#endif
