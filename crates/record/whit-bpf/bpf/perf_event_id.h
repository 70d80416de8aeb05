/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The event whose overflow runs the program: the id under which perf itself would write the sample.
 *
 * A cookie of the link would not do: events that threads inherit do not inherit it.
 */
#ifndef WHIT_PERF_EVENT_ID_H
#define WHIT_PERF_EVENT_ID_H

#include "kernel.h"

/* The id of an event, or of the one that it was inherited from; 0 where it cannot be read. */
static ALWAYS_INLINE u64 perf_event_id(void *ctx)
{
	struct bpf_perf_event_data_kern *data = ctx;
	struct perf_event *event, *parent;
	u64 id;

	if (bpf_probe_read_kernel(&event, sizeof(event), &data->event) ||
	    bpf_probe_read_kernel(&parent, sizeof(parent), &event->parent))
		return 0;
	if (parent)
		event = parent;
	return bpf_probe_read_kernel(&id, sizeof(id), &event->id) ? 0 : id;
}

/* Whether an event is one of its CPU, and not of a thread. */
static ALWAYS_INLINE u32 is_of_cpu(void *ctx)
{
	struct bpf_perf_event_data_kern *data = ctx;
	struct perf_event_context *context;
	struct perf_event *event;
	struct task_struct *task;

	if (bpf_probe_read_kernel(&event, sizeof(event), &data->event) ||
	    bpf_probe_read_kernel(&context, sizeof(context), &event->ctx) ||
	    bpf_probe_read_kernel(&task, sizeof(task), &context->task))
		return 0;
	return !task;
}

#endif
