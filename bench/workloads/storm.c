// What a recorder has to keep up with besides samples: processes and mappings in great numbers.
//
//   storm --forks N     starts N children, each of which leaves at once
//   storm --maps N      maps N pieces of this program as code, each for a moment
//   storm --execs N     executes itself N times, one after the other
//   storm --threads N   starts N threads that wait for each other, then lets all of them go
//
// Prints how many it did. Several may be given; they run in order, --execs last.

#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void forks(long count) {
    for (long i = 0; i < count; i++) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        if (child < 0) fail("storm: fork");
        int status;
        if (waitpid(child, &status, 0) < 0 || status != 0) fail("storm: child");
    }
    printf("%ld forks\n", count);
}

static void maps(long count) {
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file < 0) fail("storm: open");
    for (long i = 0; i < count; i++) {
        void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
        if (code == MAP_FAILED || munmap(code, 4096) != 0) fail("storm: mmap");
    }
    close(file);
    printf("%ld maps\n", count);
}

static pthread_barrier_t barrier;

static void *wait_for_all(void *unused) {
    pthread_barrier_wait(&barrier);
    return unused;
}

static void threads(long count) {
    pthread_t *started = calloc((size_t)count, sizeof *started);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 * 1024);
    if (!started || pthread_barrier_init(&barrier, NULL, (unsigned)count + 1)) fail("storm");
    for (long i = 0; i < count; i++)
        if (pthread_create(&started[i], &small, wait_for_all, NULL)) fail("storm: thread");
    pthread_barrier_wait(&barrier);
    for (long i = 0; i < count; i++) pthread_join(started[i], NULL);
    free(started);
    printf("%ld threads\n", count);
}

static void execs(long count, const char *program) {
    char left[32];
    if (count == 0) {
        printf("all execs\n");
        return;
    }
    snprintf(left, sizeof left, "%ld", count - 1);
    execl(program, program, "--execs", left, (char *)NULL);
    fail("storm: exec");
}

int main(int argc, char **argv) {
    if (argc < 3 || argc % 2 == 0) {
        fprintf(stderr, "usage: storm [--forks N] [--maps N] [--threads N] [--execs N]\n");
        return 2;
    }
    for (int i = 1; i + 1 < argc; i += 2) {
        long count = strtol(argv[i + 1], NULL, 10);
        fflush(stdout);
        if (strcmp(argv[i], "--forks") == 0) forks(count);
        else if (strcmp(argv[i], "--maps") == 0) maps(count);
        else if (strcmp(argv[i], "--threads") == 0) threads(count);
        else if (strcmp(argv[i], "--execs") == 0) execs(count, "/proc/self/exe");
        else return 2;
    }
    return 0;
}
