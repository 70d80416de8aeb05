// A client, a proxy and a backend, each a process, over TCP of this machine: the yardstick of paths through sockets.
//
//   relay [--iterations N]
//
// The client makes both others, and asks N times. The proxy waits for both connections by epoll, and passes queries and
// answers on. The backend computes for each query. It prints
//
//   backend pid=P cpu_ns=C
//
// with its own CPU time in queries.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "result.h"

enum { QUERY_US = 2000 };

static volatile uint64_t sink;

static void must(int is_right, const char *what) {
    if (is_right) return;
    perror(what);
    exit(1);
}

static uint64_t cpu_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int listener_at(struct sockaddr_in *address) {
    socklen_t size = sizeof(*address);
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    *address = (struct sockaddr_in){.sin_family = AF_INET};
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    must(!bind(file, (struct sockaddr *)address, size) && !listen(file, 1), "listen");
    must(!getsockname(file, (struct sockaddr *)address, &size), "getsockname");
    return file;
}

static int connection_to(const struct sockaddr_in *address) {
    const int file = socket(AF_INET, SOCK_STREAM, 0);
    must(!connect(file, (const struct sockaddr *)address, sizeof(*address)), "connect");
    return file;
}

static __attribute__((noinline)) uint64_t answer_query(void) {
    const uint64_t begin = cpu_ns();
    while (cpu_ns() < begin + QUERY_US * 1000)
        for (int i = 0; i < 5000; i++) sink += (uint64_t)i * sink;
    return cpu_ns() - begin;
}

static void backend(int listener) {
    uint64_t spent = 0;
    char query;
    prctl(PR_SET_NAME, "backend");
    const int client = accept(listener, NULL, NULL);
    while (read(client, &query, 1) == 1) {
        spent += answer_query();
        must(write(client, &query, 1) == 1, "write of an answer");
    }
    printf("backend pid=%d cpu_ns=%llu\n", getpid(), (unsigned long long)spent);
    exit(0);
}

static void proxy(int listener, const struct sockaddr_in *of_backend) {
    prctl(PR_SET_NAME, "proxy");
    const int client = accept(listener, NULL, NULL), server = connection_to(of_backend);
    const int events = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = client};
    must(!epoll_ctl(events, EPOLL_CTL_ADD, client, &event), "epoll_ctl");
    event.data.fd = server;
    must(!epoll_ctl(events, EPOLL_CTL_ADD, server, &event), "epoll_ctl");
    char byte;
    while (epoll_wait(events, &event, 1, -1) == 1 && read(event.data.fd, &byte, 1) == 1)
        must(write(event.data.fd == client ? server : client, &byte, 1) == 1, "write");
    exit(0);
}

int main(int argc, char **argv) {
    uint64_t iterations = 50;
    if (argc == 3 && !strcmp(argv[1], "--iterations")) iterations = result_amount(argv[2]);
    if (!iterations || (argc != 1 && argc != 3)) {
        fprintf(stderr, "usage: relay [--iterations N]\n");
        return 2;
    }
    struct sockaddr_in of_proxy, of_backend;
    const int proxy_listens = listener_at(&of_proxy), backend_listens = listener_at(&of_backend);
    if (!fork()) backend(backend_listens);
    if (!fork()) proxy(proxy_listens, &of_backend);
    prctl(PR_SET_NAME, "client");
    const int server = connection_to(&of_proxy);
    char byte = 'q';
    for (uint64_t i = 0; i < iterations; i++) {
        must(write(server, &byte, 1) == 1, "write of a query");
        must(read(server, &byte, 1) == 1, "read of an answer");
    }
    close(server);
    while (wait(NULL) > 0) {
    }
    return 0;
}
