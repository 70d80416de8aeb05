/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state in which a thread leaves its CPU.
 *
 * A waker on another CPU may have changed its state already. Since Linux 5.18 the tracepoint passes the
 * earlier state.
 */
#ifndef WHIT_SWITCH_STATE_H
#define WHIT_SWITCH_STATE_H

#include "kernel.h"

/* The tracepoint's function, as it is since then. */
typedef void (*btf_trace_sched_switch)(void *, _Bool, struct task_struct *, struct task_struct *,
				       unsigned int);

/* `state` is what the thread's field says now. */
static ALWAYS_INLINE u32 switch_state(u64 *ctx, u32 state)
{
	if (__builtin_preserve_type_info(*(btf_trace_sched_switch *)0, BPF_TYPE_EXISTS))
		return ctx[3];
	return state;
}

#endif
