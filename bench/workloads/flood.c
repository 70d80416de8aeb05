// A flood of softirqs: datagrams of the loopback device, each for many sockets.
//
//   flood [--iterations N] [--receivers R]
//
// One thread sends N datagrams to a multicast group that R sockets have joined. The kernel hands each datagram to all of
// them in one softirq, within the call that sends. Nobody reads: once the sockets are full, the kernel drops.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "result.h"

static int usage(void) {
    fprintf(stderr, "usage: flood [--iterations N] [--receivers R], R at most %d\n", RESULT_MAX_THREADS);
    return 2;
}

static int fail(const char *what) {
    perror(what);
    return 1;
}

int main(int argc, char **argv) {
    uint64_t iterations = 20 * 1000;
    unsigned receivers = 64;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool ok;
        if (strcmp(argv[i], "--iterations") == 0) ok = (iterations = result_amount(value)) != 0;
        else if (strcmp(argv[i], "--receivers") == 0) ok = (receivers = result_threads(value)) != 0;
        else ok = false;
        if (!ok) return usage();
    }
    struct sockaddr_in group = {.sin_family = AF_INET};
    const struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
    inet_pton(AF_INET, "239.255.77.1", &group.sin_addr);
    socklen_t length = sizeof group;
    for (unsigned r = 0; r < receivers; r++) {
        const int on = 1, receiver = socket(AF_INET, SOCK_DGRAM, 0);
        const struct ip_mreq join = {.imr_multiaddr = group.sin_addr, .imr_interface = loopback};
        if (receiver < 0 || setsockopt(receiver, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) {
            return fail("flood: socket");
        }
        // The first gets a port from the kernel, the others the same.
        if (bind(receiver, (struct sockaddr *)&group, length) != 0) return fail("flood: bind");
        if (getsockname(receiver, (struct sockaddr *)&group, &length) != 0) return fail("flood: port");
        if (setsockopt(receiver, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof join) != 0) {
            return fail("flood: join");
        }
    }
    const int sender = socket(AF_INET, SOCK_DGRAM, 0);
    if (sender < 0 || setsockopt(sender, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback) != 0) {
        return fail("flood: sender");
    }
    char data[64] = "flood";
    uint64_t sent = 0;
    const struct result_timer timer = result_begin();
    for (uint64_t i = 0; i < iterations; i++) {
        sent += sendto(sender, data, sizeof data, 0, (struct sockaddr *)&group, length) == sizeof data;
    }
    const double seconds = result_end(timer);
    if (sent != iterations) return fail("flood: send");
    result_print("flood", 1, iterations, sent, seconds);
    return 0;
}
