// Forks twice; one child goes on as a copy, the other becomes `spin`.
#include "spin.h"

void _start(void) {
    const char *arguments[] = {"/opt/whit-golden/spin", 0};
    const char *environment[] = {0};
    if (call(FORK, 0, 0, 0, 0) == 0) {
        outer(1);
        call(EXIT, 0, 0, 0, 0);
    }
    if (call(FORK, 0, 0, 0, 0) == 0) {
        call(EXECVE, (long)arguments[0], (long)arguments, (long)environment, 0);
        call(EXIT, 1, 0, 0, 0);
    }
    outer(2);
    call(WAIT4, -1, 0, 0, 0);
    call(WAIT4, -1, 0, 0, 0);
    call(EXIT, 0, 0, 0, 0);
}
