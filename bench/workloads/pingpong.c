// Futex ping-pong: pairs of threads that hand a token to and fro, each asleep while the other
// works. Context switches and wake-ups, and hardly anything else.
//
//   pingpong [--iterations N] [--threads T] [--placement free|pinned]
//
// Every pair makes N rounds of two passes each; T is even. `--rounds` is another name for
// `--iterations`. `pinned` keeps both threads of a pair on one CPU, and pairs take turns among CPUs.

#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "placement.h"
#include "result.h"

// Pairs do not share cache lines.
struct pair {
    // The thread that may run: 0 or 1.
    _Alignas(64) _Atomic int turn;
};

struct player {
    pthread_t thread;
    struct pair *pair;
    unsigned number;
    int side;
};

static uint64_t rounds = 100 * 1000;
static bool pinned = false;
// CPUs that the process may use.
static cpu_set_t allowed;

static long futex(_Atomic int *word, int operation, int value) {
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

// The kernel compares the word with `not_yet` under its own lock: a wake-up between the load
// and the system call is not lost.
__attribute__((noinline)) static void await_turn(struct pair *pair, int mine) {
    int not_yet = 1 - mine;
    while (atomic_load(&pair->turn) != mine) futex(&pair->turn, FUTEX_WAIT, not_yet);
}

__attribute__((noinline)) static void pass_on(struct pair *pair, int to) {
    atomic_store(&pair->turn, to);
    futex(&pair->turn, FUTEX_WAKE, 1);
}

static void *play(void *argument) {
    struct player *player = argument;
    const int error = pinned ? placement_pin(&allowed, player->number / 2) : 0;
    if (error != 0) {
        fprintf(stderr, "pingpong: cannot pin a thread: %s\n", strerror(error));
        exit(1);
    }
    for (uint64_t i = 0; i < rounds; i++) {
        await_turn(player->pair, player->side);
        pass_on(player->pair, 1 - player->side);
    }
    return NULL;
}

static int usage(void) {
    fprintf(stderr,
            "usage: pingpong [--iterations N] [--threads T] [--placement free|pinned], "
            "T even and at most %d\n",
            RESULT_MAX_THREADS);
    return 2;
}

int main(int argc, char **argv) {
    unsigned threads = 2;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool ok;
        if (strcmp(argv[i], "--iterations") == 0 || strcmp(argv[i], "--rounds") == 0)
            ok = (rounds = result_amount(value)) != 0;
        else if (strcmp(argv[i], "--threads") == 0)
            ok = (threads = result_threads(value)) != 0 && threads % 2 == 0;
        else if (strcmp(argv[i], "--placement") == 0) ok = placement_read(value, &pinned);
        else ok = false;
        if (!ok) return usage();
    }
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
        perror("pingpong: CPUs");
        return 1;
    }
    struct pair *pairs = aligned_alloc(_Alignof(struct pair), threads / 2 * sizeof *pairs);
    struct player *players = calloc(threads, sizeof *players);
    if (!pairs || !players) {
        perror("pingpong: memory");
        return 1;
    }
    for (unsigned p = 0; p < threads / 2; p++) atomic_init(&pairs[p].turn, 0);
    const struct result_timer timer = result_begin();
    // The main thread plays too, so that a single pair is it and one partner.
    for (unsigned t = 0; t < threads; t++) {
        players[t] = (struct player){0, &pairs[t / 2], t, (int)(t % 2)};
        if (t == 0) continue;
        int error = pthread_create(&players[t].thread, NULL, play, &players[t]);
        if (error != 0) {
            fprintf(stderr, "pingpong: pthread_create: %s\n", strerror(error));
            return 1;
        }
    }
    play(&players[0]);
    for (unsigned t = 1; t < threads; t++) pthread_join(players[t].thread, NULL);
    const double seconds = result_end(timer);
    printf("rounds %llu\n", (unsigned long long)rounds);
    result_print("pingpong", threads, rounds, rounds * threads, seconds);
    free(players);
    free(pairs);
    return 0;
}
