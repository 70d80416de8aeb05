// A server and its clients, which know when each request was read and answered.
//
//   sockets [--port PORT | --unix PATH] [--mode threads|queue|loop] [--clients N] [--requests N] [--quiet]
//
// Each client sends N requests (100 by default) one after the other by a connection of its own, in one, two or three
// pieces, and waits for the answer, which comes in as many pieces. A server of threads has a thread for each
// connection; one with a queue has one thread that reads all connections and two that answer; one with a loop has one
// thread that does all. To answer, a thread spins for 100 us, and sleeps for 20 ms in every fiftieth request. At the
// end the program prints its requests with the times that CLOCK_MONOTONIC had:
//
//   request peer=PEER number=N sent=NS read=NS answers=NS answered=NS reader=T writer=T
//
// sent: before the client sends the first piece; read: after the server has read that piece; answers and answered:
// before and after the server sends the last piece. PEER is the client's port, or the program's process.
//
// With --quiet it prints nothing but the time of a request, which the recorder's cost is part of. All threads share a CPU,
// so that no time is that of an idle one that wakes:
//
//   sockets requests=N ns_per_request=NS
//
// Then no request spins or sleeps.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "placement.h"

enum { CLIENTS_MAX = 64, WORKERS = 2, SPIN_NS = 100000, SLEEP_NS = 20000000, SLEEPS_EVERY = 50, PIECES = 3 };

struct request {
    uint64_t sent, read, answers, answered;
    pid_t reader, writer;
};

struct connection {
    int client, server;
    unsigned peer;
    struct request *requests;
    // The request that is answered, and pieces of it that were read.
    unsigned number, pieces;
};

static struct connection connections[CLIENTS_MAX];
static unsigned clients = 4, wanted = 100;
static bool is_quiet;

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static unsigned pieces_of(unsigned number) { return 1 + number % PIECES; }

static void put(int socket, char byte) {
    if (send(socket, &byte, 1, MSG_NOSIGNAL) != 1) fail("send");
}

static char get(int socket) {
    char byte;
    if (recv(socket, &byte, 1, 0) != 1) fail("recv");
    return byte;
}

static void *client(void *argument) {
    struct connection *it = argument;
    for (unsigned number = 0; number < wanted; number++) {
        it->requests[number].sent = now();
        for (unsigned piece = 0; piece < pieces_of(number); piece++) put(it->client, 'q');
        for (unsigned piece = 0; piece < pieces_of(number); piece++) get(it->client);
    }
    shutdown(it->client, SHUT_WR);
    return NULL;
}

// Reads the next pieces of a request. Returns whether it is whole.
static bool read_some(struct connection *it) {
    struct request *request = &it->requests[it->number];
    char bytes[PIECES];
    ssize_t got = recv(it->server, bytes, sizeof bytes, 0);
    if (got < 1) fail("recv");
    if (it->pieces == 0) {
        request->read = now();
        request->reader = gettid();
    }
    it->pieces += (unsigned)got;
    return it->pieces == pieces_of(it->number);
}

__attribute__((noinline)) static void handle(unsigned number) {
    if (is_quiet) return;
    for (uint64_t end = now() + SPIN_NS; now() < end;) {
    }
    if (number % SLEEPS_EVERY == SLEEPS_EVERY - 1) {
        struct timespec time = {.tv_nsec = SLEEP_NS};
        nanosleep(&time, NULL);
    }
}

static void answer(struct connection *it) {
    unsigned number = it->number;
    struct request *request = &it->requests[number];
    handle(number);
    request->writer = gettid();
    it->pieces = 0;
    it->number++;
    for (unsigned piece = 1; piece < pieces_of(number); piece++) put(it->server, 'a');
    request->answers = now();
    put(it->server, 'a');
    request->answered = now();
}

static void *serve_one(void *argument) {
    struct connection *it = argument;
    while (it->number < wanted)
        if (read_some(it)) answer(it);
    return NULL;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t change = PTHREAD_COND_INITIALIZER;
static struct connection *queue[CLIENTS_MAX];
static unsigned queued, left;

static void *work(void *argument) {
    (void)argument;
    pthread_mutex_lock(&lock);
    while (left > 0) {
        if (queued == 0) {
            pthread_cond_wait(&change, &lock);
            continue;
        }
        struct connection *it = queue[--queued];
        left--;
        pthread_mutex_unlock(&lock);
        answer(it);
        pthread_mutex_lock(&lock);
    }
    pthread_cond_broadcast(&change);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void pass_on(struct connection *it) {
    pthread_mutex_lock(&lock);
    queue[queued++] = it;
    pthread_cond_signal(&change);
    pthread_mutex_unlock(&lock);
}

// Reads all connections, and answers or passes on.
static void serve_all(void (*take)(struct connection *)) {
    struct pollfd files[CLIENTS_MAX];
    for (unsigned left_to_read = clients * wanted; left_to_read > 0;) {
        for (unsigned at = 0; at < clients; at++) {
            // After its last request, a client has only closed its end.
            int file = connections[at].number < wanted ? connections[at].server : -1;
            files[at] = (struct pollfd){file, POLLIN, 0};
        }
        if (poll(files, clients, -1) < 0) fail("poll");
        for (unsigned at = 0; at < clients; at++) {
            struct connection *it = &connections[at];
            if (!(files[at].revents & POLLIN) || it->number >= wanted) continue;
            if (it->pieces < pieces_of(it->number) && read_some(it)) {
                left_to_read--;
                take(it);
            }
        }
    }
}

static void connect_all(int listener, const struct sockaddr *address, socklen_t bytes) {
    for (unsigned at = 0; at < clients; at++) {
        struct connection *it = &connections[at];
        it->requests = calloc(wanted, sizeof *it->requests);
        it->client = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (!it->requests || it->client < 0 || connect(it->client, address, bytes)) fail("connect");
        it->server = accept(listener, NULL, NULL);
        if (it->server < 0) fail("accept");
        it->peer = (unsigned)getpid();
        if (address->sa_family == AF_INET) {
            int one = 1;
            struct sockaddr_in own = {0};
            socklen_t own_bytes = sizeof own;
            setsockopt(it->client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            setsockopt(it->server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
            if (getsockname(it->client, (struct sockaddr *)&own, &own_bytes)) fail("getsockname");
            it->peer = ntohs(own.sin_port);
        }
    }
}

int main(int count, char **words) {
    struct sockaddr_in inet = {.sin_family = AF_INET, .sin_port = htons(7117)};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    const char *mode = "threads";
    inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int at = 1; at < count; at++) {
        const char *word = words[at], *value = at + 1 < count ? words[at + 1] : "";
        if (!strcmp(word, "--quiet")) {
            is_quiet = true;
            continue;
        }
        at++;
        if (!strcmp(word, "--port")) inet.sin_port = htons((uint16_t)atoi(value));
        else if (!strcmp(word, "--unix")) strncpy(local.sun_path, value, sizeof local.sun_path - 1);
        else if (!strcmp(word, "--mode")) mode = value;
        else if (!strcmp(word, "--clients")) clients = (unsigned)atoi(value);
        else if (!strcmp(word, "--requests")) wanted = (unsigned)atoi(value);
        else {
            fprintf(stderr, "unknown option %s\n", word);
            return 2;
        }
    }
    if (clients < 1 || clients > CLIENTS_MAX || wanted < 1) return 2;
    bool is_local = local.sun_path[0] != 0;
    // A name behind '@' is abstract.
    socklen_t local_bytes = (socklen_t)(sizeof(sa_family_t) + strlen(local.sun_path));
    if (local.sun_path[0] == '@') local.sun_path[0] = 0;
    const struct sockaddr *address = is_local ? (struct sockaddr *)&local : (struct sockaddr *)&inet;
    socklen_t bytes = is_local ? local_bytes : sizeof inet;
    int one = 1, listener = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!is_local) setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (listener < 0 || bind(listener, address, bytes) || listen(listener, CLIENTS_MAX)) fail("bind");
    connect_all(listener, address, bytes);
    left = clients * wanted;
    cpu_set_t allowed;
    if (is_quiet && (sched_getaffinity(0, sizeof allowed, &allowed) || placement_pin(&allowed, 0))) fail("pin");
    uint64_t began = now();
    pthread_t threads[CLIENTS_MAX], servers[CLIENTS_MAX];
    unsigned serving = 0;
    for (unsigned at = 0; at < clients; at++) pthread_create(&threads[at], NULL, client, &connections[at]);
    if (!strcmp(mode, "threads")) {
        for (; serving < clients; serving++)
            pthread_create(&servers[serving], NULL, serve_one, &connections[serving]);
    } else if (!strcmp(mode, "queue")) {
        for (; serving < WORKERS; serving++) pthread_create(&servers[serving], NULL, work, NULL);
        serve_all(pass_on);
    } else {
        serve_all(answer);
    }
    for (unsigned at = 0; at < serving; at++) pthread_join(servers[at], NULL);
    for (unsigned at = 0; at < clients; at++) pthread_join(threads[at], NULL);
    uint64_t took = now() - began;
    if (is_quiet) {
        printf("sockets requests=%u ns_per_request=%lu\n", clients * wanted, took / (clients * wanted));
        return 0;
    }
    for (unsigned at = 0; at < clients; at++) {
        for (unsigned number = 0; number < wanted; number++) {
            struct request *it = &connections[at].requests[number];
            printf("request peer=%u number=%u sent=%lu read=%lu answers=%lu answered=%lu reader=%d writer=%d\n",
                   connections[at].peer, number, it->sent, it->read, it->answers, it->answered, it->reader,
                   it->writer);
        }
    }
    return 0;
}
