// test_network.c: measures the network between ranks. Here the ranks are threads, and their
// collective waits a known time for each message.
// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "scale/network.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RANKS = 3 };
#define MESSAGE_S 0.0001 // time of an exchange in which bytes are sent
#define BYTE_S    2e-9   // and time of each byte that a rank sends

struct hub {
    pthread_barrier_t barrier;
    const rlhf_block *send[RANKS];
    const void *own[RANKS];
    atomic_int mismatches;
};

struct rank {
    struct hub *hub;
    rlhf_collective table;
    struct rlhf__scale_line line;
    uint64_t tickets;
    rlhf_status status;
};

static void pass(double seconds) {
    const double until = rlhf__seconds() + seconds;
    const struct timespec t = {0, (long)(seconds * 1e9)};
    do
        nanosleep(&t, NULL);
    while (rlhf__seconds() < until);
}

static rlhf_status exchange(void *ctx, const rlhf_block *send, const rlhf_block *recv,
                            uint64_t *ticket) {
    struct rank *r = ctx;
    struct hub *h = r->hub;
    uint64_t bytes = 0;
    int sends = 0;
    h->send[r->table.rank] = send;
    pthread_barrier_wait(&h->barrier);
    for (int k = 0; k < RANKS; k++) {
        if (k == r->table.rank) continue;
        const rlhf_block *from = &h->send[k][r->table.rank];
        h->mismatches += from->bytes != recv[k].bytes;
        if (from->bytes) memcpy(recv[k].at, from->at, from->bytes);
        for (int i = 0; i < RANKS; i++)
            sends |= h->send[k][i].bytes > 0;
        bytes += send[k].bytes;
        sends |= send[k].bytes > 0;
    }
    if (sends) pass(MESSAGE_S + (double)bytes * BYTE_S);
    pthread_barrier_wait(&h->barrier);
    *ticket = ++r->tickets;
    return RLHF_OK;
}

static rlhf_status wait_for(void *ctx, uint64_t ticket) {
    const struct rank *r = ctx;
    return ticket <= r->tickets ? RLHF_OK : RLHF_E_INTERNAL;
}

static rlhf_status gather(void *ctx, const void *own, uint64_t bytes, void *all) {
    struct rank *r = ctx;
    struct hub *h = r->hub;
    h->own[r->table.rank] = own;
    pthread_barrier_wait(&h->barrier);
    for (int k = 0; k < RANKS; k++)
        memcpy((char *)all + (uint64_t)k * bytes, h->own[k], bytes);
    pthread_barrier_wait(&h->barrier);
    return RLHF_OK;
}

static void *measure(void *arg) {
    struct rank *r = arg;
    struct rlhf__team team = {.table = &r->table,
                              .rank = r->table.rank,
                              .ranks = RANKS,
                              .local = r->table.rank,
                              .locals = RANKS};
    struct rlhf__error err;
    r->status = rlhf__scale_network(&team, 1 << 18, &r->line, &err);
    return NULL;
}

// Other work on the machine can only make the measured times longer. So each bound is checked on
// one side only.
static void known_line(void **state) {
    struct hub hub = {.mismatches = 0};
    struct rank rank[RANKS] = {{NULL}};
    pthread_t thread[RANKS];
    (void)state;
    pthread_barrier_init(&hub.barrier, NULL, RANKS);
    for (int r = 0; r < RANKS; r++) {
        rank[r].hub = &hub;
        rank[r].table = (rlhf_collective){.size = sizeof rank[r].table,
                                          .rank = r,
                                          .ranks = RANKS,
                                          .local = r,
                                          .locals = RANKS,
                                          .name = "threads",
                                          .detail = "threads",
                                          .ctx = &rank[r],
                                          .exchange = exchange,
                                          .wait = wait_for,
                                          .gather = gather};
        assert_int_equal(pthread_create(&thread[r], NULL, measure, &rank[r]), 0);
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(thread[r], NULL);
    pthread_barrier_destroy(&hub.barrier);
    assert_int_equal(hub.mismatches, 0);
    const struct rlhf__scale_line *l = &rank[0].line;
    assert_int_equal(rank[0].status, RLHF_OK);
    assert_true(l->locals == RANKS);
    assert_string_equal(l->detail, "threads");
    assert_true(l->latency >= MESSAGE_S);
    assert_true(l->slowed >= 0 && l->slowed < 1);
    assert_int_equal(l->exchange.n, 5); // 1 KiB to 256 KiB, each four times the size before it
    for (uint32_t i = 0; i < l->exchange.n; i++) {
        const double bytes = (double)(1024 << 2 * i);
        assert_true(l->exchange.at[i].x == bytes);
        assert_true(l->exchange.at[i].seconds >= MESSAGE_S + 2 * bytes * BYTE_S);
    }
    assert_true(l->bytes == 2 * l->exchange.at[4].x / l->exchange.at[4].seconds);
    for (int r = 1; r < RANKS; r++) // all have the same numbers
        assert_memory_equal(l, &rank[r].line, sizeof *l);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_line)};
    return cmocka_run_group_tests_name("scale_network", tests, NULL, NULL);
}
