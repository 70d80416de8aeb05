// A storm of voluntary context switches: threads that give up the CPU over and over.
//
//   yield [--iterations N] [--threads T] [--call sched_yield|sleep0] [--placement free|pinned]
//
// Each thread calls N times: `sched_yield`, which switches as soon as there are more threads than
// CPUs, or `sleep0`, a sleep of no time at all, which arms a timer and is woken by it. `pinned` keeps each thread on a CPU of
// its own turn: the first on the first, the second on the next, and around.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "placement.h"
#include "result.h"

static uint64_t iterations = 100 * 1000;
static bool sleeps = false;
static bool pinned = false;
// CPUs that the process may use.
static cpu_set_t allowed;

// The system call behind the C library's sleep(0).
__attribute__((noinline)) static void sleep_zero(void) {
    const struct timespec none = {0, 0};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &none, NULL);
}

__attribute__((noinline)) static void yield_once(void) { sched_yield(); }

static void *storm(void *number) {
    const int error = pinned ? placement_pin(&allowed, (unsigned)(uintptr_t)number) : 0;
    if (error != 0) {
        fprintf(stderr, "yield: cannot pin a thread: %s\n", strerror(error));
        exit(1);
    }
    if (sleeps) {
        for (uint64_t i = 0; i < iterations; i++) sleep_zero();
    } else {
        for (uint64_t i = 0; i < iterations; i++) yield_once();
    }
    return NULL;
}

static int usage(void) {
    fprintf(stderr,
            "usage: yield [--iterations N] [--threads T] [--call sched_yield|sleep0] "
            "[--placement free|pinned], T at most %d\n",
            RESULT_MAX_THREADS);
    return 2;
}

int main(int argc, char **argv) {
    unsigned threads = 4;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool ok;
        if (strcmp(argv[i], "--iterations") == 0) ok = (iterations = result_amount(value)) != 0;
        else if (strcmp(argv[i], "--threads") == 0) ok = (threads = result_threads(value)) != 0;
        else if (strcmp(argv[i], "--call") == 0) {
            sleeps = strcmp(value, "sleep0") == 0;
            ok = sleeps || strcmp(value, "sched_yield") == 0;
        } else if (strcmp(argv[i], "--placement") == 0) ok = placement_read(value, &pinned);
        else ok = false;
        if (!ok) return usage();
    }
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        perror("yield: CPUs");
        return 1;
    }
    pthread_t *handles = calloc(threads, sizeof *handles);
    if (!handles) {
        perror("yield: memory");
        return 1;
    }
    const struct result_timer timer = result_begin();
    for (unsigned t = 0; t < threads; t++) {
        int error = pthread_create(&handles[t], NULL, storm, (void *)(uintptr_t)t);
        if (error != 0) {
            fprintf(stderr, "yield: pthread_create: %s\n", strerror(error));
            return 1;
        }
    }
    for (unsigned t = 0; t < threads; t++) pthread_join(handles[t], NULL);
    const double seconds = result_end(timer);
    result_print(sleeps ? "sleep0" : "yield", threads, iterations, iterations * threads, seconds);
    free(handles);
    return 0;
}
