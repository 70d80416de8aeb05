/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What our programs see of the kernel: the few fields, helpers and constants that they use, under
 * the kernel's own names. The loader moves the fields to where the running kernel has them (BTF;
 * "compile once, run everywhere"), so that only their names and types have to be right here.
 */
#ifndef WHIT_KERNEL_H
#define WHIT_KERNEL_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define NULL ((void *)0)
#define SEC(name) __attribute__((section(name), used))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define __uint(name, value) int(*name)[value]

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
};

enum {
	BPF_F_MMAPABLE = 1 << 10,
};

struct bpf_perf_event_value {
	u64 counter;
	u64 enabled;
	u64 running;
};

/* The subsystem's number differs from kernel to kernel: core_enum() asks for it. */
enum cgroup_subsys_id {
	perf_event_cgrp_id = 1,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

/* The state of one subsystem in one cgroup; parent is that of the same subsystem. */
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
	int id;
	u64 serial_nr;
};

/* The cgroups of a task, one state for each subsystem. */
struct css_set {
	struct cgroup_subsys_state *subsys[1];
};

struct task_struct {
	struct css_set *cgroups;
};

#pragma clang attribute pop

/* include/uapi/linux/bpf.h, by the number of each helper. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*const bpf_perf_event_read)(void *map, u64 index) = (void *)22;
static long (*const bpf_perf_event_read_value)(void *map, u64 index,
					       struct bpf_perf_event_value *value,
					       u32 size) = (void *)55;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;

/* BPF_ENUMVAL_VALUE of the relocations that clang knows. */
#define core_enum(type, value) __builtin_preserve_enum_value(*(typeof(type) *)value, 1)

#endif
