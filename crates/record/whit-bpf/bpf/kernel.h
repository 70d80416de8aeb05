/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs' view of the kernel: the few fields, helpers and constants that they use, under the
 * kernel's own names. The loader moves the fields to where the running kernel has them (BTF;
 * "compile once, run everywhere"), so that only their names and types have to be right here.
 */
#ifndef WHIT_KERNEL_H
#define WHIT_KERNEL_H

typedef unsigned char u8;
typedef short s16;
typedef unsigned short u16;
typedef int s32;
typedef unsigned int u32;
typedef long long s64;
typedef unsigned long long u64;

#define NULL ((void *)0)
#define SEC(name) __attribute__((section(name), used))
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NOT_INLINE __attribute__((noinline))
#define __uint(name, value) int(*name)[value]
#define __type(name, value) value *name
#define __array(name, value) typeof(value) *name[]
/* A symbol of the kernel; the loader puts in its address. */
#define KERNEL_SYMBOL __attribute__((section(".ksyms")))
#define IF_ANY __attribute__((weak))

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};

enum {
	BPF_F_NO_PREALLOC = 1 << 0,
	BPF_F_MMAPABLE = 1 << 10,
};

struct bpf_perf_event_value {
	u64 counter;
	u64 enabled;
	u64 running;
};

/* bpf_perf_event_output(): the event of the CPU that runs. */
#define BPF_F_CURRENT_CPU 0xffffffffull
/* bpf_get_stack(): frames to leave out at the beginning. */
#define BPF_F_SKIP_FIELD_MASK 0xffull

/* Bytes of a thread's name, with its end. */
#define TASK_COMM_LEN 16

#ifdef __TARGET_ARCH_arm64
#include "arm64.h"
#else
#include "x86_64.h"
#endif

struct bpf_perf_event_data {
	struct user_pt_regs regs;
	u64 sample_period;
	u64 addr;
};

/* The arguments of a program at a raw tracepoint. */
struct bpf_raw_tracepoint_args {
	u64 args[0];
};

/* The subsystem's number differs from kernel to kernel: core_enum() asks for it. */
enum cgroup_subsys_id {
	perf_event_cgrp_id = 1,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct;

enum perf_event_state {
	PERF_EVENT_STATE_OFF = -1,
};

typedef struct {
	u64 counter;
} local64_t;

/* Where an event counts. */
struct perf_event_context {
	/* The thread; NULL for all threads of a CPU. */
	struct task_struct *task;
};

struct perf_event {
	struct perf_event_context *ctx;
	/* Itself in no group; where that is off, all are. */
	struct perf_event *group_leader;
	enum perf_event_state state;
	/* Its count; for an event on a PMU, up to the last read. */
	local64_t count;
	/* When its state or its times changed last. */
	u64 tstamp;
	/* The event that this one was inherited from. */
	struct perf_event *parent;
	u64 id;
};

/* The actual type behind a program's struct bpf_perf_event_data. */
struct bpf_perf_event_data_kern {
	struct perf_event *event;
};

struct kernfs_node {
	u64 id;
};

struct cgroup;

/* The state of one subsystem in one cgroup; parent is that of the same subsystem. */
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	/* Its own state, which is of no subsystem. */
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_subsys_state *subsys[1];
};

/* The cgroups of a task, one state for each subsystem. */
struct css_set {
	struct cgroup_subsys_state *subsys[1];
	/* That of version 2. */
	struct cgroup *dfl_cgrp;
};

/* An address space's part of its own. */
typedef struct {
	/* The kernel's own code for user mode. */
	void *vdso;
} mm_context_t;

struct mm_struct {
	/* Where the program's code begins. */
	unsigned long start_code;
	mm_context_t context;
};

struct super_block {
	/* Signed in no kernel: a device's number. */
	u32 s_dev;
	unsigned long s_magic;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
};

/* Memory that is mapped in one piece. */
struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	unsigned long vm_flags;
	/* In pages, where in the file. */
	unsigned long vm_pgoff;
	struct file *vm_file;
};

struct ns_common {
	/* The namespace's number, as the links in /proc/PID/ns have it. */
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

/* A task's number in one namespace. */
struct upid {
	int nr;
	struct pid_namespace *ns;
};

/* Its numbers in all that it is in, from the outermost on. */
struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct thread_info {
	/* Since Linux 5.16; before, it is the task's. */
	u32 cpu;
};

/* The name of a file in its directory. */
struct qstr {
	/* Changes with the name. */
	u64 hash_len;
	const unsigned char *name;
};

struct dentry {
	struct dentry *d_parent;
	struct qstr d_name;
};

struct vfsmount {
	struct dentry *mnt_root;
};

/* A file system at a directory. */
struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct file {
	/* In an event's file: its struct perf_event. In a socket's: its struct socket. */
	void *private_data;
	struct inode *f_inode;
	struct path f_path;
};

/* A file that an epoll file watches. */
struct epoll_filefd {
	struct file *file;
	int fd;
};

struct list_head {
	struct list_head *next;
};

struct epitem {
	struct list_head rdllink;
	struct epoll_filefd ffd;
};

/* An epoll file, and the files that are ready, the first one first. */
struct eventpoll {
	struct list_head rdllist;
	/* Files that became ready while the others were passed on. */
	struct epitem *ovflist;
};

struct pid;
struct sock;

struct socket {
	struct file *file;
	struct sock *sk;
};

struct in6_addr {};

/* Both ends of a connection; ports and addresses of the peer in the order of the network. */
struct sock_common {
	u64 skc_addrpair;
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u32 skc_portpair;
	u16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};

struct sock {
	struct sock_common __sk_common;
	u16 sk_protocol;
	/* Connections that may wait to be accepted. One that was accepted has that of the socket that listens. */
	u32 sk_max_ack_backlog;
	struct socket *sk_socket;
	/* The process that made the other end. */
	struct pid *sk_peer_pid;
};

/* A local port. */
struct inet_bind_bucket {
	/* -1 for one that connect() has chosen. */
	u8 fastreuse;
};

struct inet_connection_sock {
	struct inet_bind_bucket *icsk_bind_hash;
};

struct sockaddr_un {
	u16 sun_family;
};

/* As the user gave it: `len` bytes. */
struct unix_address {
	int len;
	struct sockaddr_un name[1];
};

struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

/* The run queue of a CPU. */
struct task_struct;

struct rq {
	/* The clock that the kernel times its events by, as it was when the scheduler looked last. */
	u64 clock;
	/* During a switch, the one that comes. */
	struct task_struct *curr;
	/* The clock of stolen time, as it was when the scheduler looked last (CONFIG_PARAVIRT_TIME_ACCOUNTING). */
	u64 prev_steal_time_rq;
};

/* The fair tasks of a CPU; `rq` and `se.cfs_rq` are there where fair tasks may be grouped. */
struct cfs_rq {
	struct rq *rq;
	/* How many of it and of those above have used their quota up; where there are quotas. */
	int throttle_count;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

/* Where the kernel keeps statistics of the scheduler. */
struct sched_info {
	/* When the task came onto its CPU, by the clock of the runqueue. */
	unsigned long long last_arrival;
};

/* A return that a probe waits for. */
struct return_instance {
	/* Where the return address is, which the kernel has replaced. */
	unsigned long stack;
	unsigned long orig_ret_vaddr;
	/* The address was replaced already. */
	u8 chained;
	struct return_instance *next;
};

struct uprobe_task {
	struct return_instance *return_instances;
};

struct task_struct {
	struct thread_info thread_info;
	/* Where kernels have probes in user mode. */
	struct uprobe_task *utask;
	u32 cpu;
	struct css_set *cgroups;
	struct mm_struct *mm;
	u32 __state;
	u32 flags;
	s32 pid;
	s32 tgid;
	s32 prio;
	struct pid *thread_pid;
	struct task_struct *group_leader;
	char comm[TASK_COMM_LEN];
	/* Its kernel stack. */
	void *stack;
	struct files_struct *files;
	/* Whether it runs, and how it ended. Signed in kernels before 7.3, and of another size since: only of numbers without a
	 * sign the loader adapts the size. */
	u32 on_cpu;
	u32 exit_state;
	/* How often it gave its CPU up, and was taken off. */
	unsigned long nvcsw;
	unsigned long nivcsw;
	struct sched_entity se;
	struct sched_info sched_info;
	/* It waits for its cgroup's next quota. Since Linux 6.18. */
	u8 throttled;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

/* Argument of a program that runs for each thread, and once more at the end without one. */
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/* include/uapi/linux/bpf.h, by the number of each helper. */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_prandom_u32)(void) = (void *)7;
static u64 (*const bpf_perf_event_read)(void *map, u64 index) = (void *)22;
static long (*const bpf_perf_event_read_value)(void *map, u64 index,
					       struct bpf_perf_event_value *value,
					       u32 size) = (void *)55;
static long (*const bpf_perf_event_output)(void *ctx, void *map, u64 flags, void *data,
					   u64 size) = (void *)25;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value,
					 u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
/* Since Linux 5.12. */
static u64 (*const bpf_get_socket_cookie)(void *sk) = (void *)46;
static long (*const bpf_get_stack)(void *ctx, void *buf, u32 size, u64 flags) = (void *)67;
static long (*const bpf_probe_read_user)(void *dst, u32 size, const void *src) = (void *)112;
static long (*const bpf_probe_read_kernel)(void *dst, u32 size, const void *src) = (void *)113;
static long (*const bpf_probe_read_kernel_str)(void *dst, u32 size, const void *src) = (void *)115;
static long (*const bpf_seq_write)(struct seq_file *seq, const void *data, u32 size) = (void *)127;
static long (*const bpf_ringbuf_output)(void *ringbuf, void *data, u64 size, u64 flags) = (void *)130;
static void *(*const bpf_ringbuf_reserve)(void *ringbuf, u64 size, u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static long (*const bpf_get_task_stack)(struct task_struct *task, void *buf, u32 size,
					u64 flags) = (void *)141;
/* Since Linux 5.11. */
static void *(*const bpf_task_storage_get)(void *map, struct task_struct *task, void *value,
					   u64 flags) = (void *)156;
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static u64 (*const bpf_get_attach_cookie)(void *ctx) = (void *)174;
static struct pt_regs *(*const bpf_task_pt_regs)(struct task_struct *task) = (void *)175;
/* Since Linux 5.17. */
static long (*const bpf_find_vma)(struct task_struct *task, u64 addr, void *callback_fn,
				  void *callback_ctx, u64 flags) = (void *)180;

/* Since Linux 5.18; for programs that may sleep. */
static long (*const bpf_copy_from_user_task)(void *dst, u32 size, const void *user_ptr,
					     struct task_struct *task, u64 flags) = (void *)191;

/* __builtin_preserve_type_info(): whether the running kernel has a type that goes with ours. */
#define BPF_TYPE_EXISTS 0
/* __builtin_preserve_field_info(): whether the running kernel has a field. */
#define BPF_FIELD_EXISTS 2

/*
 * Has the verifier take an address for that of a kernel's structure: loads through it are direct, and give
 * 0 where there is no memory. Since Linux 6.2; it costs nothing, where a helper that reads costs a call.
 */
extern void *bpf_rdonly_cast(const void *address, u32 type) __attribute__((weak, section(".ksyms")));

#define CAN_LOAD_KERNEL (bpf_rdonly_cast != 0)

/*
 * Loads and stores in the program's order, for readers on other CPUs, and stores for programs that
 * interrupt. x86 keeps loads in their order, and stores; only the compiler must not reorder. Other
 * machines need an atomic instruction, since BPF has no plain ordering before Linux 6.15.
 */
static ALWAYS_INLINE u32 ordered_load(u32 *from)
{
#ifdef __TARGET_ARCH_x86
	asm volatile("" ::: "memory");
	u32 value = *(volatile u32 *)from;
	asm volatile("" ::: "memory");
	return value;
#else
	return __sync_fetch_and_add(from, 0);
#endif
}

static ALWAYS_INLINE void ordered_store(u32 *to, u32 value)
{
#ifdef __TARGET_ARCH_x86
	asm volatile("" ::: "memory");
	*(volatile u32 *)to = value;
	asm volatile("" ::: "memory");
#else
	__sync_lock_test_and_set(to, value);
#endif
}

/* Adds to a number that nobody else writes. */
static ALWAYS_INLINE void ordered_add(u64 *to, u64 value)
{
#ifdef __TARGET_ARCH_x86
	asm volatile("" ::: "memory");
	*(volatile u64 *)to += value;
	asm volatile("" ::: "memory");
#else
	__sync_fetch_and_add(to, value);
#endif
}

/* BPF_TYPE_ID_TARGET of the relocations that clang knows. */
#define kernel_cast(type, address) \
	((type *)bpf_rdonly_cast((const void *)(address), __builtin_btf_type_id(*(type *)0, 1)))

/* A word; only if CAN_LOAD_KERNEL. */
static ALWAYS_INLINE u64 kernel_load(u64 address)
{
	return kernel_cast(struct pt_regs, address)->FIRST_REGISTER;
}

/* BPF_ENUMVAL_VALUE of the relocations that clang knows. */
#define core_enum(type, value) __builtin_preserve_enum_value(*(typeof(type) *)value, 1)
/* Whether the running kernel has a type. */
#define core_type_exists(type) __builtin_preserve_type_info(*(type *)0, BPF_TYPE_EXISTS)
/* Whether the running kernel has a field. */
#define core_field_exists(field) __builtin_preserve_field_info(field, BPF_FIELD_EXISTS)
/* BPF_TYPE_ID_TARGET: the number that the running kernel has for a type. */
#define core_type_id(type) __builtin_btf_type_id(*(typeof(type) *)0, 1)

#endif
