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

struct unwind_mapping;
struct unwind_table;
static const struct unwind_mapping *unwind_mapping(u32 number);
static const struct unwind_table *unwind_table(u32 number);
static u64 unwind_rule(u32 number);
static u32 unwind_word(u32 number);
static int unwind_copy(void *to, u32 size, u64 from);
struct unwind_state;
static u32 unwind_learn(struct unwind_state *s, u64 address);

#include "../../../whit-bpf/bpf/unwind.h"

static u64 words_count, rules_count, tables_count, mappings_count;
static u32 *words;
static u64 *rules;
static struct unwind_table *tables;
static struct unwind_mapping *mappings;
/* The part of the stack that was recorded; memory of its own, so that a step beyond it is seen. */
static unsigned char *stack;
static u64 stack_address, stack_bytes;

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

static int unwind_copy(void *to, u32 size, u64 from)
{
	u64 offset = from - stack_address;

	if (offset > stack_bytes || size > stack_bytes - offset)
		return -1;
	memcpy(to, stack + offset, size);
	return 0;
}

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

int main(void)
{
	static struct unwind_state state;

	words = take_array(&words_count, sizeof(*words));
	rules = take_array(&rules_count, sizeof(*rules));
	tables = take_array(&tables_count, sizeof(*tables));
	mappings = take_array(&mappings_count, sizeof(*mappings));
	u64 stacks = take_word();
	for (u64 number = 0; number < stacks; number++) {
		unwind_begin(&state);
		state.mappings_first = take_word();
		state.mappings_count = take_word();
		state.ip = take_word();
		state.sp = stack_address = take_word();
		state.fp = take_word();
		stack = take_array(&stack_bytes, 1);
		u32 reason = unwind_walk(&state);
		put(reason);
		put(state.needs_fp);
		put(state.frames_count);
		for (u32 i = 0; i < state.frames_count; i++)
			put(state.frames[i]);
		u32 reads = state.reads_count < UNWIND_READS_MAX ? state.reads_count : UNWIND_READS_MAX;
		put(state.reads_count);
		for (u32 i = 0; i < reads; i++)
			put(state.reads[i].address);
		free(stack);
	}
	free(words);
	free(rules);
	free(tables);
	free(mappings);
	return 0;
}
