// A program whose CPU time and whose elapsed time tell different stories: long alone, then shortly on all CPUs.
//
//   phases [--iterations MS] [--threads T]
//
// `serial_part` burns 9 × MS milliseconds of CPU time on one thread. Then T threads, thread i bound to the i-th CPU
// of the process, burn MS milliseconds of CPU time each in `parallel_part`, all from the same moment on. Nine parts
// of the elapsed time are serial and one is parallel; nine parts of the CPU time are serial and T are parallel.
// Where others take a CPU away, the parallel part takes longer, up to T parts.

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "result.h"

static uint64_t part_ms = 100;
static pthread_barrier_t start;
static uint64_t sink;

static uint64_t cpu_time_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

__attribute__((always_inline)) static inline void burn(uint64_t ms) {
    const uint64_t end = cpu_time_ns() + ms * 1000000u;
    uint64_t value = 1;
    // Some 200 us between two readings: the C library keeps no frame pointer in its call of the clock, so the chain of
    // a sample there lacks the part.
    while (cpu_time_ns() < end)
        for (int i = 0; i < 100000; i++) value = (value ^ (value >> 29)) * 0xBF58476D1CE4E5B9ull + (unsigned)i;
    __atomic_fetch_add(&sink, value, __ATOMIC_RELAXED);
}

__attribute__((noinline)) static void serial_part(void) {
    burn(9 * part_ms);
    __asm__ volatile("");  // No tail call: the function stays in the call chain.
}

__attribute__((noinline)) static void parallel_part(void) {
    burn(part_ms);
    __asm__ volatile("");
}

// Binds the thread to the n-th CPU that the process may use.
static void bind_to(unsigned n) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) == 0) return;
    n %= (unsigned)CPU_COUNT(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all) || n-- > 0) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

static void *worker(void *number) {
    bind_to((unsigned)(uintptr_t)number);
    pthread_barrier_wait(&start);
    parallel_part();
    return NULL;
}

static int usage(void) {
    fprintf(stderr, "usage: phases [--iterations MS] [--threads T], T at most %d\n", RESULT_MAX_THREADS);
    return 2;
}

int main(int argc, char **argv) {
    unsigned threads = 2;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool ok;
        if (strcmp(argv[i], "--iterations") == 0) ok = (part_ms = result_amount(value)) != 0;
        else if (strcmp(argv[i], "--threads") == 0) ok = (threads = result_threads(value)) != 0;
        else ok = false;
        if (!ok) return usage();
    }
    pthread_t *handles = calloc(threads, sizeof *handles);
    if (!handles || pthread_barrier_init(&start, NULL, threads) != 0) {
        perror("phases: threads");
        return 1;
    }
    const struct result_timer timer = result_begin();
    serial_part();
    for (unsigned t = 0; t < threads; t++) {
        const int error = pthread_create(&handles[t], NULL, worker, (void *)(uintptr_t)t);
        if (error != 0) {
            fprintf(stderr, "phases: pthread_create: %s\n", strerror(error));
            return 1;
        }
    }
    for (unsigned t = 0; t < threads; t++) pthread_join(handles[t], NULL);
    result_print("phases", threads, part_ms, threads, result_end(timer));
    free(handles);
    return 0;
}
