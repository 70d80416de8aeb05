// Mutexes that are waited for a known number of times: the yardstick of `whit locks`.
//
//   mutexes [--rounds N]
//
// In each of N rounds (50 if not given), owners hold two locks of the program's data, and waiters ask for them
// meanwhile. One waits for `slow_lock`, which its owner holds for 3 ms in hold_slow(). Two wait for `table.lock`, which
// its owner holds for 0.5 ms in hold_fast(). For each lock, a line:
//
//   lock name=NAME waits=W wait_ns=T max_ns=M
//
// `waits` is how often waiters left their CPUs inside pthread_mutex_lock(), by the kernel's own count. The times are
// those between a look at the clock before and one behind the call.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "result.h"

enum { WAITERS = 3 };

pthread_mutex_t slow_lock = PTHREAD_MUTEX_INITIALIZER;
struct {
    uint64_t entries[4];
    pthread_mutex_t lock;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t rounds = 50;

// One waiter of a lock. Bytes go through pipes: a wait for them is not one for a lock.
struct waiter {
    const char *name;
    pthread_mutex_t *lock;
    void (*take)(struct waiter *);
    pthread_t thread;
    int begin[2], done[2];
    uint64_t waits, wait_ns, max_ns;
};

struct owner {
    const char *name;
    void (*hold)(void);
    struct waiter *waiters;
    int count;
    pthread_t thread;
};

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t voluntary(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return (uint64_t)usage.ru_nvcsw;
}

static void pause_for(long nanoseconds) {
    const struct timespec time = {0, nanoseconds};
    nanosleep(&time, NULL);
}

static void pass(int end) {
    if (write(end, "", 1) != 1) exit(1);
}

static void await(int end) {
    char got;
    if (read(end, &got, 1) != 1) exit(1);
}

struct look {
    uint64_t voluntary, now_ns;
};

static struct look look(void) { return (struct look){voluntary(), now_ns()}; }

// The clock is read next to the call, on both sides.
static void count(struct waiter *waiter, struct look before, uint64_t end_ns) {
    const uint64_t waits = voluntary() - before.voluntary, took = end_ns - before.now_ns;
    if (waits == 0) return;
    waiter->waits += waits;
    waiter->wait_ns += took;
    if (took > waiter->max_ns) waiter->max_ns = took;
}

// The call that unlocks is the last one of none of these functions, so that they stand in its call chain.
#define NO_TAIL_CALL() __asm__ volatile("" : : : "memory")

__attribute__((noinline)) static void take_slow(struct waiter *waiter) {
    const struct look before = look();
    pthread_mutex_lock(&slow_lock);
    count(waiter, before, now_ns());
    pthread_mutex_unlock(&slow_lock);
    NO_TAIL_CALL();
}

__attribute__((noinline)) static void take_fast(struct waiter *waiter) {
    const struct look before = look();
    pthread_mutex_lock(&table.lock);
    count(waiter, before, now_ns());
    pthread_mutex_unlock(&table.lock);
    NO_TAIL_CALL();
}

static void *wait_often(void *argument) {
    struct waiter *waiter = argument;
    prctl(PR_SET_NAME, waiter->name);
    for (uint64_t i = 0; i < rounds; i++) {
        await(waiter->begin[0]);
        waiter->take(waiter);
        pass(waiter->done[1]);
    }
    return NULL;
}

__attribute__((noinline)) static void hold_slow(void) {
    pause_for(3000000);
    pthread_mutex_unlock(&slow_lock);
    NO_TAIL_CALL();
}

__attribute__((noinline)) static void hold_fast(void) {
    pause_for(500000);
    pthread_mutex_unlock(&table.lock);
    NO_TAIL_CALL();
}

static void *hold_often(void *argument) {
    const struct owner *owner = argument;
    prctl(PR_SET_NAME, owner->name);
    for (uint64_t i = 0; i < rounds; i++) {
        pthread_mutex_lock(owner->waiters->lock);
        for (int w = 0; w < owner->count; w++) pass(owner->waiters[w].begin[1]);
        owner->hold();
        for (int w = 0; w < owner->count; w++) await(owner->waiters[w].done[0]);
    }
    return NULL;
}

static void print(const char *name, const struct waiter *waiters, int count) {
    uint64_t waits = 0, wait_ns = 0, max_ns = 0;
    for (int w = 0; w < count; w++) {
        waits += waiters[w].waits;
        wait_ns += waiters[w].wait_ns;
        if (waiters[w].max_ns > max_ns) max_ns = waiters[w].max_ns;
    }
    printf("lock name=%s waits=%llu wait_ns=%llu max_ns=%llu\n", name, (unsigned long long)waits,
           (unsigned long long)wait_ns, (unsigned long long)max_ns);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--rounds") == 0) rounds = result_amount(argv[2]);
    else if (argc != 1) rounds = 0;
    if (rounds == 0) {
        fprintf(stderr, "usage: mutexes [--rounds N]\n");
        return 2;
    }
    static struct waiter waiters[WAITERS] = {
        {.name = "slow-waiter", .lock = &slow_lock, .take = take_slow},
        {.name = "fast-waiter", .lock = &table.lock, .take = take_fast},
        {.name = "fast-waiter", .lock = &table.lock, .take = take_fast},
    };
    struct owner owners[2] = {
        {.name = "slow-owner", .hold = hold_slow, .waiters = waiters, .count = 1},
        {.name = "fast-owner", .hold = hold_fast, .waiters = waiters + 1, .count = 2},
    };
    for (int w = 0; w < WAITERS; w++) {
        if (pipe(waiters[w].begin) || pipe(waiters[w].done)) return 1;
        if (pthread_create(&waiters[w].thread, NULL, wait_often, &waiters[w]) != 0) return 1;
    }
    for (int o = 0; o < 2; o++)
        if (pthread_create(&owners[o].thread, NULL, hold_often, &owners[o]) != 0) return 1;
    for (int o = 0; o < 2; o++) pthread_join(owners[o].thread, NULL);
    for (int w = 0; w < WAITERS; w++) pthread_join(waiters[w].thread, NULL);
    print("slow_lock", waiters, 1);
    print("table", waiters + 1, 2);
    return 0;
}
