// Threads that work and threads that sleep: named, with different call chains, so that a report
// by thread or by command name has something to tell apart.
//
//   threads [--seconds S] [--busy N] [--sleeping N]
//
// Busy threads are called `busy-0`, `busy-1`, …; they burn CPU in `burn` below `busy_main`.
// Sleeping threads are called `sleepy-0`, …; they wake every millisecond and do next to nothing.

#include <pthread.h>
#include <time.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define PHYSICAL __attribute__((noinline))

using Clock = std::chrono::steady_clock;

static void set_name(const char* kind, unsigned number) {
    const std::string name = std::string(kind) + "-" + std::to_string(number);
    pthread_setname_np(pthread_self(), name.c_str());
}

PHYSICAL static uint64_t burn(uint64_t value) {
    for (int i = 0; i < 20000; i++) value = (value ^ (value >> 29)) * 0xBF58476D1CE4E5B9ull + i;
    return value;
}

PHYSICAL static uint64_t busy_main(unsigned number, Clock::time_point end) {
    set_name("busy", number);
    uint64_t checksum = number + 1;
    while (Clock::now() < end) checksum = burn(checksum) + 1;
    return checksum;
}

PHYSICAL static uint64_t sleepy_main(unsigned number, Clock::time_point end) {
    set_name("sleepy", number);
    uint64_t wakeups = 0;
    const timespec pause = {0, 1000 * 1000};
    while (Clock::now() < end) {
        nanosleep(&pause, nullptr);
        wakeups++;
    }
    return wakeups;
}

int main(int argc, char** argv) {
    double seconds = 1.0;
    unsigned busy = 2, sleeping = 2;
    for (int i = 1; i < argc; i += 2) {
        const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
        if (value && std::strcmp(argv[i], "--seconds") == 0) seconds = std::atof(value);
        else if (value && std::strcmp(argv[i], "--busy") == 0)
            busy = static_cast<unsigned>(std::atoi(value));
        else if (value && std::strcmp(argv[i], "--sleeping") == 0)
            sleeping = static_cast<unsigned>(std::atoi(value));
        else {
            std::fprintf(stderr, "usage: threads [--seconds S] [--busy N] [--sleeping N]\n");
            return 2;
        }
    }
    const auto end = Clock::now() +
                     std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    std::vector<uint64_t> busy_results(busy), sleepy_results(sleeping);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < busy; t++)
        threads.emplace_back([&, t] { busy_results[t] = busy_main(t, end); });
    for (unsigned t = 0; t < sleeping; t++)
        threads.emplace_back([&, t] { sleepy_results[t] = sleepy_main(t, end); });
    for (auto& thread : threads) thread.join();

    uint64_t checksum = 0, wakeups = 0;
    for (uint64_t result : busy_results) checksum ^= result;
    for (uint64_t result : sleepy_results) wakeups += result;
    std::printf("checksum %016llx wakeups %llu\n", static_cast<unsigned long long>(checksum),
                static_cast<unsigned long long>(wakeups));
    return 0;
}
