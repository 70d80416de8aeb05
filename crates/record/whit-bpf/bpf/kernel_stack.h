/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's stack at a context switch or a wake-up, known again without a walk.
 *
 * A walk of the kernel costs microseconds, and both happen in few places. Frames follow each other
 * at distances that their code fixes. So the stack is the same where every place, counted from the
 * program's own frame, that held one of its return addresses holds the same one; whose stack it is does
 * not matter. The entry into the kernel alone is apart from the rest, by a random distance: its return
 * address is in front of the registers that user mode had.
 *
 * Which places are those of return addresses nobody says. All that hold an address of the stack are
 * remembered, and those that change while the stack does not are left-overs and forgotten.
 */
#ifndef WHIT_KERNEL_STACK_H
#define WHIT_KERNEL_STACK_H

/* Words of the stack that are looked through: all that there are, or it is not remembered. */
#define KERNEL_WORDS 512
/* Places that are remembered, and frames that a stack may have for that. */
#define KERNEL_SLOTS 64
#define KERNEL_FRAMES 64
/* Frames at the beginning that are the program's own: not on the stack above it. */
#define KERNEL_OWN_FRAMES 4
/* In the flags of a thread of the kernel (include/linux/sched.h). */
#define PF_KTHREAD 0x00200000
/* The program with the stack: places are counted from its frame. */
enum {
	KERNEL_AT_SWITCH = 0,
	KERNEL_AT_WAKE = 1,
	KERNEL_USERS = 2,
};

/* Sets of stacks for each, a power of two, and stacks in each set. */
#define KERNEL_SETS 64
#define KERNEL_WAYS 4

/* A place, counted in words from the program's frame, and the value there. */
struct kernel_slot {
	u16 word;
	/* Number of the frame whose address it is. */
	u16 frame;
	/* Without the upper half, which all of the kernel's code has in common. */
	u32 value;
};

/* A stack that may come again. */
struct kernel_memo {
	/* 0: none. */
	u64 hash;
	/* The return address in front of the registers. */
	u64 entry;
	u64 slots_count;
	struct kernel_slot slots[KERNEL_SLOTS];
};

struct kernel_set {
	/* Which one goes next. */
	u32 next;
	/* Which one was found last. */
	u32 last;
	struct kernel_memo memos[KERNEL_WAYS];
};

/* Each CPU's own: nobody else is at it. Neither program interrupts the other. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct kernel_set));
	__uint(max_entries, KERNEL_SETS * KERNEL_USERS);
} kernel_sets SEC(".maps");

/* The working state of a look at the kernel's stack. */
struct kernel_look {
	/* KERNEL_AT_... */
	u64 user;
	/* Where the program's own frame is, and how many words there are up to `entry`. */
	u64 frame;
	u64 words_count;
	/* The return address in front of the registers. */
	u64 entry;
	/* See number_of(). */
	u64 number;
	/* A copy: once it is walked, and where loads are calls. */
	u64 words[KERNEL_WORDS];
	/* Bits of the frames whose addresses were found. */
	u64 found;
	/* See kernel_key_words. */
	u32 key_words;
	u32 unused;
	u32 slots_count;
	u32 frames_count;
	u64 frames[UNWIND_FRAMES_ROOM];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct kernel_look));
	__uint(max_entries, KERNEL_USERS);
} kernel_looks SEC(".maps");

/* Where stacks differ that are alike otherwise, once known: words from a program's frame to the return address
 * of the scheduler's function, and of its caller (upper half). */
u32 kernel_key_words[KERNEL_USERS];

/* Bytes from a thread's kernel stack to the registers that it had in user mode; 0 before that is known. */
u64 registers_offset;

/* An address as a number, which it becomes through memory: the verifier lets nobody calculate with addresses that
 * it knows something of, and that of Linux 7.0 does (6.18: not yet) of all pointers in the kernel's structures. */
static ALWAYS_INLINE u64 number_of(const void *address, struct kernel_look *look)
{
	*(const void *volatile *)&look->number = address;
	return *(volatile u64 *)&look->number;
}

/* Where the registers are that a thread had in user mode; 0 before the place is known. Threads of the kernel do not say it:
 * for an idle one within an interrupt, Linux 6.18 was seen to give an address outside of the stack. */
static ALWAYS_INLINE u64 registers_address(struct task_struct *task, struct kernel_look *look)
{
	u64 stack = number_of(task->stack, look);

	if (!registers_offset) {
		if (task->flags & PF_KTHREAD)
			return 0;
		registers_offset = number_of(bpf_task_pt_regs(task), look) - stack;
	}
	return stack + registers_offset;
}

/* A word of the kernel's memory; 0 where there is none. */
static ALWAYS_INLINE u64 kernel_word(u64 address)
{
	u64 value = 0;

	if (CAN_LOAD_KERNEL)
		return kernel_load(address);
	bpf_probe_read_kernel(&value, 8, (void *)address);
	return value;
}

/* Copies the words of the stack; 0 where they are too many. */
static ALWAYS_INLINE u32 kernel_copy(struct kernel_look *look)
{
	u64 bytes = look->words_count * 8;

	return bytes <= KERNEL_WORDS * 8 &&
	       !bpf_probe_read_kernel(look->words, bytes, (void *)look->frame);
}

static ALWAYS_INLINE u64 kernel_stack_word(const struct kernel_look *look, u64 word)
{
	if (CAN_LOAD_KERNEL)
		return kernel_load(look->frame + word * 8);
	return look->words[word % KERNEL_WORDS];
}

/* The whole word that was at a place. */
static ALWAYS_INLINE u64 slot_value(const struct kernel_slot *slot)
{
	return KERNEL_CODE | slot->value;
}

/* Whether every place that matters holds the remembered value. Global: inlined into the search of a
 * set it has more than the 8192 branches that the verifier of Linux 5.15 will keep for later. */
UNWIND_FN u32 kernel_memo_holds(const struct kernel_look *look, const struct kernel_memo *memo)
{
	if (!look || !memo)
		return 0;
	u64 count = memo->slots_count;
	if (!memo->hash || memo->entry != look->entry || !count)
		return 0;
	for (u32 i = 0; i < KERNEL_SLOTS; i++) {
		if (i >= count)
			return 1;
		if (kernel_stack_word(look, memo->slots[i].word) != slot_value(&memo->slots[i]))
			return 0;
	}
	return 1;
}

UNWIND_FN u64 kernel_known(const struct kernel_look *look, struct kernel_set *set)
{
	if (!look || !set)
		return 0;
	u32 last = set->last;
	for (u32 i = 0; i < KERNEL_WAYS; i++) {
		u32 way = (last + i) % KERNEL_WAYS;

		if (!kernel_memo_holds(look, &set->memos[way]))
			continue;
		if (i)
			set->last = way;
		return set->memos[way].hash;
	}
	return 0;
}

/* Number of the first frame at an address; KERNEL_FRAMES for none. */
UNWIND_FN u32 kernel_frame_at(struct kernel_look *look, u64 address)
{
	if (!look)
		return KERNEL_FRAMES;
	u32 count = look->frames_count;
	for (u32 i = KERNEL_OWN_FRAMES; i < KERNEL_FRAMES; i++) {
		if (i >= count)
			break;
		if (look->frames[i] == address)
			return i;
	}
	return KERNEL_FRAMES;
}

/* Remembers one place, if it holds an address of the stack. 1 where there is no room. */
UNWIND_FN u32 kernel_keep_word(struct kernel_look *look, struct kernel_memo *memo, u32 word)
{
	if (!look || !memo)
		return 1;
	u64 value = look->words[word % KERNEL_WORDS];
	u32 frame = kernel_frame_at(look, value);
	if (frame >= KERNEL_FRAMES)
		return 0;
	u32 slot = look->slots_count;
	if (slot >= KERNEL_SLOTS)
		return 1;
	memo->slots[slot].word = word;
	memo->slots[slot].frame = frame;
	memo->slots[slot].value = value;
	look->slots_count = slot + 1;
	look->found |= 1ull << frame;
	if (frame == KERNEL_OWN_FRAMES + 1 && !look->key_words)
		look->key_words = word;
	else if (frame == KERNEL_OWN_FRAMES + 2 && look->key_words && look->key_words <= 0xffff)
		look->key_words |= word << 16;
	return 0;
}

/* Whether each frame of the stack has a place. */
static ALWAYS_INLINE u32 kernel_is_whole(const struct kernel_look *look)
{
	u32 count = look->frames_count;

	if (count <= KERNEL_OWN_FRAMES || count >= KERNEL_FRAMES)
		return 0;
	u64 found = look->found | ((1ull << KERNEL_OWN_FRAMES) - 1);
	u32 last = (count - 1) % UNWIND_FRAMES_ROOM;
	if (look->frames[last] == look->entry)
		found |= 1ull << last;
	return found == (1ull << count) - 1;
}

/*
 * Remembers each place that holds an address of the stack: the real ones are among them. Where an
 * address is nowhere the stack is not remembered; neither is one in which a function calls itself: the
 * second of two frames of one address is never found.
 */
UNWIND_FN u32 kernel_keep(struct kernel_look *look, struct kernel_memo *memo, u64 hash)
{
	if (!look || !memo)
		return 0;
	memo->hash = 0;
	look->found = 0;
	look->slots_count = look->key_words = 0;
	u64 words = look->words_count;
	for (u32 word = 0; word < KERNEL_WORDS; word++) {
		if (word >= words)
			break;
		if (look->words[word] >= KERNEL_CODE && kernel_keep_word(look, memo, word))
			return 0;
	}
	if (!kernel_is_whole(look))
		return 0;
	memo->entry = look->entry;
	memo->slots_count = look->slots_count;
	memo->hash = hash;
	/* There are more frames in between while somebody else's program is at the tracepoint as well. Both words
	 * are one, since other CPUs read it. */
	u32 *key_words = &kernel_key_words[look->user % KERNEL_USERS];
	if (look->key_words > 0xffff &&
	    look->words[*key_words % KERNEL_WORDS] < KERNEL_CODE)
		*key_words = look->key_words;
	return 0;
}

/* Goes on remembering a place, if it has not changed. */
UNWIND_FN u32 kernel_prune_slot(struct kernel_look *look, struct kernel_memo *memo, u32 slot)
{
	if (!look || !memo)
		return 0;
	struct kernel_slot kept = memo->slots[slot % KERNEL_SLOTS];
	u32 count = look->slots_count;

	if (look->words[kept.word % KERNEL_WORDS] != slot_value(&kept))
		return 0;
	memo->slots[count % KERNEL_SLOTS] = kept;
	look->slots_count = count + 1;
	look->found |= 1ull << kept.frame % 64;
	return 0;
}

/* The same stack was walked again: forgets places that have changed. 0 where a frame has none then. */
UNWIND_FN u32 kernel_prune(struct kernel_look *look, struct kernel_memo *memo)
{
	if (!look || !memo)
		return 0;
	u64 count = memo->slots_count;
	look->slots_count = 0;
	look->found = 0;
	for (u32 slot = 0; slot < KERNEL_SLOTS; slot++) {
		if (slot >= count)
			break;
		kernel_prune_slot(look, memo, slot);
	}
	memo->slots_count = look->slots_count;
	return kernel_is_whole(look);
}

/* Remembers a stack that was walked. */
UNWIND_FN u32 kernel_remember(struct kernel_look *look, struct kernel_set *set, u64 hash)
{
	if (!look || !set || !hash)
		return 0;
	if (CAN_LOAD_KERNEL && !kernel_copy(look))
		return 0;
	for (u32 way = 0; way < KERNEL_WAYS; way++) {
		struct kernel_memo *memo = &set->memos[way];

		if (memo->hash == hash && memo->entry == look->entry) {
			if (!kernel_prune(look, memo))
				kernel_keep(look, memo, hash);
			return 0;
		}
	}
	u32 way = set->next++ % KERNEL_WAYS;
	return kernel_keep(look, &set->memos[way], hash);
}

/* The key of a stack's set. */
static ALWAYS_INLINE u64 kernel_key(u64 user, const struct kernel_look *look)
{
	u32 words = kernel_key_words[user];
	u64 caller = kernel_stack_word(look, words & 0xffff);
	u64 outer = kernel_stack_word(look, words >> 16);
	u64 key = unwind_mix(look->entry, caller);

	/* Not every caller's frame ends there. */
	return outer >= KERNEL_CODE ? unwind_mix(key, outer) : key;
}

/*
 * The hash of the kernel's stack where it is known again, or 0. Gives the set that it belongs to; NULL where
 * it is not on the thread's own stack: interrupts have theirs, and some kernels run programs on one.
 */
static ALWAYS_INLINE u64 kernel_again(u64 user, struct kernel_look *look, struct task_struct *task,
				      struct kernel_set **set)
{
	u64 stack = number_of(task->stack, look), registers = registers_address(task, look);

	*set = NULL;
	look->words_count = 0;
	if (!KERNEL_STACKS_ARE_PLAIN || settings.no_memo || !registers || look->frame < stack || look->frame >= registers - 8)
		return 0;
	look->user = user;
	look->words_count = (registers - 8 - look->frame) / 8;
	look->entry = kernel_word(registers - 8);
	if (!CAN_LOAD_KERNEL && !kernel_copy(look))
		return 0;
	u32 place = kernel_key(user, look) % KERNEL_SETS + user * KERNEL_SETS;

	*set = bpf_map_lookup_elem(&kernel_sets, &place);
	return *set ? kernel_known(look, *set) : 0;
}

static ALWAYS_INLINE u64 kernel_hash(const u64 *frames, u32 count)
{
	u64 hash = UNWIND_HASH_SEED;

	for (u32 i = 0; i < UNWIND_FRAMES_MAX; i++) {
		if (i >= count)
			break;
		hash = unwind_mix(hash, frames[i]);
	}
	return hash | !hash;
}

/* Walks the kernel's stack into look->frames and remembers it in a set, if there is one. Gives its hash, or 0. */
static __attribute__((noinline)) u64 kernel_walk_noted(void *ctx, struct kernel_look *look,
						       struct kernel_set *set)
{
	long bytes = bpf_get_stack(ctx, look->frames, UNWIND_FRAMES_MAX * 8, 0);

	if (bytes <= 0)
		return 0;
	look->frames_count = (u64)bytes / 8;
	u64 hash = kernel_hash(look->frames, look->frames_count);
	if (set)
		kernel_remember(look, set, hash);
	return hash;
}

#endif
