// A program whose symbols are of many kinds: templates, lambdas, operators, namespaces, inlining.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

namespace ns {
template <class T> struct Box {
    __attribute__((noinline)) T work(T a, int n) {
        for (int i = 0; i < n; i++)
            a = a * 1.0000001 + i;
        return a;
    }
};

static inline int hot(int x) {
    volatile int y = x;
    for (int i = 0; i < 200; i++)
        y = y + i * x;
    return y;
}

__attribute__((noinline)) int outer(std::vector<int> &values) {
    int sum = 0;
    for (int &value : values)
        sum += hot(value);
    return sum;
}

struct Op {
    __attribute__((noinline)) int operator()(int a, const std::string &s) const {
        int r = 0;
        for (int i = 0; i < 300; i++)
            r += s[i % s.size()] * a;
        return r;
    }
};

enum class Kind { A, B };
template <Kind K, int N> __attribute__((noinline)) int of_kind(int x) {
    volatile int y = x;
    for (int i = 0; i < N; i++)
        y = y ^ (i + static_cast<int>(K));
    return y;
}
} // namespace ns

int main() {
    std::vector<int> values(100);
    std::map<std::string, int> counts;
    double d = 0;
    long s = 0;
    ns::Op op;
    for (int k = 0; k < 3000; k++) {
        d += ns::Box<double>().work(1.0, 1000);
        s += ns::outer(values) + ns::of_kind<ns::Kind::B, 3000>(k);
        counts["k" + std::to_string(k % 50)] += k;
        s += op(k, "hello");
        std::sort(values.begin(), values.end(), [](int a, int b) { return (a ^ 5) < (b ^ 3); });
        for (int &value : values)
            value = rand();
        char text[100];
        s += snprintf(text, sizeof text, "%d %f", k, d);
    }
    printf("%f %ld %zu\n", d, s, counts.size());
}
