/*
 * The kernel's walk, for tests: reads tables, mappings and stacks from standard input and writes the
 * chains to standard output. All numbers are little-endian words of 64 bits, except the words of
 * tables, which have 32.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
typedef int16_t s16;

#define UNWIND_FN static
#define UNWIND_INLINE inline

static int unwind_copy(void *to, u32 size, u64 from);

#include "../../../whit-bpf/bpf/interpreter_layout.h"
#include "../../../whit-bpf/bpf/unwind_state.h"

static u64 words_count, rules_count, tables_count, mappings_count;
static u32 *words;
static u64 *rules;
static struct unwind_table *tables;
static struct unwind_mapping *mappings;
/* The part of the stack that was recorded; memory of its own, so that a step beyond it is seen. */
static unsigned char *stack;
static u64 stack_address, stack_bytes;
/* Other memory of the process. */
static u64 pieces_count, piece_addresses[16], piece_bytes[16];
static unsigned char *pieces[16];
static u64 interpreters_count, kept_thread, announced_count;
static struct interpreter *interpreters;

static const struct unwind_mapping *unwind_mapping(u32 number)
{
	return number < mappings_count ? &mappings[number] : NULL;
}

static const struct unwind_table *unwind_table(u32 number)
{
	return number < tables_count ? &tables[number] : NULL;
}

static u64 unwind_rule(u32 number)
{
	return number < rules_count ? rules[number] : 0xff;
}

static u32 unwind_word(u32 number)
{
	return number < words_count ? words[number] : 0;
}

/* All mappings are known. */
static u32 unwind_learn(struct unwind_state *s, u64 address)
{
	(void)s;
	(void)address;
	return 0;
}

/* No function is probed. */
static u32 unwind_probed_return(struct unwind_state *s)
{
	(void)s;
	return 0;
}

static const struct interpreter *unwind_interpreter(u32 number)
{
	return number && number <= interpreters_count ? &interpreters[number - 1] : NULL;
}

static u32 interpreter_ids(struct unwind_state *s)
{
	s->own_tid = (u32)s->task;
	return s->own_tid;
}

static u64 interpreter_thread(struct unwind_state *s)
{
	(void)s;
	return kept_thread;
}

static void interpreter_keep_thread(struct unwind_state *s, u64 thread)
{
	(void)s;
	kept_thread = thread;
}

static void interpreter_emit(struct unwind_state *s, const struct interpreted *function)
{
	(void)s;
	(void)function;
	announced_count++;
}

static int unwind_copy(void *to, u32 size, u64 from)
{
	u64 offset = from - stack_address;

	for (u64 i = 0; i < pieces_count; i++) {
		u64 within = from - piece_addresses[i];

		if (within < piece_bytes[i] && size <= piece_bytes[i] - within) {
			memcpy(to, pieces[i] + within, size);
			return 0;
		}
	}

	if (offset > stack_bytes || size > stack_bytes - offset)
		return -1;
	memcpy(to, stack + offset, size);
	return 0;
}

static int interpreter_copy(u64 *to, u64 from)
{
	return unwind_copy(to, INTERPRETER_CODE_WORDS * sizeof(*to), from);
}

#include "../../../whit-bpf/bpf/unwind.h"

static void take(void *to, u64 bytes)
{
	if (bytes && fread(to, 1, bytes, stdin) != bytes)
		exit(3);
}

static u64 take_word(void)
{
	u64 word;

	take(&word, sizeof(word));
	return word;
}

/* An array of so many elements, as the input has it. */
static void *take_array(u64 *count, u64 element_bytes)
{
	*count = take_word();
	void *array = malloc(*count * element_bytes + 1);

	if (!array)
		exit(4);
	take(array, *count * element_bytes);
	return array;
}

static void put(u64 word)
{
	fwrite(&word, sizeof(word), 1, stdout);
}

/* The address of a word that the walk depended on; 0 for a frame that is not as it was, or that no change would show. */
static u64 noted(struct unwind_state *s, const struct unwind_read *read)
{
	if (read->address & INTERPRETED_FRAME &&
	    (!interpreter_holds(s, read->address, read->value) || interpreter_holds(s, read->address, read->value ^ 1)))
		return 0;
	return read->address;
}

int main(void)
{
	static struct unwind_state state;

	words = take_array(&words_count, sizeof(*words));
	rules = take_array(&rules_count, sizeof(*rules));
	tables = take_array(&tables_count, sizeof(*tables));
	mappings = take_array(&mappings_count, sizeof(*mappings));
	interpreters = take_array(&interpreters_count, sizeof(*interpreters));
	u64 stacks = take_word();
	for (u64 number = 0; number < stacks; number++) {
		unwind_begin(&state);
		state.mappings_first = take_word();
		state.mappings_count = take_word();
		state.ip = take_word();
		state.sp = stack_address = take_word();
		state.fp = take_word();
		state.extra = take_word();
		state.task = take_word();
		kept_thread = take_word();
		u64 frames_max = take_word();
		if (frames_max)
			state.frames_max = frames_max;
		stack = take_array(&stack_bytes, 1);
		pieces_count = take_word();
		if (pieces_count > 16)
			return 5;
		for (u64 i = 0; i < pieces_count; i++) {
			piece_addresses[i] = take_word();
			pieces[i] = take_array(&piece_bytes[i], 1);
		}
		announced_count = 0;
		u32 reason = unwind_walk(&state);
		put(reason);
		put(state.needs_fp);
		put(state.frames_count);
		for (u32 i = 0; i < state.frames_count; i++)
			put(state.frames[i]);
		u32 reads = state.reads_count < UNWIND_READS_MAX ? state.reads_count : UNWIND_READS_MAX;
		put(state.reads_count);
		for (u32 i = 0; i < reads; i++)
			put(noted(&state, &state.reads[i]));
		put(state.interpreted_count);
		put(state.interpreter_reason);
		put(announced_count);
		put(kept_thread);
		for (u64 i = 0; i < pieces_count; i++)
			free(pieces[i]);
		free(stack);
	}
	free(words);
	free(rules);
	free(tables);
	free(mappings);
	free(interpreters);
	return 0;
}
