/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The walk's part for x86-64, where calls push the return address. Part of unwind.h.
 */
#ifndef WHIT_UNWIND_X86_64_H
#define WHIT_UNWIND_X86_64_H

#include "unwind_rule.h"

/* The bits of a return address that are one. */
#define UNWIND_CODE_MASK (~0ull)
/* How far the stack pointer is behind a return, for a function without a frame. */
#define UNWIND_BARE_RETURN_BYTES 8

/* Where the frame pointer is. */
enum {
	UNWIND_FP_SAME = 0,
	UNWIND_FP_AT_CFA = 1,
	UNWIND_FP_AT_FP = 2,
};

/* Words below the frame address at which rbx is, in a rule: 0 where it is still in the register, this where it is
 * lost. See Rbx in crates/code/whit-unwind/src/table/rules.rs. */
#define UNWIND_RBX_SHIFT 10
#define UNWIND_RBX_MASK 63
#define UNWIND_RBX_SLOT_LOST 63

/* Registers in the frame of a signal, from its stack pointer. */
enum {
	UNWIND_SIGNAL_FP = 120,
	UNWIND_SIGNAL_EXTRA = 128,
	UNWIND_SIGNAL_SP = 160,
	UNWIND_SIGNAL_IP = 168,
};

/* The return address of a function without a frame; 0 where it cannot be read. */
static UNWIND_INLINE u64 unwind_bare_return(struct unwind_state *s)
{
	if (unwind_load(s, s->sp))
		return 0;
	unwind_note(s, s->sp, s->value);
	return s->value;
}

/* Goes on with the caller's rbx. */
static UNWIND_INLINE void unwind_find_rbx(struct unwind_state *s, u64 cfa, u64 rule)
{
	u32 slot = rule >> UNWIND_RBX_SHIFT & UNWIND_RBX_MASK;
	u64 address = cfa - slot * 8;

	if (slot == UNWIND_RBX_SLOT_LOST)
		s->extra_address = UNWIND_EXTRA_LOST;
	/* Below the stack pointer: it was popped already, which the row does not say. */
	else if (slot && address >= s->sp)
		s->extra_address = address;
}

/* The frame address is known: reads the return address below it, and the caller's frame pointer. */
UNWIND_FN u32 unwind_by_cfa(struct unwind_state *s, u64 cfa, u64 rule)
{
	if (!s)
		return UNWIND_BAD_TABLE;
	if (cfa <= s->sp)
		return UNWIND_LOOP;
	u32 reason = unwind_load_above(s, cfa - 8);
	if (reason)
		return reason;
	u64 ip = s->value;
	unwind_note(s, cfa - 8, ip);
	unwind_find_rbx(s, cfa, rule);
	u32 fp_kind = rule >> 8 & 3;
	/* The entry of a linkage table has another use for the field. */
	if (fp_kind == UNWIND_FP_SAME || (rule & 0xff) == UNWIND_BASE_PLT)
		return unwind_arrive(s, ip, cfa);
	u64 address = (u64)(s64)(s16)(rule >> 16) + (fp_kind == UNWIND_FP_AT_CFA ? cfa : s->fp);
	if (fp_kind == UNWIND_FP_AT_FP)
		unwind_use_fp(s);
	/* Below the stack pointer: it was popped already, which the row does not say. */
	if (address >= s->sp) {
		if (unwind_load(s, address))
			return UNWIND_UNREADABLE;
		s->fp = s->value;
		s->fp_address = address;
	}
	return unwind_arrive(s, ip, cfa);
}

/* Goes to the caller by a rule that says where the frame address is. */
static UNWIND_INLINE u32 unwind_by_frame_rule(struct unwind_state *s, u64 rule)
{
	u64 offset = (u64)((s64)rule >> 32);
	u64 addend = (rule >> 10 & 63) * 8;
	u32 reason;

	switch (rule & 0xff) {
	case UNWIND_BASE_SP:
		return unwind_by_cfa(s, s->sp + offset, rule);
	case UNWIND_BASE_FP:
		unwind_use_fp(s);
		return unwind_by_cfa(s, s->fp + offset, rule);
	case UNWIND_BASE_FP_DEREF:
		unwind_use_fp(s);
		offset += s->fp;
		break;
	case UNWIND_BASE_SP_DEREF:
		offset += s->sp;
		break;
	case UNWIND_BASE_RBX:
		if (!unwind_use_extra(s))
			return UNWIND_GO_BY_FP | UNWIND_CFA;
		return unwind_by_cfa(s, s->value + offset, rule);
	case UNWIND_BASE_PLT:
		/* The push is done from this byte of the entry on. */
		offset = (s->ip & 15) >= (rule >> 16 & 15) ? 16 : 8;
		return unwind_by_cfa(s, s->sp + offset, rule);
	default:
		return UNWIND_BAD_TABLE;
	}
	reason = unwind_load_above(s, offset);
	if (reason)
		return reason;
	u64 cfa = s->value;
	unwind_note(s, offset, cfa);
	/* The addend has the bits that say where rbx is. */
	rule |= (u64)UNWIND_RBX_SLOT_LOST << UNWIND_RBX_SHIFT;
	return unwind_by_cfa(s, cfa + addend, rule);
}

#endif
