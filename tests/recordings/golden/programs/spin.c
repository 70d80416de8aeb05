// Burns time at the end of a short chain of calls, and gives way now and then.
#include "spin.h"

#ifndef TURNS
#define TURNS 4
#endif

void _start(void) {
    for (int i = 0; i < TURNS; i++) {
        outer(3);
        call(SCHED_YIELD, 0, 0, 0, 0);
    }
    call(EXIT, 0, 0, 0, 0);
}
