// Threads that wait, each in one way and for one class: the yardstick of the classification of waits.
//
//   wait_classes DIRECTORY [--milliseconds N]
//
// Each thread has the name CLASS:WAY and waits in that way again and again, some N ms in all (1000 if not
// given). The directory is for a file of 32 MiB, which is read past the page cache, written to the disk, and
// mapped. A way that the machine does not have prints `without WAY` to standard error.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "result.h"

enum { STEP_MS = 5, FILE_BYTES = 32 << 20, BLOCK_BYTES = 1 << 16 };

static uint64_t steps = 200;
static const char *directory;
static char path[4096];
// The giver is done: threads that wait for it end.
static _Atomic int is_over;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static int pipe_ends[2], socket_ends[2], poll_ends[2], epoll_ends[2], select_ends[2], event_end, lock_file;

static void pause_for(long nanoseconds) {
    const struct timespec time = {0, nanoseconds};
    nanosleep(&time, NULL);
}

static void step(void) { pause_for(STEP_MS * 1000000l); }

// The thread that others wait for. It gives each of them something, step by step.
static void *give(void *unused) {
    (void)unused;
    prctl(PR_SET_NAME, "giver");
    const uint64_t one = 1;
    for (uint64_t i = 0; i < steps; i++) {
        pthread_mutex_lock(&mutex);
        pthread_rwlock_wrlock(&rwlock);
        flock(lock_file, LOCK_EX);
        step();
        flock(lock_file, LOCK_UN);
        pthread_rwlock_unlock(&rwlock);
        pthread_mutex_unlock(&mutex);
        pthread_mutex_lock(&cond_mutex);
        pthread_cond_broadcast(&cond);
        pthread_mutex_unlock(&cond_mutex);
        sem_post(&semaphore);
        const int ends[] = {pipe_ends[1], socket_ends[1], poll_ends[1], epoll_ends[1], select_ends[1]};
        for (size_t end = 0; end < sizeof ends / sizeof *ends; end++)
            if (write(ends[end], &one, 1) != 1) exit(1);
        if (write(event_end, &one, sizeof one) != sizeof one) exit(1);
        pause_for(100000);
    }
    atomic_store(&is_over, 1);
    pthread_mutex_lock(&cond_mutex);
    pthread_cond_broadcast(&cond);
    pthread_mutex_unlock(&cond_mutex);
    return NULL;
}

static void lock_mutex(void) {
    while (!atomic_load(&is_over)) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        pause_for(50000);
    }
}

static void lock_rwlock(void) {
    while (!atomic_load(&is_over)) {
        pthread_rwlock_rdlock(&rwlock);
        pthread_rwlock_unlock(&rwlock);
        pause_for(50000);
    }
}

static void lock_flock(void) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    while (!atomic_load(&is_over)) {
        flock(file, LOCK_EX);
        flock(file, LOCK_UN);
        pause_for(50000);
    }
    close(file);
}

static void wait_cond(void) {
    pthread_mutex_lock(&cond_mutex);
    while (!atomic_load(&is_over)) pthread_cond_wait(&cond, &cond_mutex);
    pthread_mutex_unlock(&cond_mutex);
}

static void wait_semaphore(void) {
    for (uint64_t i = 0; i < steps; i++) sem_wait(&semaphore);
}

static void sleep_often(void) {
    for (uint64_t i = 0; i < steps; i++) step();
}

static void read_bytes(int end, size_t size) {
    uint64_t got;
    for (uint64_t i = 0; i < steps; i++)
        if (read(end, &got, size) != (ssize_t)size) exit(1);
}

static void read_pipe(void) { read_bytes(pipe_ends[0], 1); }
static void read_socket(void) { read_bytes(socket_ends[0], 1); }
static void read_event(void) { read_bytes(event_end, 8); }

static void poll_pipe(void) {
    struct pollfd wanted = {.fd = poll_ends[0], .events = POLLIN};
    char got;
    for (uint64_t i = 0; i < steps; i++)
        if (poll(&wanted, 1, -1) != 1 || read(poll_ends[0], &got, 1) != 1) exit(1);
}

static void select_pipe(void) {
    char got;
    for (uint64_t i = 0; i < steps; i++) {
        fd_set wanted;
        FD_ZERO(&wanted);
        FD_SET(select_ends[0], &wanted);
        if (select(select_ends[0] + 1, &wanted, NULL, NULL, NULL) != 1 || read(select_ends[0], &got, 1) != 1)
            exit(1);
    }
}

static void epoll_pipe(void) {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    char got;
    epoll_ctl(epoll, EPOLL_CTL_ADD, epoll_ends[0], &event);
    for (uint64_t i = 0; i < steps; i++)
        if (epoll_wait(epoll, &event, 1, -1) != 1 || read(epoll_ends[0], &got, 1) != 1) exit(1);
    close(epoll);
}

// Past the page cache, so that each read asks the disk.
static void read_disk(void) {
    void *block = NULL;
    const int file = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    if (file < 0 || posix_memalign(&block, 4096, BLOCK_BYTES) != 0 || read(file, block, BLOCK_BYTES) < 0) {
        fprintf(stderr, "without read\n");
        return;
    }
    while (!atomic_load(&is_over))
        for (off_t at = 0; at < FILE_BYTES && !atomic_load(&is_over); at += BLOCK_BYTES)
            if (pread(file, block, BLOCK_BYTES, at) < 0) exit(1);
    free(block);
    close(file);
}

static void sync_disk(void) {
    char name[4120];
    snprintf(name, sizeof name, "%s.synced", path);
    const int file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) exit(1);
    while (!atomic_load(&is_over))
        if (pwrite(file, name, sizeof name, 0) < 0 || fsync(file) != 0) exit(1);
    close(file);
    unlink(name);
}

// Pages that the page cache has forgotten come from the disk again.
static void touch_file(void) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const volatile char *bytes = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, file, 0);
    if (bytes == MAP_FAILED) exit(1);
    madvise((void *)bytes, FILE_BYTES, MADV_RANDOM);
    while (!atomic_load(&is_over)) {
        posix_fadvise(file, 0, FILE_BYTES, POSIX_FADV_DONTNEED);
        for (size_t at = 0; at < FILE_BYTES && !atomic_load(&is_over); at += BLOCK_BYTES) (void)bytes[at];
        madvise((void *)bytes, FILE_BYTES, MADV_DONTNEED);
    }
    close(file);
}

static void *take_a_step(void *unused) {
    step();
    return unused;
}

static void join_threads(void) {
    for (uint64_t i = 0; i < steps; i++) {
        pthread_t other;
        if (pthread_create(&other, NULL, take_a_step, NULL) != 0) exit(1);
        pthread_join(other, NULL);
    }
}

static void wait_children(void) {
    for (uint64_t i = 0; i < steps / 10 + 1; i++) {
        const pid_t child = fork();
        if (child == 0) {
            // It sleeps: the class in the name of its parent is not its own.
            prctl(PR_SET_NAME, "waited_for");
            pause_for(10 * STEP_MS * 1000000l);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
}

static const struct way {
    const char *name;
    void (*wait)(void);
} ways[] = {
    {"lock:mutex", lock_mutex},    {"lock:rwlock", lock_rwlock},  {"lock:flock", lock_flock},
    {"queue:cond", wait_cond},     {"queue:sem", wait_semaphore}, {"sleep:nanosleep", sleep_often},
    {"pipe:read", read_pipe},      {"network:read", read_socket}, {"queue:eventfd", read_event},
    {"poll:poll", poll_pipe},      {"poll:select", select_pipe},  {"poll:epoll", epoll_pipe},
    {"disk:read", read_disk},      {"disk:fsync", sync_disk},     {"fault:mmap", touch_file},
    {"join:thread", join_threads}, {"child:waitpid", wait_children},
};
enum { WAYS = sizeof ways / sizeof *ways };

static void *run(void *argument) {
    const struct way *way = argument;
    prctl(PR_SET_NAME, way->name);
    way->wait();
    return NULL;
}

static void make_file(void) {
    static char block[BLOCK_BYTES];
    snprintf(path, sizeof path, "%s/wait_classes.%d", directory, getpid());
    lock_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (lock_file < 0) {
        fprintf(stderr, "wait_classes: cannot write %s: %s\n", path, strerror(errno));
        exit(1);
    }
    for (size_t at = 0; at < FILE_BYTES; at += BLOCK_BYTES)
        if (write(lock_file, block, BLOCK_BYTES) != BLOCK_BYTES) exit(1);
    if (fsync(lock_file) != 0) exit(1);
}

int main(int argc, char **argv) {
    if (argc == 4 && strcmp(argv[2], "--milliseconds") == 0) steps = result_amount(argv[3]) / STEP_MS;
    else if (argc != 2) steps = 0;
    if (steps == 0) {
        fprintf(stderr, "usage: wait_classes DIRECTORY [--milliseconds N]\n");
        return 2;
    }
    directory = argv[1];
    make_file();
    sem_init(&semaphore, 0, 0);
    if (pipe(pipe_ends) || pipe(poll_ends) || pipe(epoll_ends) || pipe(select_ends)) return 1;
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, socket_ends) != 0) return 1;
    event_end = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    pthread_t threads[WAYS], giver;
    for (size_t i = 0; i < WAYS; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)&ways[i]) != 0) return 1;
    if (pthread_create(&giver, NULL, give, NULL) != 0) return 1;
    pthread_join(giver, NULL);
    for (size_t i = 0; i < WAYS; i++) pthread_join(threads[i], NULL);
    unlink(path);
    return 0;
}
