// A server that knows its requests: each takes CPU time, waits for a lock, and sleeps, as its number says.
//
//   requests [--requests N] [--threads N] [--empty N]
//
// Each thread calls handle(number) N times (100 by default). A call spins for 200 us, waits for a lock that another
// thread holds for 1 ms in every tenth call, and sleeps for 20 ms in every fiftieth. Every eighth call calls handle()
// once more from within, and every sixteenth leaves a call of leave_early() by longjmp(). The probes begin and end are
// around each call. At the end the program prints its calls, in the order in which they ended, with the times that
// CLOCK_MONOTONIC had inside the call:
//
//   request tid=T number=N begin=NS end=NS
//   left tid=T count=N
//
// With --empty N it calls an empty function N times instead, which the probes cost most:
//
//   empty calls=N ns_per_call=NS
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "result.h"

// A probe with an argument, as sys/sdt.h leaves one: a nop, and a note that says where it is.
#define PROBE(name, argument)                                                                                   \
    __asm__ volatile("990: nop\n"                                                                               \
                     ".pushsection .note.stapsdt,\"\",\"note\"\n"                                               \
                     ".balign 4\n"                                                                              \
                     ".4byte 992f-991f, 994f-993f, 3\n"                                                         \
                     "991: .asciz \"stapsdt\"\n"                                                                \
                     "992: .balign 4\n"                                                                         \
                     "993: .8byte 990b, probes_base, 0\n"                                                       \
                     ".asciz \"requests\", \"" name "\", \"8@%0\"\n"                                            \
                     "994: .balign 4\n"                                                                         \
                     ".popsection\n"                                                                            \
                     :                                                                                          \
                     : "r"(argument))

// Notes count from this address.
__asm__(".pushsection .stapsdt.base,\"a\",\"progbits\"\n"
        "probes_base: .byte 0\n"
        ".popsection\n");

enum { SPIN_NS = 200000, HOLD_NS = 1000000, SLEEP_NS = 20000000, NESTED = 1 << 20, CALLS_MAX = 1 << 16 };

struct call {
    uint64_t number, begin, end;
};

struct server {
    pthread_t thread;
    pid_t tid;
    struct call *calls;
    size_t count, left;
};

static uint64_t requests = 100, threads = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int wanted, held;
static _Atomic int is_over;
static _Thread_local struct server *own;
static _Thread_local jmp_buf way_out;

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void pause_for(long nanoseconds) {
    const struct timespec time = {0, nanoseconds};
    nanosleep(&time, NULL);
}

static void spin(void) {
    const uint64_t begin = now();
    while (now() - begin < SPIN_NS) continue;
}

// Holds the lock for those that are about to wait for it.
static void *hold(void *unused) {
    (void)unused;
    pthread_setname_np(pthread_self(), "holder");
    while (!atomic_load(&is_over)) {
        if (!atomic_load(&wanted)) {
            pause_for(20000);
            continue;
        }
        pthread_mutex_lock(&lock);
        atomic_store(&wanted, 0);
        atomic_store(&held, 1);
        pause_for(HOLD_NS);
        atomic_store(&held, 0);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void wait_for_lock(void) {
    while (!atomic_load(&held)) {
        // It may have been held already, and unseen.
        atomic_store(&wanted, 1);
        pause_for(20000);
    }
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) uint64_t handle(uint64_t number) {
    const uint64_t begin = now();
    spin();
    if (number % 10 == 9 && threads == 1) wait_for_lock();
    if (number % 50 == 49) pause_for(SLEEP_NS);
    if (number % 8 == 7 && number < NESTED) handle(number + NESTED);
    own->calls[own->count++] = (struct call){number, begin, now()};
    return number + 1;
}

__attribute__((noinline)) uint64_t leave_early(uint64_t number) {
    own->left++;
    if (number != 0) longjmp(way_out, 1);
    return number;
}

__attribute__((noinline)) uint64_t empty(uint64_t number) {
    __asm__ volatile("" : "+r"(number));
    return number;
}

static void call_empty(uint64_t calls) {
    const uint64_t begin = now();
    for (uint64_t i = 0; i < calls; i++) empty(i);
    printf("empty calls=%llu ns_per_call=%.1f\n", (unsigned long long)calls, (double)(now() - begin) / (double)calls);
}

__attribute__((noinline)) static void leave(uint64_t number) {
    if (setjmp(way_out) == 0) leave_early(number);
}

static void *serve(void *argument) {
    own = argument;
    own->tid = gettid();
    pthread_setname_np(pthread_self(), "server");
    for (uint64_t i = 0; i < requests; i++) {
        PROBE("begin", i);
        handle(i);
        PROBE("end", i);
        if (i % 16 == 15) leave(i);
    }
    return NULL;
}

int main(int argc, char **argv) {
    uint64_t empty_calls = 0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--requests") == 0) requests = result_amount(argv[i + 1]);
        else if (strcmp(argv[i], "--threads") == 0) threads = result_amount(argv[i + 1]);
        else if (strcmp(argv[i], "--empty") == 0) empty_calls = result_amount(argv[i + 1]);
        else requests = 0;
    }
    if (argc % 2 == 0 || requests == 0 || threads == 0 || requests > CALLS_MAX || threads > RESULT_MAX_THREADS) {
        fprintf(stderr, "usage: requests [--requests N] [--threads N] [--empty N]\n");
        return 2;
    }
    if (empty_calls > 0) {
        call_empty(empty_calls);
        return 0;
    }
    struct server *servers = calloc(threads, sizeof *servers);
    pthread_t holder;
    if (servers == NULL || pthread_create(&holder, NULL, hold, NULL) != 0) return 1;
    for (uint64_t i = 0; i < threads; i++) {
        servers[i].calls = calloc(2 * requests, sizeof *servers[i].calls);
        if (servers[i].calls == NULL || pthread_create(&servers[i].thread, NULL, serve, &servers[i]) != 0) return 1;
    }
    for (uint64_t i = 0; i < threads; i++) pthread_join(servers[i].thread, NULL);
    atomic_store(&is_over, 1);
    pthread_join(holder, NULL);
    for (uint64_t i = 0; i < threads; i++) {
        const struct server *server = &servers[i];
        for (size_t call = 0; call < server->count; call++)
            printf("request tid=%d number=%llu begin=%llu end=%llu\n", server->tid,
                   (unsigned long long)server->calls[call].number, (unsigned long long)server->calls[call].begin,
                   (unsigned long long)server->calls[call].end);
        printf("left tid=%d count=%zu\n", server->tid, server->left);
    }
    return 0;
}
