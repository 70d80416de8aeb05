/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Interpreters as the loader describes them, and their functions: what the walk of interpreted frames (interpreter.h)
 * and the programs' side of it (interpreters.h) share.
 */
#ifndef WHIT_INTERPRETER_LAYOUT_H
#define WHIT_INTERPRETER_LAYOUT_H

/* The words of a code object from its type to its table of lines, and the first of these. */
#define INTERPRETER_CODE_WORDS 17
#define PYTHON_TYPE_AT 8
/* Among them: its type, the numbers of its arguments, its version, and its name. */
#define PYTHON_TYPE_WORD 0
#define PYTHON_PARTS_WORD 6
#define PYTHON_VERSION_WORD 10
#define PYTHON_NAME_WORD 14
/* Where a string has its hash. */
#define PYTHON_HASH_AT 24

/* Kinds of interpreters. */
enum {
	INTERPRETER_PYTHON = 1,
};

/* Where CPython has its data (crates/record/whit-bpf/src/stacks/interpreters.rs): offsets in structures. */
struct python {
	/* In _PyRuntimeState, PyInterpreterState and PyThreadState. */
	u32 interpreters;
	u32 next_interpreter;
	u32 threads;
	u32 next_thread;
	u32 native_thread;
	u32 current;
	/* Up to 3.12, `current` leads to a structure on the native stack that leads to the frame. */
	u32 has_cframe;
	u32 cframe_frame;
	u32 cframe_previous;
	/* In _PyInterpreterFrame. */
	u32 previous;
	u32 code;
	u32 instruction;
	u32 globals;
	/* The word with the byte that says that a run ends, and by how many bits that is shifted. */
	u32 end_word;
	u32 end_shift;
	/* The least value of this byte that says so. */
	u32 end_least;
	/* The last frame of a run is a function's; otherwise it is the loop's own. */
	u32 end_is_function;
	/* In PyCodeObject. Up to 3.11, code objects have no version. */
	u32 has_no_version;
	/* The objects that hold its file, name and lines. */
	u32 filename;
	u32 qualname;
	u32 linetable;
};

/* An interpreter, by its binary. */
struct interpreter {
	/* Stated addresses. */
	u64 loop_start;
	u64 loop_end;
	/* The part of the loop that the compiler has put elsewhere; empty where there is none. */
	u64 cold_start;
	u64 cold_end;
	u64 runtime;
	/* The type of code objects; 0 where it is unknown. */
	u64 code_type;
	u32 kind;
	u32 unused;
	struct python python;
};

/* A function with a frame in a walk. */
struct interpreted {
	u64 code;
	u64 identity;
	u64 globals;
	u32 interpreter;
	u32 unused;
};

#endif
