// Work whose call chains branch, recurse, inline and enter the kernel.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile double sink;

static inline __attribute__((always_inline)) void inner(int n) {
    for (int i = 0; i < n; i++) sink += i * 0.5;
}
__attribute__((noinline)) void leaf_add(int n) { inner(n); sink += 1; }
__attribute__((noinline)) void leaf_mul(int n) {
    for (int i = 0; i < n; i++) sink = sink * 1.0001 + 1;
    sink += 1;
}
__attribute__((noinline)) int recurse(int depth) {
    if (depth == 0) { leaf_add(20000); return 1; }
    int r = recurse(depth - 1) + 1;
    leaf_mul(1500 * depth);
    return r;
}
__attribute__((noinline)) void system_calls(void) {
    char text[4096];
    FILE *f = fopen("/proc/self/maps", "r");
    if (!f) return;
    while (fread(text, 1, sizeof text, f) > 0) {}
    fclose(f);
}
static int pure;
static void work(int rounds, int modulus) {
    for (int i = 0; i < rounds; i++) {
        recurse(i % modulus);
        if (!pure) system_calls();
    }
}
static void *thread(void *name) {
    pthread_setname_np(pthread_self(), name);
    work(800, 7);
    return 0;
}
int main(int argc, char **argv) {
    pthread_t t[2];
    pure = argc > 1 && strcmp(argv[1], "pure") == 0;
    int threads = argc > 1 && strcmp(argv[1], "threads") == 0;
    for (int i = 0; threads && i < 2; i++) pthread_create(&t[i], 0, thread, i ? "worker-b" : "worker-a");
    work(1500, 5);
    for (int i = 0; threads && i < 2; i++) pthread_join(t[i], 0);
    return sink == 1;
}
