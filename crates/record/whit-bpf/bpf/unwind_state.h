/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state of a walk, and the words of memory that it reads: what the walk of native frames (unwind.h) and that of
 * interpreted ones (interpreter.h) share. The including file has UNWIND_FN, UNWIND_INLINE and unwind_copy(), which
 * unwind.h describes.
 */
#ifndef WHIT_UNWIND_STATE_H
#define WHIT_UNWIND_STATE_H

#include "interpreter_layout.h"

/* Most frames of a stack. */
#define UNWIND_FRAMES_MAX 127
/* Room for frames: a power of two. */
#define UNWIND_FRAMES_ROOM 128
/* Words of memory that a walk remembers to have depended on. */
#define UNWIND_READS_MAX 64
#define UNWIND_READS_ROOM 64
/* Bytes of the stack that are copied at once. */
#define UNWIND_WINDOW_BYTES 512
/* Why a walk ended. */
enum unwind_reason {
	/* It goes on. */
	UNWIND_ON = 0,
	/* The outermost frame was reached. */
	UNWIND_END = 1,
	/* Memory could not be read without a fault. */
	UNWIND_UNREADABLE = 2,
	/* The next value lies below the stack pointer. */
	UNWIND_OUTSIDE = 3,
	/* The address lies in no known mapping. */
	UNWIND_NO_MAPPING = 4,
	/* The mapping's table is not loaded yet. */
	UNWIND_NO_TABLE_YET = 5,
	/* Nothing says how to unwind here, and the frame pointer leads nowhere. */
	UNWIND_NO_INFO = 6,
	/* The frame address cannot be said in a rule. */
	UNWIND_CFA = 7,
	/* Neither can where the return address, */
	UNWIND_RETURN_ADDRESS = 8,
	/* the frame pointer, */
	UNWIND_FRAME_POINTER = 9,
	/* or a signal's registers are. */
	UNWIND_SIGNAL = 10,
	/* UNWIND_FRAMES_MAX, or the limit of the walk. */
	UNWIND_FRAMES_LIMIT = 11,
	/* The stack pointer would not grow. */
	UNWIND_LOOP = 12,
	/* A table says what no table says. */
	UNWIND_BAD_TABLE = 13,
	/* The process is not known yet. */
	UNWIND_NO_PROCESS = 14,
	/* 32-bit code. */
	UNWIND_NOT_64_BIT = 15,
	/* The binary could not be opened, and the frame pointer leads nowhere. */
	UNWIND_NOT_OPENED = 16,
	UNWIND_REASONS = 17,
	/* Elements of arrays of counts by reason: a power of two, so that the verifier sees that a
	 * remainder is less. */
	UNWIND_REASONS_ROOM = 32,
};

/* Numbers of tables that are none. */
enum {
	/* There is one, but it is not loaded yet. */
	UNWIND_TABLE_NOT_YET = 0,
	/* There will be none: code without unwind information. */
	UNWIND_TABLE_NONE = 1,
	/* There is none since the binary could not be opened. */
	UNWIND_TABLE_NOT_OPENED = 2,
};

/* unwind_state.fp_address where it is no address. */
enum {
	/* The frame pointer is the one that the walk began with. */
	UNWIND_FP_FIRST = 1,
	/* The walk is known to depend on it. */
	UNWIND_FP_NOTED = 2,
};

/* unwind_state.extra_address where it is no address. */
enum {
	/* It is the one that the walk began with. */
	UNWIND_EXTRA_FIRST = 1,
	/* A frame changed it, and no rule says where it is. */
	UNWIND_EXTRA_LOST = 2,
};

/* unwind_state.window_address where nothing is copied: no aligned address of user mode lies behind it. */
#define UNWIND_NO_WINDOW 0xffff800000000001ull

/* Hashes of stacks. */
#define UNWIND_HASH_SEED 0x243f6a8885a308d3ull
#define UNWIND_HASH_FACTOR 0x9e3779b97f4a7c15ull

/* Executable memory of a process. Those of a process lie in a row, ascending. */
struct unwind_mapping {
	u64 start;
	u64 end;
	/* Actual addresses less this are stated ones. */
	u64 bias;
	u32 table;
	/* That of the table: the number may be another one's by now. */
	u32 generation;
};

struct unwind_table {
	/* Stated address of the first bucket. */
	u64 start;
	u32 buckets;
	/* Numbers of the first word of the index and of the rows, and of the first rule. */
	u32 index;
	u32 rows;
	u32 rules;
	/* The interpreter that the binary has; 0 for none. */
	u32 interpreter;
	/* Another one each time that the number is given out. */
	u32 generation;
};

/* Frames of interpreted functions in the place of a native frame: see interpreter.h. */
struct unwind_run {
	/* The next one; 0 outside of a run. */
	u64 frame;
	/* The native frame: its part of the stack, its address, the hash without it, and its place. */
	u64 low;
	u64 high;
	u64 native_ip;
	u64 native_hash;
	u32 native_count;
	/* The interpreter. */
	u32 number;
	/* Actual addresses of its binary less this are stated ones. */
	u64 bias;
};

struct unwind_read {
	u64 address;
	u64 value;
};

struct unwind_state {
	u64 ip;
	u64 sp;
	u64 fp;
	/* Where the last address was found. */
	struct unwind_mapping mapping;
	struct unwind_table table;
	/* The process's mappings. */
	u32 mappings_first;
	u32 mappings_count;
	/* Whether the kernel was asked for a mapping, whether it said one, and whether it may say one another
	 * time. */
	u32 has_asked;
	u32 has_learned;
	u32 was_busy;
	/* Frames of this walk at most. */
	u32 frames_max;
	/* Whether ip is the address behind a call. */
	u32 is_return;
	u32 frames_count;
	/* Words that the walk depended on; more than UNWIND_READS_MAX are not kept. */
	u32 reads_count;
	/* Whether the walk depended on the frame pointer that it began with. */
	u32 needs_fp;
	/* Where fp was read from. */
	u64 fp_address;
	/* A further register as the walk began with it, and where that of the present frame is. On x86-64 it is rbx, from
	 * which few frame addresses are made. On arm64 it is the link register, which has the return address of a function
	 * without a frame. It is read only where it counts. */
	u64 extra;
	u64 extra_address;
	/* Whether the walk depended on the one that it began with. */
	u32 needs_extra;
	/* The word that was read last. */
	u64 value;
	/* Mixed from the frames. */
	u64 hash;
	/* The walked thread, as a number; its own number of itself; its process. */
	u64 task;
	u32 own_tid;
	u32 pid;
	/* Whether the frame that was taken in last lies in the loop of an interpreter. */
	u32 is_in_loop;
	/* Whether `chain` is known, why native frames stayed, and how many are interpreted. */
	u32 chain_state;
	u32 interpreter_reason;
	u32 interpreted_count;
	/* Where the next run begins. */
	u64 chain;
	/* Where a search for the thread's state is. */
	u64 look_interpreter;
	u64 look_thread;
	struct unwind_run run;
	/* Address of the copied part of the stack. */
	u64 window_address;
	u64 window[UNWIND_WINDOW_BYTES / 8];
	u64 frames[UNWIND_FRAMES_ROOM];
	struct unwind_read reads[UNWIND_READS_ROOM];
	/* The copied part of an interpreted function: the stack has no room for it. */
	u64 code[INTERPRETER_CODE_WORDS];
};

static UNWIND_INLINE u64 unwind_mix(u64 hash, u64 value)
{
	hash = (hash ^ value) * UNWIND_HASH_FACTOR;
	return hash ^ hash >> 32;
}

/* Reads a word into s->value. Most lie in the part of the stack that was copied before. */
UNWIND_FN u32 unwind_load(struct unwind_state *s, u64 address)
{
	if (!s)
		return UNWIND_BAD_TABLE;
	u64 offset = address - s->window_address;
	if (offset > UNWIND_WINDOW_BYTES - 8 || offset % 8) {
		offset = 0;
		s->window_address = address;
		if (unwind_copy(s->window, UNWIND_WINDOW_BYTES, address)) {
			/* The mapping ends before the window does. */
			s->window_address = UNWIND_NO_WINDOW;
			if (unwind_copy(s->window, 8, address))
				return UNWIND_UNREADABLE;
		}
	}
	s->value = s->window[offset / 8 % (UNWIND_WINDOW_BYTES / 8)];
	return UNWIND_ON;
}

/* The same, of the stack of a frame whose stack pointer is s->sp. */
static UNWIND_INLINE u32 unwind_load_above(struct unwind_state *s, u64 address)
{
	return address < s->sp ? UNWIND_OUTSIDE : unwind_load(s, address);
}

/* Remembers that the walk depends on the word at an address. */
static UNWIND_INLINE void unwind_note(struct unwind_state *s, u64 address, u64 value)
{
	u32 count = s->reads_count;

	if (count < UNWIND_READS_MAX) {
		s->reads[count % UNWIND_READS_ROOM].address = address;
		s->reads[count % UNWIND_READS_ROOM].value = value;
	}
	s->reads_count = count + 1;
}

#endif
