/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walks a user stack outwards by compact unwind tables. Shared by the BPF program and by a program for tests, which
 * bring:
 *
 *     UNWIND_FN, UNWIND_INLINE             storage and linkage of functions
 *     int unwind_copy(void *to, u32 size, u64 from)
 *                                          copies from the walked thread's memory; 0 on failure
 *     const struct unwind_mapping *unwind_mapping(u32 number)
 *     const struct unwind_table *unwind_table(u32 number)
 *     u64 unwind_rule(u32 number)          the rules of all tables, one after the other
 *     u32 unwind_word(u32 number)          the words of all tables, one after the other
 *     u32 unwind_learn(struct unwind_state *s, u64 address)
 *                                          finds a mapping that was not announced and holds the
 *                                          address, into s->mapping; 0 on failure
 *     u32 unwind_probed_return(struct unwind_state *s)
 *                                          has s->ip be a return address that a probe has taken; 0 where
 *                                          none has
 *     and the functions of interpreter.h
 *
 * Types of these functions are in unwind_state.h.
 *
 * The verifier of BPF programs looks at each global function once, for all callers. That is why
 * these are small and take numbers, and why there is no limit to frames but UNWIND_FRAMES_MAX.
 * Every loop is bounded.
 */
#ifndef WHIT_UNWIND_H
#define WHIT_UNWIND_H

#include "interpreter.h"
#include "unwind_state.h"

/*
 * Architectures differ in UNWIND_CODE_MASK, UNWIND_SIGNAL_..., unwind_bare_return() and unwind_by_frame_rule().
 */
#ifdef __TARGET_ARCH_arm64
#include "unwind_arm64.h"
#else
#include "unwind_x86_64.h"
#endif

/* Steps of a walk: a run of interpreted frames takes two besides its frames, or as many as it has if it is taken
 * back. */
#define UNWIND_STEPS_MAX 512
/* Steps of a search among 2^14 - 1 mappings, and among the 256 rows of a bucket. */
#define UNWIND_MAPPING_STEPS 14
#define UNWIND_ROW_STEPS 9
/* See BUCKET_BYTES and RULE_BITS in crates/code/whit-unwind/src/table/mod.rs. */
#define UNWIND_BUCKET_BYTES 256
#define UNWIND_RULE_BITS 24
#define UNWIND_RULE_MASK ((1u << UNWIND_RULE_BITS) - 1)

/* Number of the mapping that holds an address, plus one; 0 where none does. */
UNWIND_FN u32 unwind_find_mapping(u32 first, u32 count, u64 address)
{
	const struct unwind_mapping *mapping;
	u32 low = 0, high = count;

	for (u32 step = 0; step < UNWIND_MAPPING_STEPS && low < high; step++) {
		u32 middle = low + (high - low) / 2;

		mapping = unwind_mapping(first + middle);
		if (!mapping)
			return 0;
		if (mapping->start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return 0;
	mapping = unwind_mapping(first + low - 1);
	if (!mapping || address >= mapping->end)
		return 0;
	return first + low;
}

/* Number of the rule of the last row at or before an offset in a bucket, within its table. */
UNWIND_FN u32 unwind_find_rule(u32 index, u32 rows, u32 offset)
{
	u32 low = unwind_word(index), high = unwind_word(index + 1);
	u32 key = offset << UNWIND_RULE_BITS | UNWIND_RULE_MASK;

	for (u32 step = 0; step < UNWIND_ROW_STEPS && low < high; step++) {
		u32 middle = low + (high - low) / 2;

		if (unwind_word(rows + middle) <= key)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return UNWIND_RULE_MASK;
	return unwind_word(rows + low - 1) & UNWIND_RULE_MASK;
}

static UNWIND_INLINE u32 unwind_is_here(const struct unwind_state *s, u64 address)
{
	return address - s->mapping.start < s->mapping.end - s->mapping.start;
}

/* Has s->mapping hold an address; 0 where none does. */
static UNWIND_INLINE u32 unwind_take_mapping(struct unwind_state *s, u64 address)
{
	u32 number = unwind_find_mapping(s->mappings_first, s->mappings_count, address);

	if (!number)
		return unwind_learn(s, address);
	const struct unwind_mapping *mapping = unwind_mapping(number - 1);
	if (!mapping)
		return 0;
	s->mapping = *mapping;
	/* Processes change: by now, the entry may be another's. */
	return unwind_is_here(s, address);
}

/* Has s->mapping and s->table hold an address; 0 where no mapping does. */
UNWIND_FN u32 unwind_go_to(struct unwind_state *s, u64 address)
{
	if (!s)
		return 0;
	if (unwind_is_here(s, address))
		return 1;
	if (!unwind_take_mapping(s, address)) {
		/* Its table is not there. */
		s->mapping.start = s->mapping.end = 0;
		return 0;
	}
	s->table.buckets = s->table.interpreter = 0;
	const struct unwind_table *table = unwind_table(s->mapping.table);
	if (!table)
		return 1;
	if (table->generation == s->mapping.generation)
		s->table = *table;
	else
		s->mapping.table = UNWIND_TABLE_NOT_YET;
	return 1;
}

/* Whether code is mapped in front of an address: it may be a return address. */
static UNWIND_INLINE u32 unwind_is_plausible(struct unwind_state *s, u64 ip)
{
	if (!s || !ip)
		return 0;
	return unwind_go_to(s, ip - 1);
}

/* Without rules: follows the frame pointer if that leads to a plausible place, else gives `reason`. */
UNWIND_FN u32 unwind_by_fp(struct unwind_state *s, u32 reason)
{
	if (!s)
		return UNWIND_BAD_TABLE;
	u64 fp = s->fp;
	unwind_use_fp(s);
	if (fp < s->sp || fp % 8)
		return reason;
	if (unwind_load(s, fp + 8))
		return UNWIND_UNREADABLE;
	u64 ip = s->value & UNWIND_CODE_MASK;
	unwind_note(s, fp + 8, s->value);
	if (!ip)
		return UNWIND_END;
	if (!unwind_is_plausible(s, ip))
		return reason;
	if (unwind_load(s, fp))
		return UNWIND_UNREADABLE;
	s->fp = s->value;
	s->fp_address = fp;
	s->extra_address = UNWIND_EXTRA_LOST;
	return unwind_arrive(s, ip, fp + 16);
}

/* In code that its module says nothing of, most likely assembly: tries a bare return address. */
UNWIND_FN u32 unwind_uncovered(struct unwind_state *s)
{
	if (!s)
		return UNWIND_BAD_TABLE;
	if (s->is_return) {
		unwind_use_fp(s);
		/* Processes begin with a frame pointer of zero. */
		return s->fp ? UNWIND_GO_BY_FP | UNWIND_NO_INFO : UNWIND_END;
	}
	u64 ip = unwind_bare_return(s);
	if (unwind_is_plausible(s, ip)) {
		s->extra_address = UNWIND_EXTRA_LOST;
		return unwind_arrive(s, ip, s->sp + UNWIND_BARE_RETURN_BYTES);
	}
	return UNWIND_GO_BY_FP | UNWIND_NO_INFO;
}

/* Out of the frame of a signal, to the interrupted code. */
UNWIND_FN u32 unwind_signal(struct unwind_state *s)
{
	if (!s)
		return UNWIND_BAD_TABLE;
	u64 sp = s->sp;
	if (unwind_load(s, sp + UNWIND_SIGNAL_FP))
		return UNWIND_UNREADABLE;
	s->fp = s->value;
	s->fp_address = sp + UNWIND_SIGNAL_FP;
	s->extra_address = sp + UNWIND_SIGNAL_EXTRA;
	if (unwind_load(s, sp + UNWIND_SIGNAL_SP))
		return UNWIND_UNREADABLE;
	u64 caller_sp = s->value;
	unwind_note(s, sp + UNWIND_SIGNAL_SP, caller_sp);
	if (unwind_load(s, sp + UNWIND_SIGNAL_IP))
		return UNWIND_UNREADABLE;
	unwind_note(s, sp + UNWIND_SIGNAL_IP, s->value);
	unwind_arrive(s, s->value, caller_sp);
	s->is_return = 0;
	return s->ip ? UNWIND_ON : UNWIND_END;
}

UNWIND_FN u32 unwind_by_rule(struct unwind_state *s, u64 rule)
{
	if (!s)
		return UNWIND_BAD_TABLE;
	switch (rule & 0xff) {
	case UNWIND_BASE_OUTERMOST:
		return UNWIND_END;
	case UNWIND_BASE_SIGNAL:
		return unwind_signal(s);
	case UNWIND_BASE_UNCOVERED:
		return UNWIND_GO_UNCOVERED;
	case UNWIND_BASE_SWITCHED:
		/* The frame pointer leads to another stack, which may lie below this one. */
		s->sp = 0;
		if (s->fp)
			return UNWIND_GO_BY_FP | UNWIND_OUTSIDE;
		unwind_use_fp(s);
		return UNWIND_END;
	case UNWIND_BASE_CFA_EXPRESSION:
	case UNWIND_BASE_CFA_REGISTER:
		return UNWIND_GO_BY_FP | UNWIND_CFA;
	case UNWIND_BASE_RETURN_ADDRESS:
		return UNWIND_GO_BY_FP | UNWIND_RETURN_ADDRESS;
	case UNWIND_BASE_FRAME_POINTER:
		return UNWIND_GO_BY_FP | UNWIND_FRAME_POINTER;
	case UNWIND_BASE_BAD_SIGNAL:
		return UNWIND_GO_BY_FP | UNWIND_SIGNAL;
	default:
		return unwind_by_frame_rule(s, rule);
	}
}

/* Has s->run be of the interpreter whose loop holds an address, if it does. */
UNWIND_FN u32 unwind_enter_loop(struct unwind_state *s, u64 address)
{
	if (!s)
		return 0;
	const struct interpreter *it = unwind_interpreter(s->table.interpreter);
	u64 bias = s->mapping.bias;

	if (!it)
		return 0;
	if (address - bias - it->loop_start >= it->loop_end - it->loop_start &&
	    address - bias - it->cold_start >= it->cold_end - it->cold_start)
		return 0;
	s->run.number = s->table.interpreter;
	s->run.bias = bias;
	return 1;
}

/* Takes the frame in and goes to its caller if a rule says how; else gives why not, or how to go on. */
static UNWIND_INLINE u32 unwind_enter(struct unwind_state *s)
{
	u32 count = s->frames_count;
	if (count >= UNWIND_FRAMES_MAX || count >= s->frames_max)
		return UNWIND_FRAMES_LIMIT;
	/* Inside the call for a return address, which may lie behind the end of its function. */
	u64 address = s->ip - s->is_return;
	u32 is_mapped = unwind_go_to(s, address);
	/* The kernel's page may be known from the list of mappings. */
	u32 has_table = is_mapped && s->mapping.table != UNWIND_TABLE_NONE;
	if (!has_table && s->is_return && unwind_probed_return(s)) {
		address = s->ip - s->is_return;
		is_mapped = unwind_go_to(s, address);
	}
	/* All code that is mapped is known: what lies elsewhere is no return address. */
	if (!is_mapped && s->is_return)
		return UNWIND_NO_MAPPING;
	s->frames[count % UNWIND_FRAMES_ROOM] = s->ip;
	s->frames_count = count + 1;
	s->hash = unwind_mix(s->hash, s->ip);
	if (!is_mapped)
		return UNWIND_GO_BY_FP | UNWIND_NO_MAPPING;
	if (s->table.interpreter)
		s->is_in_loop = unwind_enter_loop(s, address);
	if (s->mapping.table == UNWIND_TABLE_NOT_YET)
		return UNWIND_GO_BY_FP | UNWIND_NO_TABLE_YET;
	if (s->mapping.table == UNWIND_TABLE_NONE)
		return UNWIND_GO_BY_FP | UNWIND_NO_INFO;
	if (s->mapping.table == UNWIND_TABLE_NOT_OPENED)
		return UNWIND_GO_BY_FP | UNWIND_NOT_OPENED;
	u64 offset = address - s->mapping.bias - s->table.start;
	u64 bucket = offset / UNWIND_BUCKET_BYTES;
	if (bucket >= s->table.buckets)
		return UNWIND_GO_UNCOVERED;
	u32 number = unwind_find_rule(s->table.index + bucket, s->table.rows,
				      offset % UNWIND_BUCKET_BYTES);
	if (number == UNWIND_RULE_MASK)
		return UNWIND_GO_UNCOVERED;
	return unwind_by_rule(s, unwind_rule(s->table.rules + number));
}

/* Takes the frame in and goes to its caller; or says why not. */
UNWIND_FN u32 unwind_step(struct unwind_state *s)
{
	if (!s)
		return UNWIND_BAD_TABLE;
	if (s->run.frame)
		return interpreter_step(s);
	u64 sp = s->sp, hash = s->hash;
	s->is_in_loop = 0;
	u32 reason = unwind_enter(s);

	if (reason == UNWIND_GO_UNCOVERED)
		reason = unwind_uncovered(s);
	if (reason & UNWIND_GO_BY_FP)
		reason = unwind_by_fp(s, reason & ~UNWIND_GO_BY_FP);
	if (s->is_in_loop && !reason)
		interpreter_begin(s, sp, hash);
	return reason;
}

/* Prepares a walk; the caller sets registers and mappings. */
static UNWIND_INLINE void unwind_begin(struct unwind_state *s)
{
	s->mapping.start = s->mapping.end = 0;
	s->is_return = 0;
	s->frames_count = 0;
	s->frames_max = UNWIND_FRAMES_MAX;
	s->has_asked = s->has_learned = s->was_busy = 0;
	s->reads_count = 0;
	s->needs_fp = s->needs_extra = 0;
	s->fp_address = UNWIND_FP_FIRST;
	s->extra_address = UNWIND_EXTRA_FIRST;
	s->hash = UNWIND_HASH_SEED;
	s->window_address = UNWIND_NO_WINDOW;
	s->run.frame = s->look_interpreter = s->look_thread = 0;
	s->chain_state = s->interpreter_reason = s->interpreted_count = 0;
}

static UNWIND_INLINE u32 unwind_walk(struct unwind_state *s)
{
	u32 reason;

	for (u32 i = 0; i < UNWIND_STEPS_MAX; i++) {
		reason = unwind_step(s);
		if (reason)
			return reason;
	}
	/* Runs that are taken back again and again. */
	return UNWIND_FRAMES_LIMIT;
}

#endif
