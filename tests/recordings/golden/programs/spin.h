// What the recorded programs share. They use no C library: nothing of the machine that made the
// recordings gets into them.
#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned int sink;

NOINLINE static void burn(unsigned int rounds) {
    unsigned int value = rounds;
    for (unsigned int i = 0; i < rounds; i++) value = value * 1664525u + i;
    sink += value;
}

NOINLINE static void outer(int depth) {
    if (depth > 0) {
        outer(depth - 1);
        sink++;
    } else {
        burn(2000000);
        sink++;
    }
}

static long call(long number, long a, long b, long c, long d) {
    long result;
#ifdef __x86_64__
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
#else
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d)
                     : "memory");
#endif
    return result;
}

#ifdef __x86_64__
enum { SCHED_YIELD = 24, FORK = 57, EXECVE = 59, EXIT = 60, WAIT4 = 61 };
#else
enum { SCHED_YIELD = 158, FORK = 2, EXECVE = 11, EXIT = 1, WAIT4 = 114 };
#endif
