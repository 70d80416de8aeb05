/* A server that is slow, for the tutorial of whit.
 *
 *   cc -O2 -g -pthread -o shop shop.c
 *
 *   ./shop                    serves orders for 10 seconds and prints how many
 *   ./shop --seconds 5        serves for 5 seconds
 *   ./shop --indexed          finds products by binary search
 *   ./shop --connections 4    pays over four connections to the bank, not one
 *   ./shop --audit            looks through the accounts now and then
 *   ./shop --bench            serves for 2 seconds
 *   ./shop --statistics       serves nobody: computes on all CPUs
 *
 * The clients and the bank are made up, so that the program needs no network: the bank answers after 500 us. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

enum { PRODUCTS = 20000, ITEMS_PER_ORDER = 20, WORKERS = 4, MOST_CONNECTIONS = 16 };
static const long BANK_NS = 500 * 1000;
static const long AUDIT_NS = 5 * 1000 * 1000, BETWEEN_AUDITS_NS = 60 * 1000 * 1000;

struct product {
    uint32_t id;
    uint32_t cents;
    char name[56];
};

struct connection {
    pthread_mutex_t lock;
    uint64_t paid_cents;
};

/* Sorted by id. */
static struct product products[PRODUCTS];
static struct connection bank[MOST_CONNECTIONS];
static int connections = 1, indexed, audited, seconds = 10;
static atomic_int closed;
static atomic_ulong served, served_ns, slowest_ns;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

NOINLINE static const struct product *find_product(uint32_t id)
{
    for (int i = 0; i < PRODUCTS; i++)
        if (products[i].id == id)
            return &products[i];
    return NULL;
}

NOINLINE static const struct product *look_up_product(uint32_t id)
{
    int low = 0, high = PRODUCTS;
    while (low < high) {
        int middle = (low + high) / 2;
        if (products[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < PRODUCTS && products[low].id == id ? &products[low] : NULL;
}

NOINLINE static uint64_t price_order(uint32_t *client)
{
    uint64_t cents = 0;
    for (int item = 0; item < ITEMS_PER_ORDER; item++) {
        uint32_t id = 7 * (next_random(client) % PRODUCTS);
        const struct product *product = indexed ? look_up_product(id) : find_product(id);
        if (product)
            cents += product->cents;
    }
    return cents;
}

NOINLINE static void ask_bank(struct connection *connection, uint64_t cents)
{
    struct timespec answer = { 0, BANK_NS };
    nanosleep(&answer, NULL);
    connection->paid_cents += cents;
}

NOINLINE static void pay(int worker, uint64_t cents)
{
    struct connection *connection = &bank[worker % connections];
    pthread_mutex_lock(&connection->lock);
    ask_bank(connection, cents);
    pthread_mutex_unlock(&connection->lock);
}

NOINLINE static void serve_order(int worker, uint32_t *client)
{
    uint64_t start = now_ns();
    pay(worker, price_order(client));
    uint64_t took = now_ns() - start;
    atomic_fetch_add(&served, 1);
    atomic_fetch_add(&served_ns, took);
    unsigned long slowest = atomic_load(&slowest_ns);
    while (took > slowest && !atomic_compare_exchange_weak(&slowest_ns, &slowest, took)) {
    }
}

static void *work(void *argument)
{
    int worker = (int)(intptr_t)argument;
    uint32_t client = 2463534242u + (uint32_t)worker;
    pthread_setname_np(pthread_self(), "worker");
    while (!atomic_load(&closed))
        serve_order(worker, &client);
    return NULL;
}

NOINLINE static uint64_t sum_accounts(uint64_t sum)
{
    uint64_t end = now_ns() + (uint64_t)AUDIT_NS;
    while (now_ns() < end)
        for (int i = 0; i < PRODUCTS; i++)
            sum += products[i].cents;
    return sum;
}

/* Nobody pays over a connection whose account is looked through. */
static void *audit(void *unused)
{
    const struct timespec pause = { 0, BETWEEN_AUDITS_NS };
    uint64_t sum = 0;
    (void)unused;
    pthread_setname_np(pthread_self(), "auditor");
    while (!atomic_load(&closed)) {
        nanosleep(&pause, NULL);
        for (int i = 0; i < connections; i++) {
            pthread_mutex_lock(&bank[i].lock);
            sum += sum_accounts(bank[i].paid_cents);
            pthread_mutex_unlock(&bank[i].lock);
        }
    }
    return (void *)(uintptr_t)sum;
}

/* Returns the last digits, so that no compiler leaves the work out. */
NOINLINE static uint32_t compute_statistics(uint32_t state)
{
    uint32_t sum = 0;
    while (!atomic_load(&closed))
        for (int i = 0; i < 100000; i++)
            sum += next_random(&state);
    return sum;
}

static void *count(void *argument)
{
    pthread_setname_np(pthread_self(), "statistics");
    return (void *)(intptr_t)compute_statistics(1 + (uint32_t)(intptr_t)argument);
}

static void run(int threads, void *(*body)(void *))
{
    pthread_t *all = calloc((size_t)threads, sizeof *all);
    if (!all)
        exit(1);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&all[i], NULL, body, (void *)(intptr_t)i)) {
            fprintf(stderr, "shop: cannot start a thread\n");
            exit(1);
        }
    sleep((unsigned)seconds);
    atomic_store(&closed, 1);
    for (int i = 0; i < threads; i++)
        pthread_join(all[i], NULL);
    free(all);
}

static int number(const char *text, int most)
{
    char *end;
    long value = text ? strtol(text, &end, 10) : 0;
    if (value < 1 || value > most || *end) {
        fprintf(stderr, "shop: a number from 1 to %d is missing\n", most);
        exit(2);
    }
    return (int)value;
}

int main(int count_of_arguments, char **arguments)
{
    int statistics = 0;
    for (int i = 1; i < count_of_arguments; i++) {
        if (!strcmp(arguments[i], "--indexed"))
            indexed = 1;
        else if (!strcmp(arguments[i], "--audit"))
            audited = 1;
        else if (!strcmp(arguments[i], "--statistics"))
            statistics = 1;
        else if (!strcmp(arguments[i], "--bench"))
            seconds = 2;
        else if (!strcmp(arguments[i], "--connections"))
            connections = number(arguments[++i], MOST_CONNECTIONS);
        else if (!strcmp(arguments[i], "--seconds"))
            seconds = number(arguments[++i], 86400);
        else {
            fprintf(stderr, "usage: shop [--indexed] [--connections N] [--audit] [--seconds N] [--bench] [--statistics]\n");
            return 2;
        }
    }
    for (uint32_t i = 0; i < PRODUCTS; i++)
        products[i] = (struct product){ .id = 7 * i, .cents = 100 + i % 900 };
    for (int i = 0; i < connections; i++)
        pthread_mutex_init(&bank[i].lock, NULL);
    if (statistics) {
        run((int)sysconf(_SC_NPROCESSORS_ONLN), count);
        return 0;
    }
    pthread_t auditor;
    if (audited && pthread_create(&auditor, NULL, audit, NULL))
        return 1;
    run(WORKERS, work);
    double orders = (double)served;
    printf("%.0f orders, %.0f a second; one took %.2f ms, the slowest %.2f ms\n", orders, orders / seconds,
           orders ? (double)served_ns / orders / 1e6 : 0, (double)slowest_ns / 1e6);
    return 0;
}
