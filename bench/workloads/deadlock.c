// Two threads that wait for each other's mutex until the program is killed, and a third that waits for one of them.
//
//   deadlock
//
// It prints a line when two of them hold a mutex each: `ready one=TID two=TID three=TID`.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_hold;
static long tids[3];

static void begin(int number, const char *name) {
    pthread_setname_np(pthread_self(), name);
    tids[number] = syscall(SYS_gettid);
}

__attribute__((noinline)) static void take_both(pthread_mutex_t *mine, pthread_mutex_t *other) {
    pthread_mutex_lock(mine);
    pthread_barrier_wait(&both_hold);
    pthread_mutex_lock(other);
    pthread_mutex_unlock(other);
    pthread_mutex_unlock(mine);
}

static void *one(void *unused) {
    begin(0, "one");
    take_both(&first, &second);
    return unused;
}

static void *two(void *unused) {
    begin(1, "two");
    take_both(&second, &first);
    return unused;
}

static void *three(void *unused) {
    begin(2, "three");
    pthread_barrier_wait(&both_hold);
    pthread_mutex_lock(&first);
    pthread_mutex_unlock(&first);
    return unused;
}

int main(void) {
    pthread_t threads[3];
    void *(*const work[3])(void *) = {one, two, three};
    pthread_barrier_init(&both_hold, NULL, 4);
    for (int i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, work[i], NULL) != 0) return 1;
    pthread_barrier_wait(&both_hold);
    printf("ready one=%ld two=%ld three=%ld\n", tids[0], tids[1], tids[2]);
    fflush(stdout);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    return 0;
}
