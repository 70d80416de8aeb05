/*
 * Functions with known shares of the CPU time: they count their own work.
 *
 * The unit of work is the same instructions everywhere, in a chain in which each waits for the one before. A function's
 * share is the units that it did, of all. At the end the program prints a line for each function:
 *
 *     share NAME UNITS
 *
 *   shares flat SECONDS          ten functions of 1 % to 30 %, in turns of some microseconds.
 *   shares twenty SECONDS        twenty functions of 5 %.
 *   shares recursion SECONDS     two functions that call each other, 60 % and 40 %.
 *   shares threads SECONDS       eight threads with a function each, of different shares.
 *   shares processes SECONDS     a process for each millisecond of work, with one of four functions.
 *   shares phases SECONDS        four functions, one after the other.
 *   shares locked:HZ SECONDS     three functions that fill each 1/HZ of a second in turn: 20 %, 30 % and 50 %.
 *   shares waking:HZ SECONDS     the same, half as long, and then it sleeps until the next 1/HZ.
 *   shares faster:PERCENT UNITS  as flat, with so many units, and the function f1 does so much less.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone, aligned(64)))
/* Multiplications of a unit: some 0.3 microseconds. */
#define UNIT 256
#define FUNCTIONS 20

static volatile uint64_t sink;

/* Units that each function did; shared with children. */
struct count {
	const char *name;
	uint64_t units;
	char padding[48];
};
static struct count *counts;

/* The same instructions in each function that has them. */
#define WORK(units)                                                                   \
	do {                                                                          \
		uint64_t left_ = (uint64_t)(units) * UNIT, x_ = sink | 1;             \
		__asm__ volatile(".p2align 6\n"                                       \
				 "1: imul %0, %0\n"                                   \
				 "sub $1, %1\n"                                       \
				 "jnz 1b\n"                                           \
				 : "+r"(x_), "+r"(left_)                              \
				 :                                                    \
				 : "cc");                                             \
		sink = x_;                                                            \
	} while (0)

#define FUNCTION(number)                                  \
	KEPT static void f##number(uint64_t units)        \
	{                                                 \
		if (units)                                \
			WORK(units);                      \
	}

FUNCTION(0) FUNCTION(1) FUNCTION(2) FUNCTION(3) FUNCTION(4) FUNCTION(5) FUNCTION(6) FUNCTION(7) FUNCTION(8)
FUNCTION(9) FUNCTION(10) FUNCTION(11) FUNCTION(12) FUNCTION(13) FUNCTION(14) FUNCTION(15) FUNCTION(16)
FUNCTION(17) FUNCTION(18) FUNCTION(19)

typedef void (*function)(uint64_t);
static const function functions[FUNCTIONS] = { f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14,
					       f15, f16, f17, f18, f19 };
static const char *const names[FUNCTIONS] = { "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8", "f9", "f10",
					      "f11", "f12", "f13", "f14", "f15", "f16", "f17", "f18", "f19" };

static void work(unsigned which, uint64_t units)
{
	functions[which](units);
	__atomic_fetch_add(&counts[which].units, units, __ATOMIC_RELAXED);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static uint64_t random_number(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* So many functions by these weights, until the time is over or so many units are done. */
static void mix(const unsigned *weights, unsigned count, uint64_t end, uint64_t units, unsigned faster, unsigned percent)
{
	uint64_t state = 88172645463325252ull, done = 0;

	while (end ? now_ns() < end : done < units) {
		for (unsigned turn = 0; turn < 64; turn++) {
			unsigned which = random_number(&state) % count;
			uint64_t own = weights[which];

			done += own;
			if (which == faster)
				own = own * (100 - percent) / 100;
			work(which, own);
		}
	}
}

static const unsigned flat_weights[] = { 300, 200, 150, 100, 80, 60, 50, 30, 20, 10 };

static unsigned even_depth(unsigned depth, unsigned units);

KEPT static unsigned odd_depth(unsigned depth, unsigned units)
{
	WORK(2 * units);
	__atomic_fetch_add(&counts[1].units, 2 * units, __ATOMIC_RELAXED);
	return depth ? even_depth(depth - 1, units) + 1 : 0;
}

KEPT static unsigned even_depth(unsigned depth, unsigned units)
{
	WORK(3 * units);
	__atomic_fetch_add(&counts[0].units, 3 * units, __ATOMIC_RELAXED);
	return depth ? odd_depth(depth - 1, units) + 1 : 0;
}

static const unsigned thread_weights[] = { 8, 7, 6, 5, 4, 3, 2, 1 };
static uint64_t thread_turns;

static void *of_thread(void *argument)
{
	unsigned which = (uintptr_t)argument;

	for (uint64_t turn = 0; turn < thread_turns; turn++)
		work(which, thread_weights[which] * 100);
	return NULL;
}

/* Units of a second. */
static uint64_t speed(void)
{
	uint64_t begin = now_ns(), units = 0;

	while (now_ns() - begin < 50000000) {
		WORK(1000);
		units += 1000;
	}
	return units * 20;
}

static void threads(uint64_t seconds)
{
	pthread_t all[8];

	/* 36 hundreds of units for a turn of each. */
	thread_turns = speed() * seconds / 3600 * (sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1);
	for (uintptr_t i = 0; i < 8; i++)
		pthread_create(&all[i], NULL, of_thread, (void *)i);
	for (unsigned i = 0; i < 8; i++)
		pthread_join(all[i], NULL);
}

static void processes(uint64_t end)
{
	static const unsigned order[] = { 0, 1, 0, 2, 0, 1, 3, 0, 1, 0 };
	uint64_t units = speed() / 1000;

	for (unsigned turn = 0; now_ns() < end; turn = (turn + 1) % 10) {
		pid_t child = fork();

		if (!child) {
			work(order[turn], units);
			_exit(0);
		}
		if (child > 0)
			waitpid(child, NULL, 0);
	}
}

static void phases(uint64_t begin, uint64_t end)
{
	for (unsigned which = 0; which < 4; which++) {
		uint64_t until = begin + (end - begin) * (which + 1) / 4;

		while (now_ns() < until)
			work(which, 50);
	}
}

/* Each 1/hz is filled, or half of it is. Functions change with the clock, by units of less than a microsecond. */
static void in_step(unsigned hz, uint64_t end, int sleeps)
{
	uint64_t period = 1000000000ull / hz, edge = now_ns() / period * period + period;
	uint64_t busy = sleeps ? period / 2 : period;

	for (; edge < end; edge += period) {
		struct timespec next = { edge / 1000000000, edge % 1000000000 };

		if (sleeps)
			clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		uint64_t edges[3] = { edge + busy / 5, edge + busy / 2, edge + busy };

		for (unsigned which = 0; which < 3; which++)
			while (now_ns() < edges[which])
				work(which, 20);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *colon = strchr(mode, ':');
	uint64_t number = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, begin = now_ns();
	uint64_t end = begin + number * 1000000000ull;
	unsigned parameter = colon ? atoi(colon + 1) : 0, twenty[FUNCTIONS];

	counts = mmap(NULL, FUNCTIONS * sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED)
		return 1;
	for (unsigned i = 0; i < FUNCTIONS; i++) {
		counts[i].name = names[i];
		twenty[i] = 50;
	}
	if (!strcmp(mode, "flat"))
		mix(flat_weights, 10, end, 0, FUNCTIONS, 0);
	else if (!strcmp(mode, "twenty"))
		mix(twenty, 20, end, 0, FUNCTIONS, 0);
	else if (!strncmp(mode, "faster:", 7))
		mix(flat_weights, 10, 0, number, 1, parameter);
	else if (!strcmp(mode, "recursion")) {
		counts[0].name = "even_depth";
		counts[1].name = "odd_depth";
		while (now_ns() < end)
			sink += even_depth(39, 10);
	} else if (!strcmp(mode, "threads"))
		threads(number);
	else if (!strcmp(mode, "processes"))
		processes(end);
	else if (!strcmp(mode, "phases"))
		phases(begin, end);
	else if (!strncmp(mode, "locked:", 7) && parameter)
		in_step(parameter, end, 0);
	else if (!strncmp(mode, "waking:", 7) && parameter)
		in_step(parameter, end, 1);
	else {
		fprintf(stderr, "shares MODE SECONDS: see the source\n");
		return 2;
	}
	for (unsigned i = 0; i < FUNCTIONS; i++)
		if (counts[i].units)
			printf("share %s %llu\n", counts[i].name, (unsigned long long)counts[i].units);
	return 0;
}
