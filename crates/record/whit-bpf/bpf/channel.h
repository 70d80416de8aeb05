/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Records of context switches go through memory that user space maps: a call that writes a record
 * into a perf ring costs more than all other work at a switch. Each CPU has a channel, a ring of
 * words in which records follow each other. One program writes it, one thread reads it. A record
 * that does not fit is counted, and the next record that fits follows a report of the loss.
 */
#ifndef WHIT_CHANNEL_H
#define WHIT_CHANNEL_H

/* A channel begins with words that say how far it is written and read; see crates/record/whit-bpf/src/stacks/channel.rs. */
struct channel {
	/* Words written, since the beginning. */
	u64 head;
	/* Records that did not fit and are not reported yet. */
	u64 lost;
	/* Whether there is a reader, which user space says. Some CPUs may not be recorded. */
	u64 is_open;
	/* `head` when the reader was woken last. */
	u64 rung;
	/* The earliest and the latest time of those records. */
	u64 lost_from;
	u64 lost_to;
	u64 unused[2];
	/* Words read; user space's. */
	u64 tail;
	u64 unused_too[7];
	u64 words[1];
};

/* [CPU]. The loader gives them their size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct channel) + 1023 * sizeof(u64));
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
} channels SEC(".maps");

/* Records begin with a word whose lowest byte is their kind. */
enum {
	/* Bits 8-15: enum unwind_reason; 16-31: how many frames follow; from 32 on: its place. */
	CHANNEL_STACK = 1,
	/* A thread goes. Bits 8-15: flags; 16-31: state; from 32 on: thread. Then the time, and a word of the
	 * process and, above it, 16 bits each, the places of the stacks of user and kernel plus one, or 0.
	 * With SWITCH_HAS_NEXT, then a word of the next thread: process, and above it the thread. With
	 * SWITCH_HAS_FUTEX, then the address of the futex; with SWITCH_HAS_OBJECT instead the place of the
	 * object of the wait. */
	CHANNEL_SWITCH = 2,
	/* Records did not fit. Then their latest time, their number, and their earliest time. */
	CHANNEL_LOST = 3,
	/* A thread comes, and no record describes the one before. From bit 32 on: thread. Then the time,
	 * and the process. */
	CHANNEL_CAME = 4,
	/* As CHANNEL_STACK, the object of a wait: see wait_object.h. */
	CHANNEL_OBJECT = 5,
	/* A thread that runs, and the time that its CPU spent besides it since the account before: see cpu_account.h. Bits 8-15:
	 * parts; from 32 on: thread. Then the time, the process, and the times of the parts. */
	CHANNEL_ACCOUNT = 6,
	/* A thread comes from an epoll call. Thread, time and process as in CHANNEL_CAME, and from bit 32 of the process on the
	 * place of the first ready file plus one. */
	CHANNEL_READY = 7,
};

/* Parts of an account that are recorded. */
enum {
	ACCOUNT_HAS_IRQ = 1,
	ACCOUNT_HAS_STOLEN = 2,
};

/* Flags of CHANNEL_SWITCH. */
enum {
	SWITCH_IS_PREEMPTION = 1,
	SWITCH_IS_WITHIN_KERNEL = 2,
	SWITCH_HAS_NEXT = 4,
	SWITCH_HAS_FUTEX = 8,
	SWITCH_HAS_OBJECT = 16,
	/* With SWITCH_IS_PREEMPTION: the thread's cgroup has used its quota of CPU time up. */
	SWITCH_IS_THROTTLED = 32,
};

/* Words of a record with a time, but for the flags that begin with SWITCH_HAS. */
#define CHANNEL_TIMED_WORDS 3
#define CHANNEL_ACCOUNT_WORDS 6
#define CHANNEL_LOST_WORDS 4
/* In place of a number of words. */
#define CHANNEL_NO_ROOM 0xffffffff

static ALWAYS_INLINE struct channel *channel_of_cpu(void)
{
	u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&channels, &cpu);
}

static ALWAYS_INLINE void channel_put(struct channel *channel, u64 at, u64 word)
{
	channel->words[at & settings.channel_mask] = word;
}

/* Room for so many words; 0 where there is none. */
static ALWAYS_INLINE u32 channel_has_room(struct channel *channel, u64 words)
{
	u64 tail = *(volatile u64 *)&channel->tail;

	return channel->head + words - tail <= settings.channel_mask + 1ull;
}

/* Whether the reader should be woken: a quarter is new. Otherwise nothing does where switches are all
 * there is. */
static ALWAYS_INLINE u32 channel_is_due(struct channel *channel)
{
	if (channel->head - channel->rung <= settings.channel_mask / 4)
		return 0;
	channel->rung = channel->head;
	return 1;
}

/* Makes the written words visible to the reader. Programs of one CPU's switches do not interrupt each other,
 * so this program alone writes `head`; a locked instruction would wait until all written words have left the
 * CPU. */
static ALWAYS_INLINE void channel_publish(struct channel *channel, u64 words)
{
	ordered_add(&channel->head, words);
}

/* A record with a time. */
struct channel_record {
	u64 what;
	u64 time;
	u64 owner;
	/* With SWITCH_HAS_NEXT. */
	u64 next;
	/* With SWITCH_HAS_FUTEX or SWITCH_HAS_OBJECT. */
	u64 object;
};

/* Counts a record that did not fit. A reader may look meanwhile: `lost` makes the times valid, so it is
 * written last. */
static ALWAYS_INLINE void channel_lose(struct channel *channel, u64 time)
{
	u64 lost = channel->lost;

	if (!lost || time < channel->lost_from)
		*(volatile u64 *)&channel->lost_from = time;
	if (!lost || time > channel->lost_to)
		*(volatile u64 *)&channel->lost_to = time;
	*(volatile u64 *)&channel->lost = lost + 1;
}

/* Words that a report of a loss adds in front of a record with a time; more than the channel has where both do not fit,
 * which is a loss itself. */
static ALWAYS_INLINE u32 channel_report(struct channel *channel, u64 words, u64 time)
{
	u64 at = channel->head, report = channel->lost ? CHANNEL_LOST_WORDS : 0;

	if (!channel_has_room(channel, words + report)) {
		channel_lose(channel, time);
		return CHANNEL_NO_ROOM;
	}
	if (report) {
		channel_put(channel, at, CHANNEL_LOST);
		channel_put(channel, at + 1, channel->lost_to);
		channel_put(channel, at + 2, channel->lost);
		channel_put(channel, at + 3, channel->lost_from);
		channel->lost = 0;
	}
	return report;
}

/* Writes a record with a time; 0 if it does not fit. */
UNWIND_FN u32 channel_write(const struct channel_record *record)
{
	struct channel *channel = channel_of_cpu();

	if (!record || !channel)
		return 0;
	u64 has_next = record->what >> 8 & SWITCH_HAS_NEXT ? 1 : 0;
	u64 has_object = record->what >> 8 & (SWITCH_HAS_FUTEX | SWITCH_HAS_OBJECT) ? 1 : 0;
	u64 words = CHANNEL_TIMED_WORDS + has_next + has_object, at = channel->head, time = record->time;
	u32 report = channel_report(channel, words, time);

	if (report == CHANNEL_NO_ROOM)
		return 0;
	at += report;
	channel_put(channel, at, record->what);
	channel_put(channel, at + 1, time);
	channel_put(channel, at + 2, record->owner);
	if (has_next)
		channel_put(channel, at + 3, record->next);
	if (has_object)
		channel_put(channel, at + 3 + has_next, record->object);
	channel_publish(channel, words + report);
	return 1;
}

/* Times in nanoseconds. */
struct channel_account {
	u64 parts;
	u64 irq;
	u64 softirq;
	u64 stolen;
};

/* Writes an account of a thread's time; 0 if it does not fit. */
UNWIND_FN u32 channel_account(const struct channel_account *account, u64 thread, u64 time)
{
	struct channel *channel = channel_of_cpu();

	if (!account || !channel)
		return 0;
	u64 at = channel->head;
	u32 report = channel_report(channel, CHANNEL_ACCOUNT_WORDS, time);

	if (report == CHANNEL_NO_ROOM)
		return 0;
	at += report;
	channel_put(channel, at, CHANNEL_ACCOUNT | account->parts << 8 | thread >> 32 << 32);
	channel_put(channel, at + 1, time);
	channel_put(channel, at + 2, (u32)thread);
	channel_put(channel, at + 3, account->irq);
	channel_put(channel, at + 4, account->softirq);
	channel_put(channel, at + 5, account->stolen);
	channel_publish(channel, CHANNEL_ACCOUNT_WORDS + report);
	return 1;
}

struct channel_frames {
	u64 words[UNWIND_FRAMES_ROOM];
};

/* Writes a stack; 0 if it does not fit. */
UNWIND_FN u32 channel_stack(const struct channel_frames *frames, u64 what)
{
	struct channel *channel = channel_of_cpu();
	u32 count = what >> 16 & 0xffff;

	if (!frames || !channel || !channel_has_room(channel, count + 1))
		return 0;
	u64 at = channel->head;
	channel_put(channel, at, what);
	for (u32 i = 0; i < UNWIND_FRAMES_MAX; i++) {
		if (i >= count)
			break;
		channel_put(channel, at + 1 + i, frames->words[i]);
	}
	channel_publish(channel, count + 1);
	return 1;
}

#endif
