// A pipeline of three stages with a planted slow one: the yardstick of `whit why`.
//
//   pipeline [--iterations N]
//
// Threads `read`, `transform` and `write` hand N items on through queues of one item. `transform` computes ten times
// as long for each item as the others together, so that the time of the program is its time. For each stage, a line:
//
//   stage name=NAME tid=T cpu_ns=C
//
// with the thread's own CPU time from its first item to its last.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "result.h"

enum { STAGES = 3, FAST_US = 200, SLOW_US = 4000 };

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int is_full;
};

struct stage {
    const char *name;
    void (*work)(void);
    struct queue *from, *to;
    pthread_t thread;
    long tid;
    uint64_t cpu_ns;
};

static uint64_t iterations = 100;
static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

// By CPU time: a thread that waits for a CPU has as much to do afterwards.
static inline __attribute__((always_inline)) void compute(uint64_t us) {
    const uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + us * 1000;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 5000; i++) sink += (uint64_t)i * sink;
}

static __attribute__((noinline)) void read_item(void) { compute(FAST_US); }
static __attribute__((noinline)) void transform_item(void) { compute(SLOW_US); }
static __attribute__((noinline)) void write_item(void) { compute(FAST_US); }

static __attribute__((noinline)) void take_item(struct queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    while (!queue->is_full) pthread_cond_wait(&queue->changed, &queue->mutex);
    queue->is_full = 0;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

static __attribute__((noinline)) void put_item(struct queue *queue) {
    pthread_mutex_lock(&queue->mutex);
    while (queue->is_full) pthread_cond_wait(&queue->changed, &queue->mutex);
    queue->is_full = 1;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->mutex);
}

static void *run_stage(void *argument) {
    struct stage *stage = argument;
    stage->tid = gettid();
    pthread_setname_np(pthread_self(), stage->name);
    for (uint64_t i = 0; i < iterations; i++) {
        if (stage->from) take_item(stage->from);
        const uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        stage->work();
        stage->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
        if (stage->to) put_item(stage->to);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "--iterations")) iterations = result_amount(argv[2]);
    if ((argc != 1 && argc != 3) || !iterations) {
        fprintf(stderr, "usage: pipeline [--iterations N]\n");
        return 2;
    }
    struct queue queues[STAGES - 1];
    for (int i = 0; i < STAGES - 1; i++) {
        pthread_mutex_init(&queues[i].mutex, NULL);
        pthread_cond_init(&queues[i].changed, NULL);
        queues[i].is_full = 0;
    }
    struct stage stages[STAGES] = {
        {.name = "read", .work = read_item, .to = &queues[0]},
        {.name = "transform", .work = transform_item, .from = &queues[0], .to = &queues[1]},
        {.name = "write", .work = write_item, .from = &queues[1]},
    };
    const struct result_timer timer = result_begin();
    for (int i = 0; i < STAGES; i++)
        pthread_create(&stages[i].thread, NULL, run_stage, &stages[i]);
    for (int i = STAGES - 1; i >= 0; i--) pthread_join(stages[i].thread, NULL);
    const double seconds = result_end(timer);
    for (int i = 0; i < STAGES; i++)
        printf("stage name=%s tid=%ld cpu_ns=%llu\n", stages[i].name, stages[i].tid,
               (unsigned long long)stages[i].cpu_ns);
    result_print("pipeline", STAGES, iterations, iterations, seconds);
    return 0;
}
