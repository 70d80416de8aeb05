// Futex ping-pong: two threads that hand a token to and fro, each asleep while the other works.
// Context switches and wake-ups, and hardly anything else.
//
//   pingpong [--rounds N]

#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// Whose turn it is: 0 the main thread's, 1 the partner's.
static _Atomic int turn;
static long rounds = 100 * 1000;

static long futex(_Atomic int *word, int operation, int value) {
    return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

// The kernel compares the word with `not_yet` under its own lock: a wake-up between the load
// and the system call is not lost.
__attribute__((noinline)) static void await_turn(int mine) {
    int not_yet = 1 - mine;
    while (atomic_load(&turn) != mine) futex(&turn, FUTEX_WAIT, not_yet);
}

__attribute__((noinline)) static void pass_on(int to) {
    atomic_store(&turn, to);
    futex(&turn, FUTEX_WAKE, 1);
}

static void *partner(void *unused) {
    (void)unused;
    for (long i = 0; i < rounds; i++) {
        await_turn(1);
        pass_on(0);
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--rounds") == 0) {
        rounds = strtol(argv[2], NULL, 10);
    } else if (argc != 1) {
        fprintf(stderr, "usage: pingpong [--rounds N]\n");
        return 2;
    }
    pthread_t thread;
    int error = pthread_create(&thread, NULL, partner, NULL);
    if (error != 0) {
        fprintf(stderr, "pingpong: pthread_create: %s\n", strerror(error));
        return 1;
    }
    for (long i = 0; i < rounds; i++) {
        await_turn(0);
        pass_on(1);
    }
    pthread_join(thread, NULL);
    printf("rounds %ld\n", rounds);
    return 0;
}
