// Threads that log when they ran, beside a storm of context switches: the yardstick of losses.
//
//   sleeper [--milliseconds N] [--sleepers N] [--storm N] [--rest-us N] [--busy N]
//
// Each sleeper sleeps for 1 ms again and again and moves to the next CPU after every third sleep. It reads
// CLOCK_MONOTONIC in front of each sleep and behind it: at these moments it runs. The storm is N threads on the
// last CPU that hand a token round by futex, a context switch each time; it rests for the given time (0 by
// default) whenever the token has gone round 32 times. By default there are no busy threads; with N, there are N
// on each CPU, which leave little of it to threads of low priority. Everything ends after the given time.
//
// First a line names all threads, for recorders that are given threads:
//
//   threads pid=P sleepers=T,… storm=T,…
//
// Then the program waits for a line, or for the end, of its standard input. At the end each sleeper has a line, with the times in nanoseconds:
//
//   ran tid=T TIME TIME …
//
// Then it closes its standard output, and ends with its standard input.
//
// A wait between two context switches of a sleeper that contains one of these moments is no single wait.

#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "result.h"

enum {
    SLEEP_NS = 1000000,
    // Sleeps on one CPU.
    STAYS = 3,
    // Two for each sleep.
    MOMENTS_PER_MILLISECOND = 2,
    ROUNDS_TO_REST = 32,
    THREADS_MAX = 64,
};

struct worker {
    pthread_t thread;
    _Atomic long tid;
    unsigned number;
    uint64_t *moments;
    uint64_t count;
};

static uint64_t milliseconds = 1000, sleepers = 1, storm = 2, rest_us, busy;
static unsigned cpus[CPU_SETSIZE], cpu_count;
static struct worker workers[3 * THREADS_MAX];
static pthread_barrier_t all_here;
static uint64_t end_ns;
static _Atomic unsigned turn;
static atomic_bool is_over;

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void stay_on(unsigned cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        perror("sleeper: sched_setaffinity");
        exit(1);
    }
}

static void begin(struct worker *worker, const char *name) {
    pthread_setname_np(pthread_self(), name);
    worker->tid = syscall(SYS_gettid);
    pthread_barrier_wait(&all_here);
    pthread_barrier_wait(&all_here);
}

// A recorder of threads ends when they have.
static void *end(void) {
    pthread_barrier_wait(&all_here);
    pthread_barrier_wait(&all_here);
    return NULL;
}

static void *sleep_often(void *argument) {
    struct worker *worker = argument;
    const struct timespec time = {0, SLEEP_NS};
    const uint64_t most = milliseconds * MOMENTS_PER_MILLISECOND;
    begin(worker, "sleeper");
    for (unsigned sleeps = 0; worker->count < most; sleeps++) {
        const uint64_t before = now_ns();
        if (before >= end_ns) break;
        if (sleeps % STAYS == 0) stay_on(cpus[(sleeps / STAYS + worker->number) % cpu_count]);
        worker->moments[worker->count++] = now_ns();
        clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
        worker->moments[worker->count++] = now_ns();
    }
    return end();
}

static void *hand_round(void *argument) {
    struct worker *worker = argument;
    const unsigned mine = worker->number, next = (mine + 1) % (unsigned)storm;
    const struct timespec rest = {(time_t)(rest_us / 1000000), (long)(rest_us % 1000000 * 1000)};
    unsigned rounds = 0;
    begin(worker, "storm");
    stay_on(cpus[cpu_count - 1]);
    while (!is_over) {
        const unsigned now = turn;
        if (now != mine) {
            syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
            continue;
        }
        if (mine == 0 && now_ns() >= end_ns) is_over = 1;
        if (mine == 0 && rest_us && ++rounds % ROUNDS_TO_REST == 0)
            clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
        turn = next;
        syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, storm, NULL, NULL, 0);
    }
    return end();
}

static void *keep_busy(void *argument) {
    struct worker *worker = argument;
    begin(worker, "busy");
    stay_on(cpus[worker->number % cpu_count]);
    while (now_ns() < end_ns) {}
    return end();
}

static int parse(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        const uint64_t amount = result_amount(argv[i + 1]);
        if (strcmp(argv[i], "--milliseconds") == 0) milliseconds = amount;
        else if (strcmp(argv[i], "--sleepers") == 0) sleepers = amount;
        else if (strcmp(argv[i], "--storm") == 0) storm = amount;
        else if (strcmp(argv[i], "--rest-us") == 0) rest_us = amount;
        else if (strcmp(argv[i], "--busy") == 0) busy = amount;
        else return 0;
    }
    return argc % 2 == 1 && milliseconds && sleepers && sleepers <= THREADS_MAX && storm >= 2 &&
           storm <= THREADS_MAX;
}

static int find_cpus(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set)) cpus[cpu_count++] = cpu;
    return cpu_count > 0;
}

static void print_tids(const char *what, const struct worker *first, uint64_t count) {
    printf(" %s=", what);
    for (uint64_t i = 0; i < count; i++) printf("%s%ld", i ? "," : "", first[i].tid);
}

// Starts the threads of a kind, behind those that there are.
static int start(struct worker **next, uint64_t count, void *(*work)(void *), int logs) {
    for (uint64_t i = 0; i < count; i++) {
        struct worker *worker = (*next)++;
        worker->number = (unsigned)i;
        if (logs)
            worker->moments = calloc(milliseconds * MOMENTS_PER_MILLISECOND + 1, sizeof(uint64_t));
        if (logs && !worker->moments) return 0;
        if (pthread_create(&worker->thread, NULL, work, worker) != 0) return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    if (!parse(argc, argv) || !find_cpus() || busy * cpu_count > THREADS_MAX) {
        fprintf(stderr, "usage: sleeper [--milliseconds N] [--sleepers N] [--storm N] [--rest-us N] "
                        "[--busy N]\n");
        return 2;
    }
    const uint64_t busy_count = busy * cpu_count;
    struct worker *last = workers;
    pthread_barrier_init(&all_here, NULL, (unsigned)(sleepers + storm + busy_count) + 1);
    if (!start(&last, sleepers, sleep_often, 1) || !start(&last, storm, hand_round, 0) ||
        !start(&last, busy_count, keep_busy, 0))
        return 1;
    pthread_barrier_wait(&all_here);
    printf("threads pid=%ld", (long)getpid());
    print_tids("sleepers", workers, sleepers);
    print_tids("storm", workers + sleepers, storm);
    printf("\n");
    fflush(stdout);
    for (int c = getchar(); c != EOF && c != '\n';) c = getchar();
    end_ns = now_ns() + milliseconds * 1000000;
    pthread_barrier_wait(&all_here);
    pthread_barrier_wait(&all_here);
    for (uint64_t i = 0; i < sleepers; i++) {
        printf("ran tid=%ld", workers[i].tid);
        for (uint64_t at = 0; at < workers[i].count; at++)
            printf(" %llu", (unsigned long long)workers[i].moments[at]);
        printf("\n");
    }
    fclose(stdout);
    while (getchar() != EOF) {}
    pthread_barrier_wait(&all_here);
    for (struct worker *worker = workers; worker < last; worker++) pthread_join(worker->thread, NULL);
    return 0;
}
