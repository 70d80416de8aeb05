// Switches at one place in the program, with stacks that differ: other callers in frames of the same
// size, and the same function at other depths. The sequence is fixed.
//
//   callers [--iterations N]
//
// Prints for each wait that was a voluntary context switch who called it: a letter for the outer and
// one for the inner caller, and the depth between them.

#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "result.h"

static uint64_t iterations = 500;
static volatile unsigned long sink;

static long switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

// Whether the wait gave up the CPU.
__attribute__((noinline)) static bool rest(void) {
    const struct timespec moment = {0, 20 * 1000};
    long before = switches();
    clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL);
    return switches() != before;
}

// Nothing but a number tells these apart: their frames are of one size.
__attribute__((noinline)) static bool inner_a(void) { bool rested = rest(); sink += 1; return rested; }
__attribute__((noinline)) static bool inner_b(void) { bool rested = rest(); sink += 2; return rested; }

__attribute__((noinline)) static bool dig(unsigned depth, bool by_b) {
    bool rested = depth ? dig(depth - 1, by_b) : by_b ? inner_b() : inner_a();
    sink += depth;
    return rested;
}

__attribute__((noinline)) static bool outer_a(unsigned depth, bool by_b) {
    bool rested = dig(depth, by_b);
    sink += 3;
    return rested;
}

__attribute__((noinline)) static bool outer_b(unsigned depth, bool by_b) {
    bool rested = dig(depth, by_b);
    sink += 4;
    return rested;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--iterations") == 0) iterations = result_amount(argv[2]);
    else if (argc != 1) iterations = 0;
    if (iterations == 0) {
        fprintf(stderr, "usage: callers [--iterations N]\n");
        return 2;
    }
    uint64_t state = 1;
    for (uint64_t i = 0; i < iterations; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        // Mostly one depth, at which callers alone differ.
        unsigned random = state >> 33, depth = random & 12 ? 2 : random >> 4 & 7;
        bool outer_is_b = random & 1, inner_is_b = random >> 1 & 1;
        bool rested = outer_is_b ? outer_b(depth, inner_is_b) : outer_a(depth, inner_is_b);
        if (rested) printf("%c%c%u\n", outer_is_b ? 'b' : 'a', inner_is_b ? 'b' : 'a', depth);
    }
    return 0;
}
