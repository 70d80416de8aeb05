// Deep, inlined C++ without frame pointers: what call chain recording has to cope with.
//
// A pipeline of 32 distinct template instances leads into a recursion of eight, which ends in one
// of three kernels: more than 45 physical frames below `_start` (or `clone3` with `--threads`).
// The kernels call small helpers that the compiler inlines, some because they say so
// (`always_inline`), some because it chooses to, so that a chain holds inlined frames as well.
//
//   deep [--seconds S | --iterations N] [--threads T]
//
// prints a checksum: with --iterations it depends on N and T alone; each thread makes N. A second
// line says how long it took, see result.h.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "result.h"

// Physical frames: never inlined, never cloned, never turned into tail calls (each does work
// after the call that it makes).
#if defined(__clang__)
#define PHYSICAL __attribute__((noinline))
#else
#define PHYSICAL __attribute__((noinline, noclone))
#endif
#define INLINED __attribute__((always_inline)) inline

namespace kernels {

INLINED uint64_t rotate_left(uint64_t value, int bits) {
    return (value << bits) | (value >> (64 - bits));
}

// Inlined into `scramble`: a chain of inlined frames three deep.
INLINED uint64_t scramble_round(uint64_t value, uint64_t key) {
    value ^= rotate_left(value, 23) + key;
    return value * 0x9E3779B97F4A7C15ull;
}

static inline uint64_t scramble(uint64_t value, uint64_t key) {
    for (int round = 0; round < 12; round++) value = scramble_round(value, key + round);
    return value;
}

using Block = std::array<uint32_t, 64>;

INLINED void fill(Block& block, uint64_t seed) {
    for (size_t i = 0; i < block.size(); i++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        block[i] = static_cast<uint32_t>(seed >> 33);
    }
}

PHYSICAL uint64_t hash_block(uint64_t seed) {
    uint64_t hash = seed;
    for (uint64_t i = 0; i < 40; i++) hash = scramble(hash, i);
    return hash;
}

PHYSICAL uint64_t sort_block(uint64_t seed) {
    Block block;
    fill(block, seed);
    std::sort(block.begin(), block.end());
    return block[seed % block.size()];
}

PHYSICAL uint64_t divide_block(uint64_t seed) {
    Block block;
    fill(block, seed);
    uint64_t sum = 0;
    for (uint32_t divisor : block) sum += seed / (divisor | 1) + seed % (divisor | 1);
    return sum;
}

}  // namespace kernels

namespace pipeline {

constexpr int kStages = 32;
constexpr int kRecursion = 8;

PHYSICAL uint64_t dispatch(uint64_t seed) {
    uint64_t result;
    switch (seed % 4) {
        case 0: result = kernels::sort_block(seed); break;
        case 1: result = kernels::divide_block(seed); break;
        default: result = kernels::hash_block(seed); break;
    }
    return result ^ (seed >> 7);
}

PHYSICAL uint64_t descend(uint64_t seed, int depth) {
    if (depth == 0) {
        uint64_t sum = 0;
        for (uint64_t i = 0; i < 6; i++) sum += dispatch(seed + i);
        return sum;
    }
    // The rotation keeps the compiler from turning the recursion into a loop.
    return kernels::rotate_left(descend(seed * 31 + depth, depth - 1), 1) + 1;
}

template <int Stage>
struct Pipeline {
    // A few live values across the call give every stage a frame of its own size.
    PHYSICAL static uint64_t stage(uint64_t seed) {
        volatile uint64_t scratch[1 + Stage % 5];
        scratch[Stage % 5] = seed;
        uint64_t below = Pipeline<Stage - 1>::stage(seed + Stage);
        return below + scratch[Stage % 5];
    }
};

template <>
struct Pipeline<0> {
    PHYSICAL static uint64_t stage(uint64_t seed) { return descend(seed, kRecursion - 1) ^ seed; }
};

}  // namespace pipeline

struct Limits {
    double seconds = 1.0;
    uint64_t iterations = 0;  // 0: as long as `seconds` say
    unsigned threads = 0;     // 0: on the main thread
};

struct Driven {
    uint64_t checksum = 0;
    uint64_t iterations = 0;
};

PHYSICAL static Driven drive(const Limits& limits, uint64_t salt) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::duration<double>(limits.seconds);
    uint64_t checksum = salt;
    uint64_t i = 0;
    for (;; i++) {
        if (limits.iterations != 0 ? i >= limits.iterations : Clock::now() >= end) break;
        checksum = checksum * 31 + pipeline::Pipeline<pipeline::kStages - 1>::stage(i + salt);
    }
    return {checksum, i};
}

static Driven drive_threads(const Limits& limits) {
    std::vector<Driven> driven(limits.threads);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < limits.threads; t++) {
        threads.emplace_back([&, t] { driven[t] = drive(limits, t + 1); });
    }
    Driven all;
    for (unsigned t = 0; t < limits.threads; t++) {
        threads[t].join();
        all.checksum ^= driven[t].checksum;
        all.iterations += driven[t].iterations;
    }
    return all;
}

static int usage() {
    std::fprintf(stderr, "usage: deep [--seconds S | --iterations N] [--threads T]\n");
    return 2;
}

int main(int argc, char** argv) {
    Limits limits;
    for (int i = 1; i < argc; i += 2) {
        if (i + 1 >= argc) return usage();
        if (std::strcmp(argv[i], "--seconds") == 0) limits.seconds = std::atof(argv[i + 1]);
        else if (std::strcmp(argv[i], "--iterations") == 0)
            limits.iterations = std::strtoull(argv[i + 1], nullptr, 10);
        else if (std::strcmp(argv[i], "--threads") == 0)
            limits.threads = static_cast<unsigned>(std::strtoul(argv[i + 1], nullptr, 10));
        else return usage();
    }
    const result_timer timer = result_begin();
    const Driven driven = limits.threads == 0 ? drive(limits, 0) : drive_threads(limits);
    const double seconds = result_end(timer);
    std::printf("checksum %016llx\n", static_cast<unsigned long long>(driven.checksum));
    result_print("deep", limits.threads == 0 ? 1 : limits.threads, limits.iterations,
                 driven.iterations, seconds);
    return 0;
}
