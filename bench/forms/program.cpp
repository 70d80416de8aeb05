#include <cstdlib>
#include <ctime>
typedef unsigned long word;
static inline __attribute__((always_inline)) word mix(word x, word k) {
    return (x ^ k) * 0x9e3779b97f4a7c15 + 77;
}
static inline __attribute__((always_inline)) word spin_red(word x, word n) {
    for (word i = 1; i < n; i++)
        x = mix(x, i);
    return x;
}
static inline __attribute__((always_inline)) word spin_green(word x, word n) {
    for (word i = 2; i < n; i++)
        x = mix(x, i);
    return x;
}
static inline __attribute__((always_inline)) word spin_blue(word x, word n) {
    for (word i = 3; i < n; i++)
        x = mix(x, i);
    return x;
}
__attribute__((noinline)) word morning(word x, word n) {
    return spin_red(x, n);
}
__attribute__((noinline)) word noonday(word x, word n) {
    return spin_green(x, n);
}
__attribute__((noinline)) word evening(word x, word n) {
    return spin_blue(x, n);
}
int main(int, char **arguments) {
    double limit = atof(arguments[1]);
    word x = 1;
    while ((double)clock() / CLOCKS_PER_SEC < limit) {
        word unit = 10000 + x % 20000;
        x = morning(x, 5 * unit);
        x = noonday(x, 3 * unit);
        x = evening(x, 2 * unit);
    }
    return x == 0;
}
