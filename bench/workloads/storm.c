// Processes, threads and mappings in great numbers: a recorder has to keep up with them, besides samples.
//
//     storm --forks N     starts N children, which leave at once
//     storm --maps N      maps N pieces of this program as code, each for a moment
//     storm --execs N     executes itself N times, one after the other
//     storm --threads N   starts N threads that wait for each other, then lets all of them go
//     storm --dlopens N   loads a library N times, each time one of 50 copies, runs a function of it, and unloads it
//
// Prints how many it did. Several may be given; they run in order, --execs last.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <limits.h>
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

enum { COPIES = 50 };

static void copy_file(const char *from, const char *to) {
    char bytes[1 << 16];
    int source = open(from, O_RDONLY | O_CLOEXEC);
    int target = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    if (source < 0 || target < 0) fail("storm: copy");
    for (ssize_t got; (got = read(source, bytes, sizeof bytes)) != 0;)
        if (got < 0 || write(target, bytes, (size_t)got) != got) fail("storm: copy");
    close(source);
    close(target);
}

// Leaves the path of one copy in `path`.
static void copy_path(char path[PATH_MAX], const char *directory, long copy) {
    snprintf(path, PATH_MAX, "%s/libstorm%ld.so", directory, copy % COPIES);
}

static void dlopens(long count) {
    char directory[] = "/tmp/storm.XXXXXX", path[PATH_MAX];
    struct link_map *library;
    void *original = dlopen("libm.so.6", RTLD_NOW);
    if (!original || dlinfo(original, RTLD_DI_LINKMAP, &library) != 0) fail("storm: libm.so.6");
    if (!mkdtemp(directory)) fail("storm: mkdtemp");
    for (long i = 0; i < COPIES; i++) {
        copy_path(path, directory, i);
        copy_file(library->l_name, path);
    }
    volatile double sum = 0;
    for (long i = 0; i < count; i++) {
        copy_path(path, directory, i);
        void *copy = dlopen(path, RTLD_NOW);
        if (!copy) fail("storm: dlopen");
        double (*cosine)(double) = (double (*)(double))dlsym(copy, "cos");
        if (!cosine) fail("storm: dlsym");
        for (int round = 0; round < 1000; round++) sum += cosine(round);
        if (dlclose(copy) != 0) fail("storm: dlclose");
    }
    for (long i = 0; i < COPIES; i++) {
        copy_path(path, directory, i);
        unlink(path);
    }
    rmdir(directory);
    printf("%ld dlopens\n", count);
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
        fprintf(stderr, "usage: storm [--forks N] [--maps N] [--threads N] [--dlopens N] [--execs N]\n");
        return 2;
    }
    for (int i = 1; i + 1 < argc; i += 2) {
        long count = strtol(argv[i + 1], NULL, 10);
        fflush(stdout);
        if (strcmp(argv[i], "--forks") == 0) forks(count);
        else if (strcmp(argv[i], "--maps") == 0) maps(count);
        else if (strcmp(argv[i], "--threads") == 0) threads(count);
        else if (strcmp(argv[i], "--dlopens") == 0) dlopens(count);
        else if (strcmp(argv[i], "--execs") == 0) execs(count, "/proc/self/exe");
        else return 2;
    }
    return 0;
}
