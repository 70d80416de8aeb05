/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Settings and maps of the program that counts cgroups.
 */
#ifndef WHIT_CGROUP_MAPS_H
#define WHIT_CGROUP_MAPS_H

#include "kernel.h"

/* Bits of a word: the events that a CPU has. */
#define EVENTS_MAX 64
/* Ancestors that are looked at to find a watched one. */
#define DEPTH_MAX 256
/* Numbers of accounts fit into the bits that a memo has for them. */
#define ACCOUNT_BITS 16
/* The states of cgroups are at multiples of 1 << STATE_BITS; there is no memo of one that is not. */
#define STATE_BITS 8
/* Places for a memo. */
#define WAYS 2
/*
 * How far they are apart: so many runs of states as the bits of the address say that the smallest
 * table does not look at, spread by a factor (2^32 divided by the golden ratio).
 */
#define RUN_STATES 16
#define WAY_SHIFT 21
#define WAY_FACTOR 2654435761u
/* Memos that are forgotten in one go, and such goes at most. */
#define MEMOS_BLOCK 1024
#define BLOCKS_MAX 512

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
	 * The kernel counts it, not a PMU: its count is a word of memory. A timed event of this kind never
	 * waits for a counter, nor do the events that it times.
	 */
	SOFTWARE = 8,
};

/* No account. */
#define NO_ACCOUNT 0xffffffff

/* Set before loading. */
const volatile struct {
	u32 events_count;
	/* Whether software events are read where the kernel has them, without a call. */
	u32 reads_memory;
	/* Accounts of a CPU, with those that fill the last cache line. */
	u32 accounts_stride;
	/* Words of an account. */
	u32 words_count;
	/* A power of two. */
	u32 memos_count;
	/* The events that something has to be read for, in ascending order. */
	u32 reads_count;
	struct {
		u8 event;
		u8 how;
		/* Where in an account its words begin, and where that of its value is if it has one. */
		u8 times;
		u8 value;
	} reads[EVENTS_MAX];
	/* One for each event. */
	u8 how[EVENTS_MAX];
} settings = { .events_count = 1, .reads_memory = 1, .memos_count = 1 };

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
	/* For a timed software event: its `tstamp` at the last time that the kernel was asked for. */
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

/* The state of a CPU. `seen` has one entry for each event. */
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
	 * The account that was closed by a switch which events of switches do not show yet, or NO_ACCOUNT.
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
 * The counts of events for an account on a CPU. A timed event has ENABLED and, if it may wait for a
 * counter, WAITED. Then comes the value; clocks have none, since these two words give it. WAITED is
 * added up by itself: for an event that never waits it stays 0, even while a reader looks at the
 * words.
 */
enum {
	ENABLED,
	WAITED,
	TIMED_WORDS = 3,
};

/*
 * There are as many words as the events have. Accounts are close together: with very many of them, a
 * switch to another one costs the cache lines and pages that it is on.
 */
struct account {
	u64 words[TIMED_WORDS * EVENTS_MAX];
};

/*
 * [CPU * settings.accounts_stride + account]; account 0 counts all tasks that are below no watched
 * cgroup. User space reads them in place, without a call. No two CPUs share a cache line.
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
 * The account of each cgroup, watched or not, once it was found. The key is the address of its state,
 * which a task's css_set has. So the program reads neither the state nor the cgroup, which are in no
 * cache if there are very many. Above the account stands its owner: the address, without the bits
 * that are the same for all. Later another cgroup may have this address: made() forgets the old one.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u64));
	__uint(max_entries, 1);
} memos SEC(".maps");

static ALWAYS_INLINE struct cpu *this_cpu(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&cpus, &zero);
}

#endif
