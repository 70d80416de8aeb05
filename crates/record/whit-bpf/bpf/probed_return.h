/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Return addresses that a probe has taken: while a function is probed at its return (uretprobe), its return address is
 * that of a page of the kernel's, and the kernel keeps the true one.
 */
#ifndef WHIT_PROBED_RETURN_H
#define WHIT_PROBED_RETURN_H

#include "unwind_state.h"

/* Returns of a thread that the kernel waits for (MAX_URETPROBE_DEPTH). */
#define PROBED_RETURNS_MAX 64

#define read_field(to, type, address, field) \
	bpf_probe_read_kernel(&(to), sizeof(to), &((type *)(address))->field)

/* Has s->ip be the return address of the frame that the walk has left, if a probe has taken it. The words of the stack do
 * not have it, so that a walk with it is not remembered. */
UNWIND_FN u32 unwind_probed_return(struct unwind_state *s)
{
	struct return_instance *instance = NULL;
	struct uprobe_task *probed = NULL;

	if (!s || !core_field_exists(((struct task_struct *)0)->utask))
		return 0;
	if (read_field(probed, struct task_struct, s->task, utask) || !probed ||
	    read_field(instance, struct uprobe_task, probed, return_instances))
		return 0;
	for (u32 i = 0; i < PROBED_RETURNS_MAX && instance; i++) {
		unsigned long stack = 0, address = 0;
		u8 is_chained = 0;

		if (read_field(stack, struct return_instance, instance, stack) ||
		    read_field(is_chained, struct return_instance, instance, chained) ||
		    read_field(address, struct return_instance, instance, orig_ret_vaddr))
			return 0;
		if (stack == s->sp + PROBED_RETURN_AT && !is_chained) {
			s->ip = address;
			s->reads_count = UNWIND_READS_MAX + 1;
			return 1;
		}
		if (read_field(instance, struct return_instance, instance, next))
			return 0;
	}
	return 0;
}

#endif
