/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The facts of arm64 that programs need besides those of a walk, which unwind_arm64.h has. For x86-64: x86_64.h, which
 * has the same names.
 *
 * Part of kernel.h.
 */
#ifndef WHIT_ARM64_H
#define WHIT_ARM64_H

/* The registers as programs for perf events see them, in user space's form (uapi/asm/ptrace.h). */
struct user_pt_regs {
	u64 regs[31];
	u64 sp;
	u64 pc;
	u64 pstate;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
	u64 regs[31];
	u64 sp;
	u64 pc;
	u64 pstate;
	u64 orig_x0;
	s32 syscallno;
};

#pragma clang attribute pop

/* Registers of both structures. */
#define FIRST_REGISTER regs[0]
#define IP_REGISTER pc
#define SP_REGISTER sp
#define FP_REGISTER regs[29]
#define EXTRA_REGISTER regs[30]
/* The one that says in which mode the CPU was: exception level and width. */
#define MODE_REGISTER pstate

#define IS_USER_MODE(mode) (((mode) & 0xf) == 0)
#define IS_64_BIT_MODE(mode) (((mode) & 0x10) == 0)

/* A system call: its number and arguments, and whether the thread is in one. */
#define CALL_NUMBER(regs) ((regs)->syscallno)
#define CALL_FIRST(regs) ((regs)->orig_x0)
#define CALL_SECOND(regs) ((regs)->regs[1])
#define CALL_THIRD(regs) ((regs)->regs[2])
#define IS_IN_CALL(regs) ((regs)->syscallno >= 0)

/* No address lies above: kernels place themselves anywhere in their half. */
#define KERNEL_CODE (~0ull)
/* Kernels sign return addresses, with another key for each thread. */
#define KERNEL_STACKS_ARE_PLAIN 0

/* Calls that wait at the futex that their first argument is the address of. */
#define NR_FUTEX 98
#define NR_FUTEX_WAIT 455

/* Where the kernel keeps the return address that a probe has taken, less the stack pointer behind the return. */
#define PROBED_RETURN_AT 0

#endif
