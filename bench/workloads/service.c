/*
 * A service that works until it is ended, half of it in a library of its own: what recordings meet of
 * upgraded, deleted and contained programs.
 *
 *   service [--seconds S | --from-memory]
 *
 * S are seconds of CPU time: a recording has as many samples on a busy machine. The program prints a line when it begins to
 * work. Each of its stacks goes from `serve_request` through `serve_inner` into the library's `work_recurse` and
 * `work_burn`. Compiled with -DIMPOSTOR, functions at the same places have other names: a report that shows one of these
 * has looked into the wrong file.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef IMPOSTOR
#define NAME(name) impostor_##name
#else
#define NAME(name) name
#endif

#define PHYSICAL __attribute__((noinline, noclone))
/* Reading the clock takes a system call, which no profile is to show. */
enum { REQUESTS_BETWEEN_LOOKS = 64 };

/* Calls of each recursive function in a stack, besides the first. */
enum { INNER_CALLS = 5, WORK_CALLS = 6 };

unsigned long NAME(work_recurse)(int depth, unsigned rounds);

#ifdef LIBRARY

static volatile unsigned long sink;

PHYSICAL static void NAME(work_burn)(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		sink = sink * 31 + i;
}

PHYSICAL unsigned long NAME(work_recurse)(int depth, unsigned rounds)
{
	if (depth > 0)
		sink += NAME(work_recurse)(depth - 1, rounds);
	else
		NAME(work_burn)(rounds);
	return sink;
}

#else

static volatile unsigned long served;

PHYSICAL static void NAME(serve_inner)(int depth)
{
	if (depth > 0)
		NAME(serve_inner)(depth - 1);
	else
		served += NAME(work_recurse)(WORK_CALLS, 20000);
	served++;
}

PHYSICAL static void NAME(serve_request)(void)
{
	NAME(serve_inner)(INNER_CALLS);
	served++;
}

/* Runs the program anew, from a file that is in no directory. */
static int run_from_memory(char **argv, char **environment)
{
	char part[4096];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = memfd_create("service", MFD_CLOEXEC);
	char *arguments[] = { argv[0], NULL };
	ssize_t size;

	while ((size = read(from, part, sizeof(part))) > 0)
		if (write(to, part, size) != size)
			return 1;
	fexecve(to, arguments, environment);
	perror("fexecve");
	return 1;
}

int main(int argc, char **argv, char **environment)
{
	double seconds = 0;
	struct timespec used;

	if (argc == 2 && !strcmp(argv[1], "--from-memory"))
		return run_from_memory(argv, environment);
	if (argc == 3 && !strcmp(argv[1], "--seconds"))
		seconds = atof(argv[2]);
	puts("serving");
	fflush(stdout);
	do {
		for (int i = 0; i < REQUESTS_BETWEEN_LOOKS; i++)
			NAME(serve_request)();
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	} while (seconds <= 0 || used.tv_sec + used.tv_nsec * 1e-9 < seconds);
	return 0;
}

#endif
