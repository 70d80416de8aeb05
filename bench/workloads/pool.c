// A pool of threads that work for a moment and sleep for long, as servers' threads do.
//
//   pool [--threads N] [--work-us N] [--every-us N] [--seconds N] [--on-signal 1]
//
// Each thread works for so many microseconds of its CPU time, then sleeps up to its next turn. Turns are --every-us
// apart on average and come at random, so that nothing keeps step with them; one that is late is not made up for. With
// --on-signal the work begins when SIGUSR1 comes. Prints the CPU time of all threads in pool_work, and all of their CPU
// time since the work began, in nanoseconds: waking and going to sleep take some more.

#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "result.h"

#define THREADS_MAX 4096

static uint64_t threads = 200, work_us = 60, every_us = 100000, seconds = 2, on_signal;
static pthread_barrier_t begin;
static uint64_t end_ns;
static _Atomic uint64_t worked_ns;
static volatile uint64_t sink;

static uint64_t now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Gives the time at its end.
__attribute__((noinline)) static uint64_t pool_work(uint64_t until_ns) {
    uint64_t now = 0;
    while (now < until_ns) {
        for (int i = 0; i < 200; i++) sink += i;
        now = now_ns(CLOCK_THREAD_CPUTIME_ID);
    }
    return now;
}

static void *pool_thread(void *number) {
    unsigned seed = (unsigned)(uintptr_t)number;
    pthread_barrier_wait(&begin);
    for (;;) {
        // Between nothing and twice the distance.
        uint64_t turn_ns = now_ns(CLOCK_MONOTONIC);
        turn_ns += (uint64_t)(2.0 * every_us * 1000 * rand_r(&seed) / RAND_MAX);
        if (turn_ns >= end_ns) return NULL;
        struct timespec turn = {turn_ns / 1000000000, turn_ns % 1000000000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &turn, NULL);
        uint64_t before_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
        worked_ns += pool_work(before_ns + work_us * 1000) - before_ns;
    }
}

static int usage(void) {
    fprintf(stderr, "usage: pool [--threads N] [--work-us N] [--every-us N] [--seconds N] [--on-signal 1]\n");
    return 2;
}

int main(int argc, char **argv) {
    const struct { const char *name; uint64_t *value; } options[] = {
        {"--threads", &threads}, {"--work-us", &work_us}, {"--every-us", &every_us},
        {"--seconds", &seconds}, {"--on-signal", &on_signal},
    };
    for (int i = 1; i < argc; i += 2) {
        uint64_t *value = NULL;
        for (size_t o = 0; o < sizeof(options) / sizeof(options[0]); o++)
            if (strcmp(argv[i], options[o].name) == 0) value = options[o].value;
        if (!value || i + 1 == argc || !(*value = result_amount(argv[i + 1]))) return usage();
    }
    if (threads > THREADS_MAX) return usage();
    static pthread_t handles[THREADS_MAX];
    sigset_t wanted;
    int signal;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &wanted, NULL);
    pthread_barrier_init(&begin, NULL, threads + 1);
    for (uint64_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, pool_thread, (void *)(uintptr_t)(i + 1))) return 1;
    if (on_signal) {
        puts("ready");
        fflush(stdout);
        sigwait(&wanted, &signal);
    }
    uint64_t before_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    end_ns = now_ns(CLOCK_MONOTONIC) + seconds * 1000000000;
    pthread_barrier_wait(&begin);
    for (uint64_t i = 0; i < threads; i++) pthread_join(handles[i], NULL);
    uint64_t cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - before_ns;
    printf("%llu %llu\n", (unsigned long long)worked_ns, (unsigned long long)cpu_ns);
    return 0;
}
