// Processes in cgroups of their own pass a token around on one CPU: every hop is a request that
// another cgroup answers, and a switch to it.
//
//   token [--milliseconds M] [--work W] [--cpu C] DIR...
//
// One process for each DIR, the directory of a cgroup, in that order. Each hop costs W nanoseconds of
// work in user mode. CPU C (default: the last that may be used, which has the fewest interrupts) runs
// all of them. For each line of standard input, it measures the hops of M milliseconds and prints two
// lines: the response times (from passing the token on to having done the work) and the result. `cpu` is
// the CPU time of a hop by the processes' own clocks; other programs on that CPU do not lengthen it.
// `taken` is the share of the time in which the processes did not run, although one of them always
// could; it is 1 if no hop was made. So one set of processes can be measured several times while
// something else about the machine is changed. The end of input ends it.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "result.h"

enum {
    // Processes: each has a pipe, and a token too many would never come back.
    MEMBERS_MAX = RESULT_MAX_THREADS,
    // Response times that are kept; later ones take the place of the first.
    RESPONSES_KEPT = 1 << 20,
};
static const uint64_t SECOND_NS = 1000000000;

// The memory that all processes share.
struct shared {
    uint64_t passed_ns;     // when the token was passed on last
    _Atomic uint64_t hops;  // only the holder of the token writes it
    _Atomic unsigned ready;
    _Atomic bool stop;
    uint32_t responses_ns[RESPONSES_KEPT];
};

struct ring {
    struct shared *shared;
    unsigned members;
    pid_t parent;
    pid_t *pids;
    int (*pipes)[2];
    uint64_t work_ns;
    uint64_t cpu;  // UINT64_MAX: the last that may be used
};

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

__attribute__((noinline)) static void work(uint64_t length_ns) {
    for (uint64_t begin = now_ns(); now_ns() - begin < length_ns;) {
    }
}

static int fail(const char *what, const char *on) {
    fprintf(stderr, "token: cannot %s %s: %s\n", what, on, strerror(errno));
    return 1;
}

static bool enter(const char *cgroup) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/cgroup.procs", cgroup) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    // The kernel reads 0 as the writing process.
    const bool entered = fd >= 0 && write(fd, "0", 1) == 1;
    if (fd >= 0) close(fd);
    return entered;
}

static bool use_cpu(uint64_t cpu) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return false;
    for (unsigned c = CPU_SETSIZE; cpu == UINT64_MAX && c-- > 0;)
        if (CPU_ISSET(c, &set)) cpu = c;
    if (cpu >= CPU_SETSIZE) {
        errno = EINVAL;
        return false;
    }
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

static void answer(struct shared *shared) {
    const uint64_t response_ns = now_ns() - shared->passed_ns;
    const uint64_t hops = atomic_load_explicit(&shared->hops, memory_order_relaxed);
    shared->responses_ns[hops % RESPONSES_KEPT] =
        response_ns < UINT32_MAX ? (uint32_t)response_ns : UINT32_MAX;
    atomic_store_explicit(&shared->hops, hops + 1, memory_order_release);
}

// A token of 0 ends its receiver, after it was passed on once more.
static int member(struct ring *ring, unsigned index, const char *cgroup) {
    // Nobody passes the token on where one is missing; and cgroups with members cannot be removed.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != ring->parent)
        return fail("end with", "its parent");
    if (!use_cpu(ring->cpu)) return fail("run on", "this CPU");
    if (!enter(cgroup)) return fail("enter", cgroup);
    atomic_fetch_add(&ring->shared->ready, 1);
    const unsigned next = (index + 1) % ring->members;
    char token;
    do {
        if (read(ring->pipes[index][0], &token, 1) != 1) return fail("get", "the token");
        if (token) {
            if (ring->work_ns) work(ring->work_ns);
            if (ring->shared->passed_ns) answer(ring->shared);
            token = !atomic_load_explicit(&ring->shared->stop, memory_order_relaxed);
        }
        ring->shared->passed_ns = now_ns();
        if (write(ring->pipes[next][1], &token, 1) != 1) return fail("pass on", "the token");
    } while (token);
    return 0;
}

static int by_length(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static int usage(void) {
    fprintf(stderr, "usage: token [--milliseconds M] [--work W] [--cpu C] DIR..., at most %d\n",
            MEMBERS_MAX);
    return 2;
}

// CPU time of all members until now.
static uint64_t cpu_ns(const struct ring *ring) {
    uint64_t sum = 0;
    for (unsigned m = 0; m < ring->members; m++) {
        clockid_t clock;
        struct timespec used;
        if (clock_getcpuclockid(ring->pids[m], &clock) != 0 || clock_gettime(clock, &used) != 0)
            continue;  // it has ended, and the token will not come back
        sum += (uint64_t)used.tv_sec * SECOND_NS + (uint64_t)used.tv_nsec;
    }
    return sum;
}

// Sleeps through the window.
static void measure(struct ring *ring, uint64_t milliseconds, uint32_t *responses_ns) {
    struct shared *shared = ring->shared;
    const uint64_t begin_cpu_ns = cpu_ns(ring), first = atomic_load(&shared->hops);
    const uint64_t begin_ns = now_ns();
    usleep((useconds_t)(milliseconds * 1000));
    const uint64_t used_ns = cpu_ns(ring) - begin_cpu_ns;
    const uint64_t end = atomic_load(&shared->hops), end_ns = now_ns();
    const uint64_t kept = end - first < RESPONSES_KEPT ? end - first : RESPONSES_KEPT;
    if (kept == 0) {
        // Others had the CPU all the time, or the work takes longer.
        printf("response_ns median=0 p99=0 max=0 cpu=0 taken=1\n");
        result_print("token", ring->members, milliseconds, 0, (double)(end_ns - begin_ns) * 1e-9);
        fflush(stdout);
        return;
    }
    for (uint64_t i = 0; i < kept; i++)
        responses_ns[i] = shared->responses_ns[(end - kept + i) % RESPONSES_KEPT];
    qsort(responses_ns, kept, sizeof *responses_ns, by_length);
    const double used = (double)used_ns, length = (double)(end_ns - begin_ns);
    printf("response_ns median=%u p99=%u max=%u cpu=%.1f taken=%.4f\n", responses_ns[kept / 2],
           responses_ns[kept - 1 - kept / 100], responses_ns[kept - 1], used / (double)(end - first),
           used < length ? 1 - used / length : 0.0);
    result_print("token", ring->members, milliseconds, end - first,
                 (double)(end_ns - begin_ns) * 1e-9);
    fflush(stdout);
}

static int run(struct ring *ring, char **cgroups, uint64_t milliseconds) {
    struct shared *shared = ring->shared;
    for (unsigned m = 0; m < ring->members; m++) {
        const pid_t child = fork();
        if (child < 0) return fail("fork for", cgroups[m]);
        if (child == 0) _exit(member(ring, m, cgroups[m]));
        ring->pids[m] = child;
    }
    // A process that cannot enter its cgroup has printed the reason and ended.
    for (int status; atomic_load(&shared->ready) < ring->members; usleep(1000))
        if (waitpid(-1, &status, WNOHANG) > 0) return 1;
    if (write(ring->pipes[0][1], "x", 1) != 1) return fail("pass on", "the token");
    uint32_t *responses_ns = malloc(sizeof shared->responses_ns);
    if (!responses_ns) return fail("get", "memory");
    for (int c; (c = getchar()) != EOF;)
        if (c == '\n') measure(ring, milliseconds, responses_ns);
    atomic_store(&shared->stop, true);
    for (unsigned m = 0; m < ring->members; m++) {
        int status = 0;
        if (wait(&status) < 0 || status != 0) return 1;
    }
    free(responses_ns);
    return 0;
}

int main(int argc, char **argv) {
    uint64_t milliseconds = 1000;
    struct ring ring = {.cpu = UINT64_MAX};
    int i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--milliseconds") == 0) {
            if ((milliseconds = result_amount(value)) == 0) return usage();
        } else if (strcmp(argv[i], "--work") == 0 && (*value >= '0' && *value <= '9')) {
            ring.work_ns = result_amount(value);
        } else if (strcmp(argv[i], "--cpu") == 0 && (*value >= '0' && *value <= '9')) {
            ring.cpu = result_amount(value);
        } else {
            return usage();
        }
    }
    if (i >= argc || argv[i][0] == '-' || argc - i > MEMBERS_MAX) return usage();
    ring.members = (unsigned)(argc - i);
    ring.parent = getpid();
    ring.shared = mmap(NULL, sizeof *ring.shared, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ring.pipes = calloc(ring.members, sizeof *ring.pipes);
    ring.pids = calloc(ring.members, sizeof *ring.pids);
    if (ring.shared == MAP_FAILED || !ring.pipes || !ring.pids) return fail("get", "memory");
    for (unsigned m = 0; m < ring.members; m++)
        if (pipe(ring.pipes[m]) != 0) return fail("make", "a pipe (ulimit -n)");
    const int status = run(&ring, argv + i, milliseconds);
    // Ends the processes that still wait for the token.
    for (unsigned m = 0; status != 0 && m < ring.members; m++)
        if (ring.pids[m] > 0) kill(ring.pids[m], SIGTERM);
    return status;
}
