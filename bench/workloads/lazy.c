/*
 * Calls that the dynamic linker binds: a library of ten thousand functions. A process calls each function once,
 * through its linkage table. Nearly all time is spent below `_dl_runtime_resolve`, whose frame address is made from
 * rbx: functions further in have saved it.
 *
 *   lazy [--iterations N]      so many processes, one after the other
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "result.h"

/* Ten, a hundred and so on of `each`, with all digits behind `name`. */
#define TEN(each, name) \
	each(name##0) each(name##1) each(name##2) each(name##3) each(name##4) \
	each(name##5) each(name##6) each(name##7) each(name##8) each(name##9)
#define HUNDRED(each, name) \
	TEN(each, name##0) TEN(each, name##1) TEN(each, name##2) TEN(each, name##3) TEN(each, name##4) \
	TEN(each, name##5) TEN(each, name##6) TEN(each, name##7) TEN(each, name##8) TEN(each, name##9)
#define THOUSAND(each, name) \
	HUNDRED(each, name##0) HUNDRED(each, name##1) HUNDRED(each, name##2) HUNDRED(each, name##3) \
	HUNDRED(each, name##4) HUNDRED(each, name##5) HUNDRED(each, name##6) HUNDRED(each, name##7) \
	HUNDRED(each, name##8) HUNDRED(each, name##9)
#define TEN_THOUSAND(each, name) \
	THOUSAND(each, name##0) THOUSAND(each, name##1) THOUSAND(each, name##2) THOUSAND(each, name##3) \
	THOUSAND(each, name##4) THOUSAND(each, name##5) THOUSAND(each, name##6) THOUSAND(each, name##7) \
	THOUSAND(each, name##8) THOUSAND(each, name##9)

#ifdef LIBRARY

#define DEFINE(name) \
	long name(long value); \
	long name(long value) { return value * 3 + 1; }
TEN_THOUSAND(DEFINE, bound_)

#else

#define DECLARE(name) long name(long value);
TEN_THOUSAND(DECLARE, bound_)

#define CALL(name) value = name(value);

__attribute__((noinline)) static long call_all(long value)
{
	TEN_THOUSAND(CALL, bound_)
	return value;
}

__attribute__((noinline)) static long outer(long value)
{
	return call_all(value) + 1;
}

int main(int argc, char **argv)
{
	uint64_t iterations = 10;

	if (argc == 3 && !strcmp(argv[1], "--iterations"))
		iterations = result_amount(argv[2]);
	else if (argc != 1)
		iterations = 0;
	if (!iterations) {
		fprintf(stderr, "usage: lazy [--iterations N]\n");
		return 2;
	}
	const struct result_timer timer = result_begin();
	for (uint64_t i = 0; i < iterations; i++) {
		pid_t child = fork();

		/* Its own linkage table is not bound yet. */
		if (!child)
			_exit(outer((long)i) == 0);
		int status = 1;
		if (child < 0 || waitpid(child, &status, 0) != child || status) {
			perror("lazy: a process");
			return 1;
		}
	}
	result_print("lazy", 1, iterations, iterations, result_end(timer));
	return 0;
}

#endif
