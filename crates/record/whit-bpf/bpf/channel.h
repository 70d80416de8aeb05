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
	 * SWITCH_HAS_FUTEX, then the address of the futex. */
	CHANNEL_SWITCH = 2,
	/* Records did not fit. Then their latest time, their number, and their earliest time. */
	CHANNEL_LOST = 3,
	/* A thread comes, and no record describes the one before. From bit 32 on: thread. Then the time,
	 * and the process. */
	CHANNEL_CAME = 4,
};

/* Flags of CHANNEL_SWITCH. */
enum {
	SWITCH_IS_PREEMPTION = 1,
	SWITCH_IS_WITHIN_KERNEL = 2,
	SWITCH_HAS_NEXT = 4,
	SWITCH_HAS_FUTEX = 8,
};

/* Words of a record with a time, but for SWITCH_HAS_NEXT and SWITCH_HAS_FUTEX. */
#define CHANNEL_TIMED_WORDS 3
#define CHANNEL_LOST_WORDS 4

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
	/* With SWITCH_HAS_FUTEX. */
	u64 futex;
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

/* Writes a record with a time; 0 if it does not fit. */
UNWIND_FN u32 channel_write(const struct channel_record *record)
{
	struct channel *channel = channel_of_cpu();

	if (!record || !channel)
		return 0;
	u64 has_next = record->what >> 8 & SWITCH_HAS_NEXT ? 1 : 0;
	u64 has_futex = record->what >> 8 & SWITCH_HAS_FUTEX ? 1 : 0;
	u64 words = CHANNEL_TIMED_WORDS + has_next + has_futex, at = channel->head, time = record->time;

	if (channel->lost)
		words += CHANNEL_LOST_WORDS;
	if (!channel_has_room(channel, words)) {
		channel_lose(channel, time);
		return 0;
	}
	if (channel->lost) {
		channel_put(channel, at, CHANNEL_LOST);
		channel_put(channel, at + 1, channel->lost_to);
		channel_put(channel, at + 2, channel->lost);
		channel_put(channel, at + 3, channel->lost_from);
		channel->lost = 0;
		at += CHANNEL_LOST_WORDS;
	}
	channel_put(channel, at, record->what);
	channel_put(channel, at + 1, time);
	channel_put(channel, at + 2, record->owner);
	if (has_next)
		channel_put(channel, at + 3, record->next);
	if (has_futex)
		channel_put(channel, at + 3 + has_next, record->futex);
	channel_publish(channel, words);
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
