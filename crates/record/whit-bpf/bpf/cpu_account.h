/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The time that a CPU spent in interrupts, and that the hypervisor stole from it.
 *
 * The kernel without CONFIG_IRQ_TIME_ACCOUNTING charges all of it to the thread that was interrupted. Programs at the
 * tracepoints of handlers add their time up, and the switch that ends a run reads out what the CPU spent since the
 * switch before.
 *
 * Part of stacks.bpf.c.
 */
#ifndef WHIT_CPU_ACCOUNT_H
#define WHIT_CPU_ACCOUNT_H

/* Nanoseconds. A line of the cache for each CPU. */
struct cpu_account {
	/* Spent so far. Interrupts within softirqs are interrupts alone. */
	u64 irq;
	u64 softirq;
	/* Since when the CPU is in a handler; 0 where it is in none. */
	u64 irq_since;
	u64 softirq_since;
	/* `irq` at that time. */
	u64 irq_before;
	/* The clock of stolen time when it was read out last; `irq` and `softirq` begin anew there. */
	u64 stolen;
	/* When that was; 0 for never. */
	u64 read_out;
	u64 unused[9];
};

/* [CPU]. The loader gives them their number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct cpu_account));
	__uint(max_entries, 1);
} cpu_accounts SEC(".maps");

static ALWAYS_INLINE struct cpu_account *account_of_cpu(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&cpu_accounts, &cpu);
}

/* The time, and that of all interrupts up to then: one may come between. */
static ALWAYS_INLINE u64 time_and_irq(struct cpu_account *account, u64 *irq)
{
	u64 now;

	*irq = *(volatile u64 *)&account->irq;
	now = bpf_ktime_get_ns();
	if (*(volatile u64 *)&account->irq != *irq) {
		*irq = *(volatile u64 *)&account->irq;
		now = bpf_ktime_get_ns();
	}
	return now;
}

static ALWAYS_INLINE int irq_begins(void)
{
	struct cpu_account *account = account_of_cpu();

	if (account)
		account->irq_since = bpf_ktime_get_ns();
	return 0;
}

static ALWAYS_INLINE int irq_ends(void)
{
	struct cpu_account *account = account_of_cpu();

	if (account && account->irq_since) {
		account->irq += bpf_ktime_get_ns() - account->irq_since;
		account->irq_since = 0;
	}
	return 0;
}

/* Adds the softirq up to now. */
static ALWAYS_INLINE void end_softirq(struct cpu_account *account)
{
	u64 irq, spent = time_and_irq(account, &irq) - account->softirq_since;

	irq -= account->irq_before;
	account->softirq += spent > irq ? spent - irq : 0;
	account->softirq_since = 0;
}

/* The programs at both ends of a handler. The loader leaves out those whose tracepoint the kernel does not have. */
#define IRQ_PROGRAMS(tracepoint)                        \
	SEC("tp_btf/" #tracepoint "_entry")             \
	int tracepoint##_begins(u64 *ctx)               \
	{                                               \
		return irq_begins();                    \
	}                                               \
	SEC("tp_btf/" #tracepoint "_exit")              \
	int tracepoint##_ends(u64 *ctx)                 \
	{                                               \
		return irq_ends();                      \
	}

/* Interrupts of devices, */
IRQ_PROGRAMS(irq_handler)
/* and those of the CPUs themselves (x86). */
IRQ_PROGRAMS(local_timer)
IRQ_PROGRAMS(reschedule)
IRQ_PROGRAMS(call_function)
IRQ_PROGRAMS(call_function_single)
IRQ_PROGRAMS(irq_work)

SEC("tp_btf/softirq_entry")
int softirq_begins(u64 *ctx)
{
	struct cpu_account *account = account_of_cpu();
	u64 irq;

	if (account) {
		account->softirq_since = time_and_irq(account, &irq);
		account->irq_before = irq;
	}
	return 0;
}

SEC("tp_btf/softirq_exit")
int softirq_ends(u64 *ctx)
{
	struct cpu_account *account = account_of_cpu();

	if (account && account->softirq_since)
		end_softirq(account);
	return 0;
}

/* Nothing was read out yet. */
static ALWAYS_INLINE void begin_account(void)
{
	struct cpu_account *account = account_of_cpu();

	if (account) {
		account->irq_since = 0;
		account->softirq_since = 0;
		account->read_out = 0;
	}
}

/* No clock of stolen time. */
#define NO_CLOCK (~0ull)

/* The kernel's clock of stolen time, as it was when the scheduler looked last: at the beginning of a switch. */
static ALWAYS_INLINE u64 stolen_clock(struct rq *runqueue)
{
	if (runqueue && core_field_exists(runqueue->prev_steal_time_rq))
		return runqueue->prev_steal_time_rq;
	return NO_CLOCK;
}

/*
 * Reads the account out, and begins it anew. Returns whether there is something to record: some time, or the first
 * record, which names the parts that are recorded.
 */
static ALWAYS_INLINE u32 read_out(struct cpu_account *account, u64 clock, u64 now,
				  struct channel_account *out)
{
	u64 elapsed, over;

	out->parts = settings.irq_time;
	if (clock != NO_CLOCK)
		out->parts |= ACCOUNT_HAS_STOLEN;
	/* Where softirqs are preempted (PREEMPT_RT), the rest is the thread's. */
	if (account->softirq_since)
		end_softirq(account);
	u32 is_first = !account->read_out;
	elapsed = now - account->read_out;
	out->irq = is_first ? 0 : account->irq;
	out->softirq = is_first ? 0 : account->softirq;
	out->stolen = is_first ? 0 : clock - account->stolen;
	account->irq = 0;
	account->softirq = 0;
	account->stolen = clock;
	account->read_out = now;
	if (out->stolen > elapsed)
		out->stolen = elapsed;
	/* Time that was stolen from a handler is in that of the handler as well. */
	over = out->irq + out->softirq + out->stolen;
	over = over > elapsed ? over - elapsed : 0;
	if (over > out->irq) {
		over -= out->irq;
		out->irq = 0;
		out->softirq -= over > out->softirq ? out->softirq : over;
	} else {
		out->irq -= over;
	}
	return is_first || out->irq || out->softirq || out->stolen;
}

/*
 * Records what the CPU spent since the account before besides a thread: process, and above it the thread; 0 for the idle
 * thread and those that are not recorded. 0 if it does not fit. The verifier looks at it once.
 */
UNWIND_FN u32 record_account(u64 clock, u64 thread, u64 is_recorded, u64 now)
{
	struct cpu_account *account = account_of_cpu();
	struct channel_account out = {};

	if (!account || !read_out(account, clock, now, &out) || !is_recorded)
		return 1;
	return channel_account(&out, thread, now);
}

#endif
