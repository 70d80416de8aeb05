/*
 * The accounts of a CPU (bpf/cpu_account.h) for tests: reads steps from standard input, each with a time, and writes the
 * accounts to standard output. `b` and `e`: a handler of interrupts begins and ends; `B` and `E`: a softirq does; `r` with
 * the clock of stolen time: a switch, or anything else that reads the account out; `n`: accounts begin.
 */
#include <stdint.h>
#include <stdio.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#define UNWIND_FN static
#define ALWAYS_INLINE inline
#define SEC(name)
#define __uint(name, value) int(*name)[value]
#define BPF_MAP_TYPE_ARRAY 2
#define core_field_exists(field) 1

struct rq {
	u64 prev_steal_time_rq;
};

enum {
	ACCOUNT_HAS_IRQ = 1,
	ACCOUNT_HAS_STOLEN = 2,
};

struct channel_account {
	u64 parts, irq, softirq, stolen;
};

static const struct {
	u32 irq_time;
} settings = { .irq_time = ACCOUNT_HAS_IRQ };

static u64 now;

static u64 bpf_ktime_get_ns(void)
{
	return now;
}

static u32 bpf_get_smp_processor_id(void)
{
	return 0;
}

static void *bpf_map_lookup_elem(void *map, const void *key);

static u32 channel_account(const struct channel_account *account, u64 thread, u64 time)
{
	printf("%llu %llu %llu %llu\n", (unsigned long long)account->parts, (unsigned long long)account->irq,
	       (unsigned long long)account->softirq, (unsigned long long)account->stolen);
	return 1;
}

#include "../../bpf/cpu_account.h"

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	static struct cpu_account account;

	return &account;
}

int main(void)
{
	unsigned long long time, clock;
	char step;

	while (scanf(" %c %llu", &step, &time) == 2) {
		now = time;
		switch (step) {
		case 'b':
			local_timer_begins(NULL);
			break;
		case 'e':
			local_timer_ends(NULL);
			break;
		case 'B':
			softirq_begins(NULL);
			break;
		case 'E':
			softirq_ends(NULL);
			break;
		case 'n':
			begin_account();
			break;
		case 'r': {
			if (scanf("%llu", &clock) != 1)
				return 1;
			struct rq runqueue = { .prev_steal_time_rq = clock };

			if (!record_account(stolen_clock(&runqueue), 1, 1, now))
				return 1;
			/* An empty line behind each. */
			printf("\n");
			break;
		}
		default:
			return 1;
		}
	}
	return 0;
}
