/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Frames of interpreted functions within a native walk. The including program brings, besides what unwind.h asks for,
 *
 *     const struct interpreter *unwind_interpreter(u32 number)
 *     u32 interpreter_ids(struct unwind_state *s)
 *                                          has s->own_tid be the thread's number as the thread itself has it; 0
 *                                          where it is unknown
 *     u64 interpreter_thread(struct unwind_state *s)
 *     void interpreter_keep_thread(struct unwind_state *s, u64 thread)
 *                                          a memory of which state of the interpreter is the thread's, which may
 *                                          forget and may be wrong
 *     void interpreter_emit(struct unwind_state *s, const struct interpreted *function)
 *                                          a function with a frame in the walk
 *     int interpreter_copy(u64 *to, u64 from)
 *                                          copies INTERPRETER_CODE_WORDS; 0 where all of them are there
 *
 * A native frame within the interpreter's loop begins a *run*: the frames of interpreted functions that this call of
 * the loop executes take the native frame's place, one with each step of the walk. A run ends at the frame that the
 * loop itself made for its beginning, which lies in the native frame. Where it does not, the thread was about to
 * enter or to leave the loop, or the memory is not that of a thread's state: the run is taken back, and the native
 * frame stays. So a run that has an end is never wrong, and its native frame is never lost. A run that reaches the
 * bound of frames is not confirmed: the stack is cut there, and its reason says so.
 */
#ifndef WHIT_INTERPRETER_H
#define WHIT_INTERPRETER_H

#include "interpreter_layout.h"
#include "unwind_state.h"

/* Bits of a frame of an interpreted function: the mark; a hash of its code object's address and identity; the distance
 * of the instruction from the code object, or the largest one where it is longer. The lowest bit is set: readers look at
 * the byte before a return address. */
#define INTERPRETED (1ull << 62)
#define INTERPRETED_HASH_SHIFT 21
#define INTERPRETED_HASH_MASK ((1ull << 40) - 1)
#define INTERPRETED_OFFSET_MAX ((1ull << INTERPRETED_HASH_SHIFT) - 1)
/* States of threads that are looked at for the one of a thread. */
#define INTERPRETER_THREADS_MAX 512
/* Bytes of a frame that are read. */
#define INTERPRETER_FRAME_BYTES 88
/* The bits of the address of a code object: since 3.14 the others are the kind of the reference. */
#define PYTHON_CODE_MASK (~7ull)
/* A frame of a function among the words that a walk depended on: the mark, the interpreter, and the frame's address. */
#define INTERPRETED_FRAME (1ull << 63)
#define INTERPRETED_FRAME_NUMBER_SHIFT 48
#define INTERPRETED_FRAME_NUMBER_MASK 0x7fffull
#define INTERPRETED_FRAME_ADDRESS_MASK ((1ull << INTERPRETED_FRAME_NUMBER_SHIFT) - 1)
/* Why native frames stayed. */
enum interpreter_reason {
	INTERPRETER_FINE = 0,
	/* No state of the interpreter is the thread's. */
	INTERPRETER_NO_THREAD = 1,
	INTERPRETER_UNREADABLE = 2,
	/* The loop was not entered yet, or is left already. */
	INTERPRETER_NOT_ENTERED = 3,
	INTERPRETER_REASONS = 4,
};

/* Whether a walk knows the thread's state. */
enum {
	INTERPRETER_UNKNOWN = 0,
	INTERPRETER_KNOWN = 1,
	INTERPRETER_FAILED = 2,
};

/* The first reason counts: the others may follow from it. */
static UNWIND_INLINE void interpreter_fail(struct unwind_state *s, u32 reason)
{
	if (!s->interpreter_reason)
		s->interpreter_reason = reason;
}

/* Takes the run back: the native frame stays. */
static UNWIND_INLINE u32 interpreter_take_back(struct unwind_state *s, u32 reason)
{
	struct unwind_run *run = &s->run;

	interpreter_fail(s, reason);
	s->frames_count = run->native_count;
	s->frames[run->native_count % UNWIND_FRAMES_ROOM] = run->native_ip;
	s->frames_count++;
	s->hash = unwind_mix(run->native_hash, run->native_ip);
	run->frame = 0;
	return UNWIND_ON;
}

/* Reads a word at an offset into s->value; 0 where there is none. */
static UNWIND_INLINE u32 interpreter_read(struct unwind_state *s, u64 base, u32 offset)
{
	return base && !(base % 8) && !unwind_load(s, base + offset);
}

/* Has the window hold a frame and its neighbours: those of callers mostly lie in front of it. */
static UNWIND_INLINE void interpreter_window(struct unwind_state *s, u64 frame)
{
	u64 start = frame - (UNWIND_WINDOW_BYTES - INTERPRETER_FRAME_BYTES);

	if (frame - s->window_address <= UNWIND_WINDOW_BYTES - INTERPRETER_FRAME_BYTES)
		return;
	s->window_address = unwind_copy(s->window, UNWIND_WINDOW_BYTES, start) ? UNWIND_NO_WINDOW : start;
}

/* How a look at a state of a thread ends. */
enum {
	LOOK_ON = 0,
	LOOK_FOUND = 1,
	LOOK_END = 2,
};

/* Looks at a state, s->look_thread, and goes to the next: of the same interpreter, or of the next. A place that was
 * reached stays so where a program lacks a piece of memory and does the step again. */
UNWIND_FN u32 interpreter_look(struct unwind_state *s, u32 number)
{
	const struct interpreter *it = unwind_interpreter(number);

	if (!s || !it)
		return LOOK_END;
	if (s->look_thread) {
		if (!interpreter_read(s, s->look_thread, it->python.native_thread))
			return LOOK_END;
		if (s->value == s->own_tid)
			return LOOK_FOUND;
		if (!interpreter_read(s, s->look_thread, it->python.next_thread))
			return LOOK_END;
		s->look_thread = s->value;
		return LOOK_ON;
	}
	/* The first one, or the next. */
	if (!s->look_interpreter) {
		if (!interpreter_read(s, it->runtime + s->run.bias, it->python.interpreters))
			return LOOK_END;
	} else if (!interpreter_read(s, s->look_interpreter, it->python.next_interpreter)) {
		return LOOK_END;
	}
	u64 interpreter = s->value;
	if (!interpreter || !interpreter_read(s, interpreter, it->python.threads))
		return LOOK_END;
	s->look_interpreter = interpreter;
	s->look_thread = s->value;
	return LOOK_ON;
}

/* The state of the walked thread; 0 for none. */
static UNWIND_INLINE u64 interpreter_find(struct unwind_state *s, const struct interpreter *it)
{
	u64 kept = interpreter_thread(s);

	/* Memory of a state that is gone may still say so; then a run finds no end. */
	if (interpreter_read(s, kept, it->python.native_thread) && s->value == s->own_tid)
		return kept;
	for (u32 i = 0; i < INTERPRETER_THREADS_MAX; i++) {
		u32 found = interpreter_look(s, s->run.number);

		if (found == LOOK_FOUND) {
			interpreter_keep_thread(s, s->look_thread);
			return s->look_thread;
		}
		if (found == LOOK_END)
			return 0;
	}
	return 0;
}

/* Has s->chain be where the next run begins. */
UNWIND_FN u32 interpreter_know(struct unwind_state *s)
{
	const struct interpreter *it;

	if (!s)
		return 0;
	it = unwind_interpreter(s->run.number);
	s->chain_state = INTERPRETER_FAILED;
	s->interpreter_reason = INTERPRETER_NO_THREAD;
	if (!it || !interpreter_ids(s))
		return 0;
	u64 thread = interpreter_find(s, it);
	if (!thread)
		return 0;
	s->interpreter_reason = INTERPRETER_UNREADABLE;
	if (!interpreter_read(s, thread, it->python.current))
		return 0;
	unwind_note(s, thread + it->python.current, s->value);
	s->chain = s->value;
	if (it->python.has_cframe && !it->python.end_is_function) {
		if (!interpreter_read(s, s->chain, it->python.cframe_frame))
			return 0;
		unwind_note(s, s->chain + it->python.cframe_frame, s->value);
		s->chain = s->value;
	}
	s->chain_state = INTERPRETER_KNOWN;
	s->interpreter_reason = INTERPRETER_FINE;
	return 1;
}

/* A native frame within the loop was taken in, and left to its caller: the part of the stack from `low` to s->sp
 * is its own. `hash` is that without it. */
UNWIND_FN u32 interpreter_begin(struct unwind_state *s, u64 low, u64 hash)
{
	if (!s)
		return 0;
	struct unwind_run *run = &s->run;
	const struct interpreter *it = unwind_interpreter(run->number);

	if (!it)
		return 0;
	if (s->chain_state == INTERPRETER_UNKNOWN)
		interpreter_know(s);
	if (s->chain_state != INTERPRETER_KNOWN)
		return 0;
	u64 frame = s->chain;
	run->low = low;
	run->high = s->sp;
	if (it->python.end_is_function) {
		/* It is the structure on the stack that ties the frames to the native frame. */
		if (frame - low >= run->high - low) {
			interpreter_fail(s, INTERPRETER_NOT_ENTERED);
			return 0;
		}
		if (!interpreter_read(s, frame, it->python.cframe_frame)) {
			interpreter_fail(s, INTERPRETER_UNREADABLE);
			return 0;
		}
		unwind_note(s, frame + it->python.cframe_frame, s->value);
		frame = s->value;
	}
	u32 count = s->frames_count - 1;
	if (!frame || frame % 8 || count >= UNWIND_FRAMES_MAX) {
		interpreter_fail(s, INTERPRETER_NOT_ENTERED);
		return 0;
	}
	run->frame = frame;
	run->native_count = count;
	run->native_ip = s->frames[count % UNWIND_FRAMES_ROOM];
	run->native_hash = hash;
	s->frames_count = count;
	s->hash = hash;
	return 1;
}

/* Ends the run; the next one begins at `chain`. */
static UNWIND_INLINE u32 interpreter_end(struct unwind_state *s, u64 chain)
{
	s->chain = chain;
	if (s->frames_count == s->run.native_count)
		return interpreter_take_back(s, INTERPRETER_NOT_ENTERED);
	s->interpreted_count += s->frames_count - s->run.native_count;
	s->run.frame = 0;
	return UNWIND_ON;
}

/* Has s->value be the number that differs between code objects that one address has in turn: identity() of
 * crates/record/whit-bpf/src/stacks/functions.rs. Without a version it is mixed from the parts and the hash of the name: free
 * memory becomes that of the next object of its size, so that addresses of parts alone do not differ. Gives
 * INTERPRETER_NOT_ENTERED for an object of another type; `type` 0 is that of all. */
UNWIND_FN u32 interpreter_identity(struct unwind_state *s, u32 number, u64 code, u64 type)
{
	const struct interpreter *it = unwind_interpreter(number);
	u64 mixed = UNWIND_HASH_SEED;

	if (!s || !it || !code || code % 8)
		return INTERPRETER_UNREADABLE;
	u64 *words = s->code;

	if (interpreter_copy(words, code + PYTHON_TYPE_AT))
		return INTERPRETER_UNREADABLE;
	if (type && words[PYTHON_TYPE_WORD] != type)
		return INTERPRETER_NOT_ENTERED;
	if (!it->python.has_no_version) {
		s->value = unwind_mix(mixed, words[PYTHON_VERSION_WORD]);
		return INTERPRETER_FINE;
	}
	for (u32 i = PYTHON_PARTS_WORD; i < INTERPRETER_CODE_WORDS; i++) {
		mixed = (mixed ^ words[i]) * UNWIND_HASH_FACTOR;
		/* Unrolled, it takes more stack than a chain of calls has left. */
		__asm__ volatile("" : "+r"(i));
	}
	if (unwind_copy(words, 8, words[PYTHON_NAME_WORD] + PYTHON_HASH_AT))
		return INTERPRETER_UNREADABLE;
	s->value = unwind_mix(mixed, words[0]);
	return INTERPRETER_FINE;
}

/* The sum of the words of a frame that a walk depended on. */
static UNWIND_INLINE u64 interpreter_sum(u64 code, u64 identity, u64 instruction, u64 previous)
{
	return unwind_mix(unwind_mix(unwind_mix(code, identity), instruction), previous);
}

/* Whether the frame at a place that a walk noted is as it was, and its code object is that one still. */
UNWIND_FN u32 interpreter_holds(struct unwind_state *s, u64 noted, u64 sum)
{
	u32 number = noted >> INTERPRETED_FRAME_NUMBER_SHIFT & INTERPRETED_FRAME_NUMBER_MASK;
	u64 frame = noted & INTERPRETED_FRAME_ADDRESS_MASK;
	const struct interpreter *it = unwind_interpreter(number);

	if (!s || !it)
		return 0;
	interpreter_window(s, frame);
	if (!interpreter_read(s, frame, it->python.previous))
		return 0;
	u64 previous = s->value;
	if (!interpreter_read(s, frame, it->python.instruction))
		return 0;
	u64 instruction = s->value;
	if (!interpreter_read(s, frame, it->python.code))
		return 0;
	u64 code = s->value & PYTHON_CODE_MASK;
	if (interpreter_identity(s, number, code, 0))
		return 0;
	return interpreter_sum(code, s->value, instruction, previous) == sum;
}

/* Takes a frame in, of a function at `code` that is at an instruction. */
static UNWIND_INLINE u32 interpreter_take(struct unwind_state *s, const struct interpreter *it, u64 code,
					  u64 instruction, u64 previous)
{
	struct interpreted function = { .code = code, .interpreter = s->run.number };
	u32 count = s->frames_count;

	if (count >= UNWIND_FRAMES_MAX || count >= s->frames_max)
		return UNWIND_FRAMES_LIMIT;
	/* Not through the window, which holds the next frames. A frame that is being made has the parts of an earlier one. */
	u32 reason = interpreter_identity(s, s->run.number, code, it->code_type ? it->code_type + s->run.bias : 0);

	if (reason)
		return interpreter_take_back(s, reason);
	function.identity = s->value;
	if (interpreter_read(s, s->run.frame, it->python.globals))
		function.globals = s->value;
	u64 hash = unwind_mix(code, function.identity) >> 24 & INTERPRETED_HASH_MASK;
	u64 offset = instruction - code;

	if (offset > INTERPRETED_OFFSET_MAX)
		offset = INTERPRETED_OFFSET_MAX;
	u64 frame = INTERPRETED | hash << INTERPRETED_HASH_SHIFT | offset | 1;

	s->frames[count % UNWIND_FRAMES_ROOM] = frame;
	s->frames_count = count + 1;
	s->hash = unwind_mix(s->hash, frame);
	unwind_note(s, INTERPRETED_FRAME | (u64)s->run.number << INTERPRETED_FRAME_NUMBER_SHIFT | s->run.frame,
		    interpreter_sum(code, function.identity, instruction, previous));
	interpreter_emit(s, &function);
	return UNWIND_ON;
}

/* A step within a run. */
UNWIND_FN u32 interpreter_step(struct unwind_state *s)
{
	const struct interpreter *it;

	if (!s)
		return UNWIND_BAD_TABLE;
	it = unwind_interpreter(s->run.number);
	u64 frame = s->run.frame;
	if (!it)
		return interpreter_take_back(s, INTERPRETER_UNREADABLE);
	interpreter_window(s, frame);
	if (!interpreter_read(s, frame, it->python.end_word))
		return interpreter_take_back(s, INTERPRETER_UNREADABLE);
	u32 is_end = (s->value >> (it->python.end_shift & 63) & 0xff) >= it->python.end_least;
	if (!interpreter_read(s, frame, it->python.previous))
		return interpreter_take_back(s, INTERPRETER_UNREADABLE);
	u64 previous = s->value;
	if (is_end && !it->python.end_is_function) {
		unwind_note(s, frame + it->python.previous, previous);
		/* The loop's own frame lies in its native frame. */
		if (frame - s->run.low < s->run.high - s->run.low)
			return interpreter_end(s, previous);
		return interpreter_take_back(s, INTERPRETER_NOT_ENTERED);
	}
	if (!interpreter_read(s, frame, it->python.instruction))
		return interpreter_take_back(s, INTERPRETER_UNREADABLE);
	u64 instruction = s->value;
	if (!interpreter_read(s, frame, it->python.code))
		return interpreter_take_back(s, INTERPRETER_UNREADABLE);
	u32 reason = interpreter_take(s, it, s->value & PYTHON_CODE_MASK, instruction, previous);
	if (reason || !s->run.frame)
		return reason;
	if (is_end) {
		if (!interpreter_read(s, s->chain, it->python.cframe_previous))
			return interpreter_take_back(s, INTERPRETER_UNREADABLE);
		return interpreter_end(s, s->value);
	}
	if (!previous || previous % 8)
		return interpreter_take_back(s, INTERPRETER_NOT_ENTERED);
	s->run.frame = previous;
	return UNWIND_ON;
}

#endif
