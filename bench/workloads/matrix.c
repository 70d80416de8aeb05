// Blocked matrix product on several threads: floating point, one hot loop, shared data.
//
//   matrix [--iterations N] [--threads T] [--size S]
//
// Multiplies two S x S matrices N times; threads take rows of blocks in turn, and meet at a barrier
// after every product, as compute-intensive programs do. The checksum depends on N and S alone:
// every element is the sum of the same terms in the same order, on any thread.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "result.h"

// Three blocks of doubles fill about a first-level cache.
enum { BLOCK = 32, MAX_SIZE = 8192 };

static uint64_t iterations = 20;
static size_t size = 256;
static double *left, *right, *product;
static pthread_barrier_t barrier;
// The next row of blocks to compute, counted over all products.
static _Atomic uint64_t next_row;

// product[i..][j..] += left[i..][k..] * right[k..][j..]
__attribute__((noinline)) static void multiply_block(size_t i0, size_t j0, size_t k0) {
    for (size_t i = i0; i < i0 + BLOCK; i++) {
        for (size_t k = k0; k < k0 + BLOCK; k++) {
            const double factor = left[i * size + k];
            for (size_t j = j0; j < j0 + BLOCK; j++)
                product[i * size + j] += factor * right[k * size + j];
        }
    }
}

__attribute__((noinline)) static void multiply_row(size_t row) {
    const size_t i0 = row * BLOCK;
    memset(product + i0 * size, 0, BLOCK * size * sizeof *product);
    for (size_t j0 = 0; j0 < size; j0 += BLOCK)
        for (size_t k0 = 0; k0 < size; k0 += BLOCK) multiply_block(i0, j0, k0);
}

static void *work(void *unused) {
    (void)unused;
    const uint64_t rows = size / BLOCK;
    for (uint64_t round = 0; round < iterations; round++) {
        for (;;) {
            uint64_t row = atomic_load(&next_row);
            if (row >= (round + 1) * rows) break;
            if (atomic_compare_exchange_weak(&next_row, &row, row + 1))
                multiply_row((size_t)(row % rows));
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static double *new_matrix(uint64_t seed) {
    double *matrix = aligned_alloc(64, size * size * sizeof *matrix);
    if (!matrix) {
        perror("matrix: memory");
        exit(1);
    }
    for (size_t i = 0; i < size * size; i++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        matrix[i] = (double)(seed >> 40) / (double)(1 << 24);
    }
    return matrix;
}

static int usage(void) {
    fprintf(stderr,
            "usage: matrix [--iterations N] [--threads T] [--size S], S a multiple of %d up to %d, "
            "T at most %d\n",
            BLOCK, MAX_SIZE, RESULT_MAX_THREADS);
    return 2;
}

int main(int argc, char **argv) {
    unsigned threads = 2;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool ok;
        if (strcmp(argv[i], "--iterations") == 0) ok = (iterations = result_amount(value)) != 0;
        else if (strcmp(argv[i], "--threads") == 0) ok = (threads = result_threads(value)) != 0;
        else if (strcmp(argv[i], "--size") == 0) {
            size = result_amount(value);
            ok = size != 0 && size % BLOCK == 0 && size <= MAX_SIZE;
        } else ok = false;
        if (!ok) return usage();
    }
    left = new_matrix(1);
    right = new_matrix(2);
    product = new_matrix(3);
    pthread_t *handles = calloc(threads, sizeof *handles);
    if (!handles || pthread_barrier_init(&barrier, NULL, threads) != 0) {
        perror("matrix: threads");
        return 1;
    }
    const struct result_timer timer = result_begin();
    for (unsigned t = 0; t < threads; t++) {
        int error = pthread_create(&handles[t], NULL, work, NULL);
        if (error != 0) {
            fprintf(stderr, "matrix: pthread_create: %s\n", strerror(error));
            return 1;
        }
    }
    for (unsigned t = 0; t < threads; t++) pthread_join(handles[t], NULL);
    const double seconds = result_end(timer);
    uint64_t checksum = 0;
    for (size_t i = 0; i < size * size; i++) {
        uint64_t bits;
        memcpy(&bits, &product[i], sizeof bits);
        checksum = checksum * 31 + bits;
    }
    printf("checksum %016llx\n", (unsigned long long)checksum);
    // Multiplications and additions.
    const uint64_t operations = iterations * 2 * size * size * size;
    result_print("matrix", threads, iterations, operations, seconds);
    return 0;
}
