// Threads that wait, each in a function of its own name, for as long as the process is there.
//
//   blocked
//
// One line for each says its function and its thread: `in_futex`, `in_pipe`, `in_sleep`, and `in_input`, which waits for a
// byte of standard input, then logs `woken NANOSECONDS` (CLOCK_MONOTONIC) and waits for good in
// `in_input_again`. The main thread waits in `pause`. Killing the process ends it.

#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int word;
static int no_input[2];

// Behind a call: keeps the compiler from leaving the frame before the call.
#define STAY() __asm__ volatile("" ::: "memory")

__attribute__((noinline)) static void in_futex(void) {
    for (;;) {
        syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0);
        STAY();
    }
}

__attribute__((noinline)) static void in_pipe(void) {
    // Not the code of in_input_again, which the compiler would take for the same function.
    char bytes[2];
    for (;;) {
        if (read(no_input[0], bytes, sizeof(bytes)) != 1)
            abort();
        STAY();
    }
}

__attribute__((noinline)) static void in_sleep(void) {
    struct timespec long_time = {1000000, 0};
    for (;;) {
        nanosleep(&long_time, NULL);
        STAY();
    }
}

__attribute__((noinline)) static void in_input_again(void) {
    char byte;
    for (;;) {
        if (read(no_input[0], &byte, 1) != 1)
            abort();
        STAY();
    }
}

__attribute__((noinline)) static void in_input(void) {
    char byte;
    struct timespec now;
    if (read(STDIN_FILENO, &byte, 1) != 1)
        abort();
    clock_gettime(CLOCK_MONOTONIC, &now);
    printf("woken %lld\n", (long long)now.tv_sec * 1000000000 + now.tv_nsec);
    fflush(stdout);
    in_input_again();
    STAY();
}

struct role {
    const char *name;
    void (*wait)(void);
};

static const struct role ROLES[] = {
    {"in_futex", in_futex},
    {"in_pipe", in_pipe},
    {"in_sleep", in_sleep},
    {"in_input", in_input},
};

static void *play(void *role_of_thread) {
    const struct role *role = role_of_thread;
    printf("%s %ld\n", role->name, (long)syscall(SYS_gettid));
    fflush(stdout);
    role->wait();
    return NULL;
}

int main(void) {
    if (pipe(no_input))
        abort();
    for (unsigned i = 0; i < sizeof(ROLES) / sizeof(ROLES[0]); i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, play, (void *)&ROLES[i]))
            abort();
    }
    for (;;)
        pause();
}
