/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The facts of x86-64 that programs need besides those of a walk, which unwind_x86_64.h has. For arm64: arm64.h, which
 * has the same names.
 *
 * Part of kernel.h.
 */
#ifndef WHIT_X86_64_H
#define WHIT_X86_64_H

/* The registers as programs for perf events see them, in user space's form (uapi/asm/ptrace.h). */
struct user_pt_regs {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	u64 orig_ax, ip, cs, flags, sp, ss;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
	unsigned long r15;
	unsigned long orig_ax;
	unsigned long bp;
	unsigned long bx;
	unsigned long r11;
	unsigned long cx;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long ip;
	unsigned long cs;
	unsigned long flags;
	unsigned long sp;
};

#pragma clang attribute pop

/* Registers of both structures. */
#define FIRST_REGISTER r15
#define IP_REGISTER ip
#define SP_REGISTER sp
#define FP_REGISTER bp
#define EXTRA_REGISTER bx
/* The one that says in which mode the CPU was: the code segment. */
#define MODE_REGISTER cs

#define IS_USER_MODE(mode) (((mode) & 3) != 0)
#define IS_64_BIT_MODE(mode) ((mode) == 0x33)

/* A system call: its number and arguments, and whether the thread is in one: the instruction leaves the address behind
 * it and the flags in registers. */
#define CALL_NUMBER(regs) ((regs)->orig_ax)
#define CALL_FIRST(regs) ((regs)->di)
#define CALL_SECOND(regs) ((regs)->si)
#define CALL_THIRD(regs) ((regs)->dx)
#define IS_IN_CALL(regs) ((regs)->cx == (regs)->ip && (regs)->r11 == (regs)->flags)

/* Where the kernel's code begins; its modules and BPF programs lie above. */
#define KERNEL_CODE 0xffffffff80000000ull
/* Return addresses are in the kernel's stacks as they are. */
#define KERNEL_STACKS_ARE_PLAIN 1

/* Calls that wait at the futex that their first argument is the address of. */
#define NR_FUTEX 202
#define NR_FUTEX_WAIT 455

/* Where the kernel keeps the return address that a probe has taken, less the stack pointer behind the return. */
#define PROBED_RETURN_AT (-8)

#endif
