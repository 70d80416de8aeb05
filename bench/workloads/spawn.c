// A build in small: many short-lived processes, several at a time.
//
//   spawn [--iterations N] [--threads J]
//
// Makes N translation units, J at a time as `make -j J` would, and links them. For each unit the
// driver (`cc`) starts the compiler proper (`cc1`) and the assembler (`as`) one after the other, as
// real ones do. Each of the three processes costs a fork, an exec under a name of its own, a
// dynamic loader's mappings, some private mappings of files, some memory and some computing. The
// linker (`ld`) at the end reads as much as there are units.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "result.h"

enum {
    HEADERS = 8,                // files that a compiler maps
    COMPILE_ROUNDS = 400 * 1000,
    ASSEMBLE_ROUNDS = 50 * 1000,
    LINK_ROUNDS = 1000,         // for each unit
    HEAP_BYTES = 1 << 20,
    MAX_UNITS = 100 * 1000 * 1000,
};

static const char self[] = "/proc/self/exe";
extern char **environ;

static uint64_t units = 100;
static _Atomic uint64_t next_unit, failed_units;

// The results have to go somewhere that the compiler cannot see through.
static volatile uint64_t sink;

__attribute__((noinline)) static uint64_t compute(uint64_t value, uint64_t rounds) {
    for (uint64_t i = 0; i < rounds; i++) value = (value ^ (value >> 31)) * 0x9E3779B97F4A7C15ull + i;
    return value;
}

// Starts this program under another name and with another part to play.
static bool start(const char *name, const char *argument, pid_t *child) {
    char *const arguments[] = {(char *)(uintptr_t)name, (char *)(uintptr_t)argument, NULL};
    int error = posix_spawn(child, self, NULL, NULL, arguments, environ);
    if (error != 0) fprintf(stderr, "spawn: cannot start %s: %s\n", name, strerror(error));
    return error == 0;
}

static bool run(const char *name, const char *argument) {
    pid_t child;
    int status;
    if (!start(name, argument, &child)) return false;
    while (waitpid(child, &status, 0) != child)
        if (errno != EINTR) return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

__attribute__((noinline)) static uint64_t read_headers(void) {
    uint64_t sum = 0;
    for (int i = 0; i < HEADERS; i++) {
        struct stat status;
        int file = open(self, O_RDONLY | O_CLOEXEC);
        if (file == -1 || fstat(file, &status) != 0) exit(1);
        const size_t length = (size_t)status.st_size;
        unsigned char *bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
        close(file);
        if (bytes == MAP_FAILED) exit(1);
        for (size_t at = 0; at < length; at += 4096) sum += bytes[at];
        munmap(bytes, length);
    }
    return sum;
}

__attribute__((noinline)) static uint64_t fill_heap(void) {
    unsigned char *heap = malloc(HEAP_BYTES);
    if (!heap) exit(1);
    for (size_t at = 0; at < HEAP_BYTES; at += 4096) heap[at] = (unsigned char)at;
    const uint64_t sum = heap[HEAP_BYTES / 2];
    free(heap);
    return sum;
}

static int play_part(const char *name, const char *argument) {
    const uint64_t unit = result_amount(argument);
    if (strcmp(name, "cc") == 0) return run("cc1", argument) && run("as", argument) ? 0 : 1;
    if (strcmp(name, "cc1") == 0) sink = compute(read_headers() + fill_heap() + unit, COMPILE_ROUNDS);
    else if (strcmp(name, "as") == 0) sink = compute(fill_heap() + unit, ASSEMBLE_ROUNDS);
    else sink = compute(read_headers(), unit * LINK_ROUNDS);
    return 0;
}

static void *make_job(void *unused) {
    (void)unused;
    for (;;) {
        const uint64_t unit = atomic_fetch_add(&next_unit, 1);
        if (unit >= units) return NULL;
        char number[32];
        // From 1: 0 stands for "no number".
        snprintf(number, sizeof number, "%llu", (unsigned long long)unit + 1);
        if (!run("cc", number)) atomic_fetch_add(&failed_units, 1);
    }
}

static bool is_part(const char *name) {
    return strcmp(name, "cc") == 0 || strcmp(name, "cc1") == 0 || strcmp(name, "as") == 0 ||
           strcmp(name, "ld") == 0;
}

static int usage(void) {
    fprintf(stderr, "usage: spawn [--iterations N] [--threads J], J at most %d\n",
            RESULT_MAX_THREADS);
    return 2;
}

int main(int argc, char **argv) {
    if (argc == 2 && is_part(argv[0])) return play_part(argv[0], argv[1]);
    unsigned threads = 2;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool ok;
        if (strcmp(argv[i], "--iterations") == 0)
            ok = (units = result_amount(value)) != 0 && units <= MAX_UNITS;
        else if (strcmp(argv[i], "--threads") == 0) ok = (threads = result_threads(value)) != 0;
        else ok = false;
        if (!ok) return usage();
    }
    pthread_t *handles = calloc(threads, sizeof *handles);
    if (!handles) {
        perror("spawn: memory");
        return 1;
    }
    const struct result_timer timer = result_begin();
    for (unsigned t = 0; t < threads; t++) {
        int error = pthread_create(&handles[t], NULL, make_job, NULL);
        if (error != 0) {
            fprintf(stderr, "spawn: pthread_create: %s\n", strerror(error));
            return 1;
        }
    }
    for (unsigned t = 0; t < threads; t++) pthread_join(handles[t], NULL);
    char number[32];
    snprintf(number, sizeof number, "%llu", (unsigned long long)units);
    const bool linked = run("ld", number);
    const double seconds = result_end(timer);
    free(handles);
    const uint64_t failed = atomic_load(&failed_units);
    if (failed != 0 || !linked) {
        fprintf(stderr, "spawn: %llu units failed\n", (unsigned long long)failed);
        return 1;
    }
    result_print("spawn", threads, units, 3 * units + 1, seconds);
    return 0;
}
