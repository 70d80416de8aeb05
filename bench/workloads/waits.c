// Threads that wait in all ways, each with the kernel's own counts of its waits: the yardstick of
// `whit switches`.
//
//   waits [--iterations N]
//
// A pair on one CPU hands a token to and fro by futex, N times each, so that each of them has to wait.
// One thread sleeps N/10 times for 0.1 ms;
// one gives up the CPU N times; three compute, which is more than two CPUs have room for. For each, a
// line:
//
//   thread tid=T begin_ns=B end_ns=E voluntary=V involuntary=I cpu_ns=C run_delay_ns=D timeslices=S
//
// The start and end times are those of CLOCK_MONOTONIC; the duration behind them is their
// difference. Both ends are taken such that no switch lies between the reading of the clock and
// those of the counts.

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "placement.h"
#include "result.h"

enum { THREADS = 7 };

struct counts {
    uint64_t now_ns, voluntary, involuntary, cpu_ns, run_delay_ns, timeslices;
};

struct worker {
    pthread_t thread;
    void (*work)(int);
    int side;
    long tid;
    struct counts begin, end;
};

static uint64_t iterations = 1000;
static _Atomic int turn;
static pthread_barrier_t all_here;

static uint64_t clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

// From /proc/thread-self/schedstat: time spent runnable, waiting for a CPU, and how often the thread came onto one.
static void read_schedstat(struct counts *counts) {
    char text[128];
    const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    const ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    unsigned long long run, delay, slices;
    if (size <= 0) return;
    text[size] = '\0';
    if (sscanf(text, "%llu %llu %llu", &run, &delay, &slices) != 3) return;
    counts->run_delay_ns = delay;
    counts->timeslices = slices;
}

static struct counts take_counts(void) {
    for (;;) {
        struct rusage before, after;
        struct counts counts = {0};
        getrusage(RUSAGE_THREAD, &before);
        counts.now_ns = clock_ns(CLOCK_MONOTONIC);
        counts.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        read_schedstat(&counts);
        getrusage(RUSAGE_THREAD, &after);
        counts.voluntary = (uint64_t)before.ru_nvcsw;
        counts.involuntary = (uint64_t)before.ru_nivcsw;
        if (before.ru_nvcsw == after.ru_nvcsw && before.ru_nivcsw == after.ru_nivcsw) return counts;
    }
}

__attribute__((noinline)) static void play(int side) {
    for (uint64_t i = 0; i < iterations; i++) {
        while (atomic_load(&turn) != side)
            syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, 1 - side, NULL, NULL, 0);
        atomic_store(&turn, 1 - side);
        syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

__attribute__((noinline)) static void sleep_often(int unused) {
    (void)unused;
    const struct timespec time = {0, 100000};
    for (uint64_t i = 0; i < iterations / 10; i++) clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

__attribute__((noinline)) static void yield_often(int unused) {
    (void)unused;
    for (uint64_t i = 0; i < iterations; i++) sched_yield();
}

__attribute__((noinline)) static void compute(int unused) {
    (void)unused;
    for (uint64_t i = 0; i < iterations * 20000; i++) __asm__ volatile("" : : "r"(i) : "memory");
}

static void *run(void *argument) {
    struct worker *worker = argument;
    worker->tid = syscall(SYS_gettid);
    // Where each has its own CPU, the token may be back before they come to wait.
    cpu_set_t allowed;
    if (worker->work == play && sched_getaffinity(0, sizeof allowed, &allowed) == 0) placement_pin(&allowed, 0);
    pthread_barrier_wait(&all_here);
    worker->begin = take_counts();
    worker->work(worker->side);
    worker->end = take_counts();
    return NULL;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--iterations") == 0) iterations = result_amount(argv[2]);
    else if (argc != 1) iterations = 0;
    if (iterations == 0) {
        fprintf(stderr, "usage: waits [--iterations N]\n");
        return 2;
    }
    struct worker workers[THREADS] = {
        {.work = play, .side = 0}, {.work = play, .side = 1}, {.work = sleep_often},
        {.work = yield_often},     {.work = compute},         {.work = compute},
        {.work = compute},
    };
    pthread_barrier_init(&all_here, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&workers[i].thread, NULL, run, &workers[i]) != 0) return 1;
    for (int i = 0; i < THREADS; i++) pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++) {
        const struct counts *begin = &workers[i].begin, *end = &workers[i].end;
        printf("thread tid=%ld begin_ns=%llu end_ns=%llu voluntary=%llu involuntary=%llu cpu_ns=%llu "
               "run_delay_ns=%llu timeslices=%llu\n",
               workers[i].tid, (unsigned long long)begin->now_ns, (unsigned long long)end->now_ns,
               (unsigned long long)(end->voluntary - begin->voluntary),
               (unsigned long long)(end->involuntary - begin->involuntary),
               (unsigned long long)(end->cpu_ns - begin->cpu_ns),
               (unsigned long long)(end->run_delay_ns - begin->run_delay_ns),
               (unsigned long long)(end->timeslices - begin->timeslices));
    }
    return 0;
}
