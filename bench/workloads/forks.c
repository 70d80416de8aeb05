// Short-lived processes: fork, exec of itself under another name, and early death.
//
//   forks [--count N]
//
// starts N children one after the other. Every third one forks and leaves at once, every third
// one burns a few milliseconds in the fork, every third one executes this program anew
// (`forks --child`), which burns as well. Prints how many ended well.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BURN_ROUNDS = 2000 * 1000 };

__attribute__((noinline)) static uint64_t burn_in_fork(uint64_t value) {
    for (int i = 0; i < BURN_ROUNDS; i++) value = value * 6364136223846793005ull + (uint64_t)i;
    return value;
}

__attribute__((noinline)) static uint64_t burn_in_exec(uint64_t value) {
    for (int i = 0; i < BURN_ROUNDS; i++) value = (value ^ (value >> 31)) * 31 + (uint64_t)i;
    return value;
}

// The results have to go somewhere that the compiler cannot see through.
static volatile uint64_t sink;

static int run_child(int number, const char *program) {
    switch (number % 3) {
        case 0: return 0;
        case 1: sink = burn_in_fork((uint64_t)number); return 0;
        default:
            execl(program, program, "--child", (char *)NULL);
            perror("forks: execl");
            return 1;
    }
}

int main(int argc, char **argv) {
    long count = 30;
    if (argc == 2 && strcmp(argv[1], "--child") == 0) {
        sink = burn_in_exec(1);
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "--count") == 0) {
        count = strtol(argv[2], NULL, 10);
    } else if (argc != 1) {
        fprintf(stderr, "usage: forks [--count N]\n");
        return 2;
    }
    long ended_well = 0;
    for (long i = 0; i < count; i++) {
        pid_t child = fork();
        if (child == -1) {
            perror("forks: fork");
            return 1;
        }
        if (child == 0) _exit(run_child((int)i, "/proc/self/exe"));
        int status;
        if (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0)
            ended_well++;
    }
    printf("children %ld ended well %ld\n", count, ended_well);
    return ended_well == count ? 0 : 1;
}
