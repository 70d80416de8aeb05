/*
 * Where unwinding is hard: signal handlers over calls, entries of the procedure linkage table, the
 * vdso, a library that is loaded late, callbacks out of the C library, frames of unknown size.
 *
 *   corners [--seconds S | --iterations N]
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) static void burn(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        sink = sink * 31 + i;
}

static void on_alarm(int signal)
{
    (void)signal;
    burn(20000);
    sink++;
}

static int compare(const void *a, const void *b)
{
    sink++;
    return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static void sort(void)
{
    int values[300];

    for (int i = 0; i < 300; i++)
        values[i] = (i * 7919) % 301;
    qsort(values, 300, sizeof(*values), compare);
    sink += values[7];
}

/* A frame of a size that is not known beforehand: it needs the frame pointer. */
__attribute__((noinline)) static void alloca_and(int depth, void (*then)(void))
{
    char *room = __builtin_alloca(16 + depth * 24);

    memset(room, depth, 16);
    if (depth > 0)
        alloca_and(depth - 1, then);
    else
        then();
    sink += room[3];
}

__attribute__((noinline)) static void ask_the_time(void)
{
    struct timespec now;

    for (int i = 0; i < 100; i++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        sink += now.tv_nsec;
    }
}

/* Short functions of the C library, each called through the linkage table. */
__attribute__((noinline)) static void call_out(void)
{
    char text[32];

    for (int i = 0; i < 100; i++) {
        strcpy(text, "123456");
        sink += strtol(text, NULL, 10) + strlen(text) + atoi(text) + abs((int)sink);
    }
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    struct itimerval every = { { 0, 1000 }, { 0, 1000 } };
    double (*late)(double) = NULL;
    double sum = 0, end = 0;
    int rounds = 4000;

    if (argc == 3 && !strcmp(argv[1], "--seconds"))
        end = now() + atof(argv[2]);
    else if (argc == 3 && !strcmp(argv[1], "--iterations"))
        rounds = atoi(argv[2]);
    else if (argc != 1)
        return fprintf(stderr, "usage: corners [--seconds S | --iterations N]\n"), 2;
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &every, NULL);
    for (int round = 0; end > 0 ? now() < end : round < rounds; round++) {
        alloca_and(round % 9, sort);
        alloca_and(round % 5, ask_the_time);
        alloca_and(round % 7, call_out);
        burn(2000);
        if (round == 300) {
            void *library = dlopen("libm.so.6", RTLD_NOW);

            late = library ? (double (*)(double))dlsym(library, "tgamma") : NULL;
        }
        for (int i = 0; late && i < 300; i++)
            sum += late(1.5 + i % 20);
    }
    printf("%f %lu\n", sum, sink);
    return 0;
}
