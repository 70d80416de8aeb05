// Waits whose lengths the caller sets: the yardstick of `whit diff`.
//
//   planted [--seconds S] [--lock US] [--read US] [--query US] [--spin]
//
// For S seconds (2 if not given), every 4 ms each of three pairs of threads does one unit of work:
//
// - want_lock() waits for a mutex that another thread holds for the time of --lock (1000 us); with --spin it spins.
// - read_answer() waits in read() for a byte that another thread writes after the time of --read (1000 us).
// - handle_query() sleeps for the time of --query (1000 us), behind a tenth of that on a CPU.
//
// A second mutex and a second reader wait for 700 us in every run: want_other_lock(), read_other(). At the end:
//
//   units N
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { PERIOD_NS = 4000000, OTHER_US = 700 };

static uint64_t seconds = 2, lock_us = 1000, read_us = 1000, query_us = 1000;
static int spins;
static atomic_uint units;

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void sleep_until(uint64_t ns) {
    struct timespec time = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0) {
    }
}

// One lock with the thread that holds it and the one that wants it, or one pipe with its writer and its reader.
struct pair {
    const char *name;
    void (*wait)(struct pair *);
    const uint64_t *us;
    pthread_mutex_t mutex;
    pthread_spinlock_t spin;
    int is_lock, go[2], answer[2];
    pthread_t server, client;
};

static void send_byte(int fd) {
    if (write(fd, "x", 1) != 1) {
        exit(1);
    }
}

static int take_byte(int fd) {
    char byte;
    return read(fd, &byte, 1) == 1;
}

// Macros: the function that wants the lock is the call site.
#define TAKE(pair)                                                                                             \
    (spins && (pair)->us == &lock_us ? pthread_spin_lock(&(pair)->spin) : pthread_mutex_lock(&(pair)->mutex))
#define RELEASE(pair)                                                                                          \
    (spins && (pair)->us == &lock_us ? pthread_spin_unlock(&(pair)->spin) : pthread_mutex_unlock(&(pair)->mutex))

__attribute__((noinline)) static void want_lock(struct pair *pair) {
    TAKE(pair);
    RELEASE(pair);
    __asm__ volatile("");
}

__attribute__((noinline)) static void want_other_lock(struct pair *pair) {
    TAKE(pair);
    RELEASE(pair);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) static void read_answer(struct pair *pair) {
    take_byte(pair->answer[0]);
    __asm__ volatile("");
}

__attribute__((noinline)) static void read_other(struct pair *pair) {
    take_byte(pair->answer[0]);
    __asm__ volatile("" ::: "memory");
}

// Called once a period; the server holds the lock, or will answer.
static void *client(void *argument) {
    struct pair *pair = argument;
    prctl(PR_SET_NAME, pair->name);
    while (take_byte(pair->go[0])) {
        pair->wait(pair);
    }
    return NULL;
}

static void *server(void *argument) {
    struct pair *pair = argument;
    prctl(PR_SET_NAME, "server");
    uint64_t begin = now_ns(), end = begin + seconds * 1000000000u;
    for (uint64_t at = begin; at < end; at += PERIOD_NS) {
        sleep_until(at);
        if (pair->is_lock) {
            TAKE(pair);
        }
        uint64_t from = now_ns();
        send_byte(pair->go[1]);
        sleep_until(from + *pair->us * 1000);
        if (pair->is_lock) {
            RELEASE(pair);
        } else {
            send_byte(pair->answer[1]);
        }
    }
    close(pair->go[1]);
    return NULL;
}

__attribute__((noinline)) void handle_query(uint64_t number) {
    uint64_t from = now_ns();
    while (now_ns() < from + query_us * 100) {
    }
    sleep_until(from + query_us * 1100);
    __asm__ volatile("" ::"r"(number));
}

static void *queries(void *argument) {
    (void)argument;
    prctl(PR_SET_NAME, "queries");
    uint64_t begin = now_ns(), end = begin + seconds * 1000000000u;
    for (uint64_t at = begin; at < end; at += PERIOD_NS) {
        sleep_until(at);
        handle_query(at);
        atomic_fetch_add(&units, 1);
    }
    return NULL;
}

int main(int argc, char **argv) {
    for (int at = 1; at < argc; at++) {
        uint64_t value = at + 1 < argc ? strtoull(argv[at + 1], NULL, 10) : 0;
        if (strcmp(argv[at], "--spin") == 0) {
            spins = 1;
            continue;
        }
        if (strcmp(argv[at], "--seconds") == 0) {
            seconds = value;
        } else if (strcmp(argv[at], "--lock") == 0) {
            lock_us = value;
        } else if (strcmp(argv[at], "--read") == 0) {
            read_us = value;
        } else if (strcmp(argv[at], "--query") == 0) {
            query_us = value;
        } else {
            fprintf(stderr, "planted: what is %s?\n", argv[at]);
            return 2;
        }
        at++;
    }
    static const uint64_t other_us = OTHER_US;
    static struct pair pairs[] = {
        {.name = "lock", .wait = want_lock, .us = &lock_us, .is_lock = 1},
        {.name = "other-lock", .wait = want_other_lock, .us = &other_us, .is_lock = 1},
        {.name = "read", .wait = read_answer, .us = &read_us},
        {.name = "other-read", .wait = read_other, .us = &other_us},
    };
    enum { PAIRS = sizeof pairs / sizeof pairs[0] };
    for (int at = 0; at < PAIRS; at++) {
        struct pair *pair = &pairs[at];
        pthread_mutex_init(&pair->mutex, NULL);
        pthread_spin_init(&pair->spin, PTHREAD_PROCESS_PRIVATE);
        if (pipe(pair->go) != 0 || pipe(pair->answer) != 0) {
            return 1;
        }
        pthread_create(&pair->client, NULL, client, pair);
        pthread_create(&pair->server, NULL, server, pair);
    }
    pthread_t thread;
    pthread_create(&thread, NULL, queries, NULL);
    pthread_join(thread, NULL);
    for (int at = 0; at < PAIRS; at++) {
        pthread_join(pairs[at].server, NULL);
        pthread_join(pairs[at].client, NULL);
    }
    printf("units %u\n", atomic_load(&units));
    return 0;
}
