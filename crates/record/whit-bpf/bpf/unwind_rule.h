/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kinds of rules, and the steps by a rule that architectures share. Part of unwind.h.
 */
#ifndef WHIT_UNWIND_RULE_H
#define WHIT_UNWIND_RULE_H

#include "unwind_state.h"

/* Not ends of walks but next steps with a frame: the function asks its caller to make the call, since the
 * kernel limits the depth of calls. */
enum {
	UNWIND_GO_UNCOVERED = 32,
	/* With the reason to end where that leads nowhere. */
	UNWIND_GO_BY_FP = 64,
};

/* Kinds of rules: Base in crates/code/whit-unwind/src/table/rules.rs. */
enum {
	UNWIND_BASE_OUTERMOST = 0,
	UNWIND_BASE_SP = 1,
	UNWIND_BASE_FP = 2,
	UNWIND_BASE_FP_DEREF = 3,
	UNWIND_BASE_SP_DEREF = 4,
	UNWIND_BASE_PLT = 5,
	UNWIND_BASE_SIGNAL = 6,
	UNWIND_BASE_UNCOVERED = 7,
	UNWIND_BASE_CFA_EXPRESSION = 8,
	UNWIND_BASE_CFA_REGISTER = 9,
	UNWIND_BASE_RETURN_ADDRESS = 10,
	UNWIND_BASE_FRAME_POINTER = 11,
	UNWIND_BASE_BAD_SIGNAL = 12,
	UNWIND_BASE_SWITCHED = 13,
	UNWIND_BASE_RBX = 14,
	UNWIND_BASE_LINKED_SP = 15,
	UNWIND_BASE_LINKED_FP = 16,
};

/* The walk depends on the frame pointer, and on the word that it came from. */
static UNWIND_INLINE void unwind_use_fp(struct unwind_state *s)
{
	if (s->fp_address == UNWIND_FP_FIRST)
		s->needs_fp = 1;
	else if (s->fp_address != UNWIND_FP_NOTED)
		unwind_note(s, s->fp_address, s->fp);
	s->fp_address = UNWIND_FP_NOTED;
}

/* Reads the further register into s->value; 0 where it is lost. */
static UNWIND_INLINE u32 unwind_use_extra(struct unwind_state *s)
{
	u64 address = s->extra_address;

	if (address == UNWIND_EXTRA_FIRST) {
		s->needs_extra = 1;
		s->value = s->extra;
		return 1;
	}
	if (address == UNWIND_EXTRA_LOST || unwind_load(s, address))
		return 0;
	unwind_note(s, address, s->value);
	return 1;
}

/* Goes to the caller; fp is set already. */
static UNWIND_INLINE u32 unwind_arrive(struct unwind_state *s, u64 ip, u64 sp)
{
	s->ip = ip;
	s->sp = sp;
	s->is_return = 1;
	return ip ? UNWIND_ON : UNWIND_END;
}

#endif
