// The result line that each workload prints and `whit bench record` reads:
//
//   result workload=NAME threads=T iterations=N operations=K seconds=S operations_per_s=R
//          user_s=U system_s=V
//
// (one line, here broken in two). `iterations` is the requested amount and decides the work alone;
// `operations` is the amount that was done. `seconds` is the time of the main loop alone, from
// `result_begin` to `result_end`. The CPU times are those of the whole process and of the children
// that it has waited for, so that a recorder's own CPU time can be told apart from those of its
// target.

#ifndef WHIT_WORKLOADS_RESULT_H
#define WHIT_WORKLOADS_RESULT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

// Largest number of threads that any workload takes.
enum { RESULT_MAX_THREADS = 4096 };

struct result_timer {
    struct timespec begin;
};

static inline struct result_timer result_begin(void) {
    struct result_timer timer;
    clock_gettime(CLOCK_MONOTONIC, &timer.begin);
    return timer;
}

static inline double result_seconds(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

static inline double result_end(struct result_timer timer) {
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - timer.begin.tv_sec) +
           (double)(end.tv_nsec - timer.begin.tv_nsec) * 1e-9;
}

static inline void result_print(const char *workload, unsigned threads, uint64_t iterations,
                                uint64_t operations, double seconds) {
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    printf("result workload=%s threads=%u iterations=%llu operations=%llu seconds=%.6f "
           "operations_per_s=%.1f user_s=%.6f system_s=%.6f\n",
           workload, threads, (unsigned long long)iterations, (unsigned long long)operations,
           seconds, seconds > 0 ? (double)operations / seconds : 0.0,
           result_seconds(own.ru_utime) + result_seconds(children.ru_utime),
           result_seconds(own.ru_stime) + result_seconds(children.ru_stime));
}

// A positive number, or 0 for anything else.
static inline uint64_t result_amount(const char *text) {
    char *end;
    if (!text || *text < '0' || *text > '9') return 0;
    const unsigned long long value = strtoull(text, &end, 10);
    return *end == '\0' ? value : 0;
}

// A number of threads within bounds, or 0 for anything else.
static inline unsigned result_threads(const char *text) {
    const uint64_t value = result_amount(text);
    return value <= RESULT_MAX_THREADS ? (unsigned)value : 0;
}

#endif
