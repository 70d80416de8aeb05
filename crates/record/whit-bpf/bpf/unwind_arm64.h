/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The walk's part for arm64, where a call leaves the return address in the link register, and functions may sign it:
 * pointer authentication fills bits above the address. Part of unwind.h.
 */
#ifndef WHIT_UNWIND_ARM64_H
#define WHIT_UNWIND_ARM64_H

#include "unwind_rule.h"

/* The bits of a return address that are one. Programs have no code above 48 bits unless they ask for it by address. */
#define UNWIND_CODE_MASK ((1ull << 48) - 1)
/* How far the stack pointer is behind a return, for a function without a frame. */
#define UNWIND_BARE_RETURN_BYTES 0

/* Where the return address is, in a rule: in the link register, words below the frame address, or behind the frame
 * pointer's place. See ReturnAddress in crates/code/whit-unwind/src/table/rules.rs. */
#define UNWIND_RA_SHIFT 10
#define UNWIND_RA_MASK 63
#define UNWIND_RA_IN_LINK 0
#define UNWIND_RA_BEHIND_FP 63
/* Whether the frame pointer is in memory, at the rule's distance from the frame address. */
#define UNWIND_FP_IS_SAVED(rule) ((rule) >> 8 & 3)

/* Registers in the frame of a signal, from its stack pointer: behind `siginfo` (128 bytes) and the fields of `ucontext`
 * in front of `uc_mcontext` (176) is the fault's address, then x0 to x30, sp and pc. */
enum {
	UNWIND_SIGNAL_FP = 128 + 176 + 8 + 29 * 8,
	UNWIND_SIGNAL_EXTRA = 128 + 176 + 8 + 30 * 8,
	UNWIND_SIGNAL_SP = 128 + 176 + 8 + 31 * 8,
	UNWIND_SIGNAL_IP = 128 + 176 + 8 + 32 * 8,
};

/* The return address of a function without a frame; 0 where it is lost. */
static UNWIND_INLINE u64 unwind_bare_return(struct unwind_state *s)
{
	return unwind_use_extra(s) ? s->value & UNWIND_CODE_MASK : 0;
}

/* The frame address is known. A function without a frame keeps its return address in the link register; it cannot do so
 * twice in a row, since the link register is lost then. */
UNWIND_FN u32 unwind_by_cfa(struct unwind_state *s, u64 cfa, u64 rule)
{
	if (!s)
		return UNWIND_BAD_TABLE;
	u32 slot = rule >> UNWIND_RA_SHIFT & UNWIND_RA_MASK;
	u64 fp_address = cfa + (u64)(s64)(s16)(rule >> 16), address = cfa - slot * 8;
	if (cfa < s->sp || (cfa == s->sp && slot != UNWIND_RA_IN_LINK))
		return UNWIND_LOOP;
	if (slot == UNWIND_RA_IN_LINK) {
		if (!unwind_use_extra(s))
			return UNWIND_RETURN_ADDRESS;
	} else {
		if (slot == UNWIND_RA_BEHIND_FP)
			address = fp_address + 8;
		u32 reason = unwind_load_above(s, address);
		if (reason)
			return reason;
		unwind_note(s, address, s->value);
	}
	u64 ip = s->value & UNWIND_CODE_MASK;
	/* Below the stack pointer: it was loaded already, which the row does not say. */
	if (UNWIND_FP_IS_SAVED(rule) && fp_address >= s->sp) {
		if (unwind_load(s, fp_address))
			return UNWIND_UNREADABLE;
		s->fp = s->value;
		s->fp_address = fp_address;
	}
	s->extra_address = UNWIND_EXTRA_LOST;
	return unwind_arrive(s, ip, cfa);
}

/* Goes to the caller by a rule that says where the frame address is. */
static UNWIND_INLINE u32 unwind_by_frame_rule(struct unwind_state *s, u64 rule)
{
	u64 offset = (u64)((s64)rule >> 32);

	switch (rule & 0xff) {
	case UNWIND_BASE_LINKED_SP:
		return unwind_by_cfa(s, s->sp + offset, rule);
	case UNWIND_BASE_LINKED_FP:
		unwind_use_fp(s);
		return unwind_by_cfa(s, s->fp + offset, rule);
	default:
		return UNWIND_BAD_TABLE;
	}
}

#endif
