// A program that knows for how long it ran on one thread alone, of the time in which any of its threads ran.
//
//   alone [--iterations MS]
//
// `serial_part` runs for 3 × MS milliseconds on the first thread. Then two threads run `parallel_part` for MS
// milliseconds each while the first one waits for them. Each thread reads the clock all the time, and its own CPU time: where
// the clock goes on without it, the thread was on no CPU. So the printed shares are those of this run, on a busy
// machine too. The line
//
//   alone serial_ns=A ran_ns=B cpu_ns=C
//
// has the time of the serial part, the time in which any thread ran, and the CPU time of both parts.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "result.h"

// A reading of both clocks takes less than a microsecond; an interrupt may take some between the two.
enum { GAP_NS = 20000, MAX_RUNS = 1 << 16 };

struct run {
    uint64_t from, to;
};

// The times in which a thread ran.
struct runs {
    struct run *list;
    size_t count;
};

static uint64_t part_ms = 100;
static pthread_barrier_t start;
static uint64_t sink;

static uint64_t read_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

__attribute__((always_inline)) static inline void run(uint64_t ms, struct runs *runs) {
    uint64_t now = read_ns(CLOCK_MONOTONIC), cpu = read_ns(CLOCK_THREAD_CPUTIME_ID), value = 1;
    const uint64_t end = now + ms * 1000000u;
    runs->list[0].from = now;
    runs->count = 1;
    while (now < end) {
        for (int i = 0; i < 2000; i++) value = (value ^ (value >> 29)) * 0xBF58476D1CE4E5B9ull + (unsigned)i;
        const uint64_t then = read_ns(CLOCK_MONOTONIC), used = read_ns(CLOCK_THREAD_CPUTIME_ID);
        const uint64_t passed = then - now, ran = used - cpu;
        if (passed > ran + GAP_NS && runs->count < MAX_RUNS) {
            runs->list[runs->count - 1].to = now + ran;
            runs->list[runs->count++].from = then;
        }
        now = then;
        cpu = used;
    }
    runs->list[runs->count - 1].to = now;
    __atomic_fetch_add(&sink, value, __ATOMIC_RELAXED);
}

__attribute__((noinline)) static void serial_part(struct runs *runs) {
    run(3 * part_ms, runs);
    __asm__ volatile("");  // No tail call: the function stays in the call chain.
}

__attribute__((noinline)) static void parallel_part(struct runs *runs) {
    run(part_ms, runs);
    __asm__ volatile("");
}

static void *worker(void *runs) {
    pthread_barrier_wait(&start);
    parallel_part(runs);
    return NULL;
}

static uint64_t length(const struct runs *runs) {
    uint64_t sum = 0;
    for (size_t i = 0; i < runs->count; i++) sum += runs->list[i].to - runs->list[i].from;
    return sum;
}

// The time in which both ran.
static uint64_t both(const struct runs *a, const struct runs *b) {
    uint64_t sum = 0;
    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        const struct run left = a->list[i], right = b->list[k];
        const uint64_t from = left.from > right.from ? left.from : right.from;
        const uint64_t to = left.to < right.to ? left.to : right.to;
        if (from < to) sum += to - from;
        if (left.to < right.to) i++;
        else k++;
    }
    return sum;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--iterations") == 0) part_ms = result_amount(argv[2]);
    else if (argc != 1) part_ms = 0;
    if (part_ms == 0) {
        fprintf(stderr, "usage: alone [--iterations MS]\n");
        return 2;
    }
    struct runs runs[3];
    for (int i = 0; i < 3; i++) runs[i] = (struct runs){malloc(MAX_RUNS * sizeof(struct run)), 0};
    if (!runs[0].list || !runs[1].list || !runs[2].list || pthread_barrier_init(&start, NULL, 2) != 0) {
        perror("alone: memory");
        return 1;
    }
    const struct result_timer timer = result_begin();
    serial_part(&runs[0]);
    pthread_t threads[2];
    for (int t = 0; t < 2; t++) {
        const int error = pthread_create(&threads[t], NULL, worker, &runs[1 + t]);
        if (error != 0) {
            fprintf(stderr, "alone: pthread_create: %s\n", strerror(error));
            return 1;
        }
    }
    for (int t = 0; t < 2; t++) pthread_join(threads[t], NULL);
    const double seconds = result_end(timer);
    const uint64_t serial = length(&runs[0]), parallel = length(&runs[1]) + length(&runs[2]);
    printf("alone serial_ns=%llu ran_ns=%llu cpu_ns=%llu\n", (unsigned long long)serial,
           (unsigned long long)(serial + parallel - both(&runs[1], &runs[2])), (unsigned long long)(serial + parallel));
    result_print("alone", 2, part_ms, 2, seconds);
    return 0;
}
