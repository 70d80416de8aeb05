// Where threads run. Threads that the scheduler may move find other neighbours in each run, and the run takes longer or
// shorter by several percent. Measurements of a single percent pin them.

#ifndef WHIT_WORKLOADS_PLACEMENT_H
#define WHIT_WORKLOADS_PLACEMENT_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

// `free` or `pinned`; false for anything else.
static inline bool placement_read(const char *text, bool *pinned) {
    *pinned = strcmp(text, "pinned") == 0;
    return *pinned || strcmp(text, "free") == 0;
}

// Pins the calling thread to a CPU that the process may use: group 0 to the first one, group 1 to the next, and around.
// Gives 0, or the number of an error.
static inline int placement_pin(const cpu_set_t *allowed, unsigned group) {
    int nth = (int)(group % (unsigned)CPU_COUNT(allowed)), cpu = -1;
    while (nth >= 0)
        if (CPU_ISSET(++cpu, allowed)) nth--;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return pthread_setaffinity_np(pthread_self(), sizeof one, &one);
}

#endif
