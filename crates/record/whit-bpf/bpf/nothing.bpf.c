/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Does nothing at each switch of tasks: what this costs, any program there does. */
#include "kernel.h"

SEC("tp_btf/sched_switch")
int nothing(u64 *arguments)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
