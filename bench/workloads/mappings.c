// A process with many executable mappings, as just-in-time compilers and plug-ins make them.
//
//   mappings [--mappings N]
//
// Maps N pages, each of them unlike its neighbours, so that none are joined; says so in a line; and works
// until its standard input ends.

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "result.h"

static volatile uint64_t sum;

__attribute__((noinline)) static void mappings_leaf(void) {
    for (uint64_t i = 0; i < 100 * 1000; i++) sum += i * i;
}

__attribute__((noinline)) static void mappings_work(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    do {
        mappings_leaf();
    } while (poll(&input, 1, 0) == 0);
}

int main(int argc, char **argv) {
    uint64_t mappings = 1000;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--mappings") != 0 || (mappings = result_amount(value)) == 0) {
            fprintf(stderr, "usage: mappings [--mappings N]\n");
            return 2;
        }
    }
    for (uint64_t i = 0; i < mappings; i++) {
        int protection = PROT_READ | PROT_EXEC | (i % 2 ? PROT_WRITE : 0);
        if (mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) {
            fprintf(stderr, "mappings: mapping %llu: %s\n", (unsigned long long)i, strerror(errno));
            return 1;
        }
    }
    printf("mapped %llu\n", (unsigned long long)mappings);
    fflush(stdout);
    mappings_work();
    return 0;
}
