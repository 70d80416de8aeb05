/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Adds up how often each handler of non-maskable interrupts had work to do, and how long that took.
 * The interrupts of a PMU are non-maskable; the kernel takes the time by itself.
 *
 * A non-maskable interrupt is not interrupted by another, so that a CPU's sums need no care. Which
 * handlers are perf's is for the reader to know: addresses are not known before, and names never.
 */
#include "kernel.h"

/* Handlers that are told apart; a kernel has less than ten. */
#define HANDLERS_MAX 16

struct handler {
	/* 0 where there is none yet. */
	u64 address;
	/* Calls that handled something. */
	u64 calls;
	u64 time_ns;
	u64 longest_ns;
};

struct cpu {
	struct handler handlers[HANDLERS_MAX];
	/* Calls of handlers beyond. */
	u64 unplaced;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct cpu));
	__uint(max_entries, 1);
} cpus SEC(".maps");

/* (void *handler, s64 delta_ns, int handled): include/trace/events/nmi.h */
SEC("raw_tp/nmi_handler")
int nmi_handled(u64 *arguments)
{
	u64 address = arguments[0];
	long long delta_ns = (long long)arguments[1];
	u64 time_ns = delta_ns > 0 ? (u64)delta_ns : 0;
	u32 zero = 0;

	/* Every handler is asked about every interrupt. */
	if ((int)arguments[2] <= 0)
		return 0;
	struct cpu *cpu = bpf_map_lookup_elem(&cpus, &zero);
	if (!cpu)
		return 0;
#pragma unroll
	for (u32 i = 0; i < HANDLERS_MAX; i++) {
		struct handler *handler = &cpu->handlers[i];

		if (!handler->address)
			handler->address = address;
		if (handler->address != address)
			continue;
		handler->calls++;
		handler->time_ns += time_ns;
		if (time_ns > handler->longest_ns)
			handler->longest_ns = time_ns;
		return 0;
	}
	cpu->unplaced++;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
