// team_threads.h: ranks as threads of one process: a collective of barriers and memcpy, so that
// tests of a team need no MPI.
//
// Messages are copied as late as the contract allows, in wait(). So a test fails if a receiver
// reads a message before wait(), or if a sender changes it after exchange().
#ifndef RLHF_TESTS_TEAM_THREADS_H
#define RLHF_TESTS_TEAM_THREADS_H

#include "team/team.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEAM_THREADS_MOST = 8 };

struct team_threads;

// An exchange that is under way.
struct team_message {
    rlhf_block send[TEAM_THREADS_MOST], recv[TEAM_THREADS_MOST];
};

struct team_thread {
    struct team_threads *all;
    rlhf_collective table;
    struct rlhf__team team;
    pthread_t thread;
    void *(*run)(struct team_thread *);
    void *arg;
    struct team_message message[RLHF_COLLECTIVE_DEPTH];
    uint64_t begun, ended; // exchanges
    uint64_t sent;         // bytes to other ranks
    const void *own;       // of gather
    char why[200];
    rlhf_status status; // status of team_init
};

struct team_threads {
    int32_t ranks;
    pthread_barrier_t barrier;
    struct team_thread rank[TEAM_THREADS_MOST];
};

static inline rlhf_status team_threads_fail(struct team_thread *t, const char *why) {
    snprintf(t->why, sizeof t->why, "rank %d: %s", t->table.rank, why);
    return RLHF_E_INTERNAL;
}

static inline rlhf_status team_threads_wait(void *ctx, uint64_t ticket) {
    struct team_thread *t = ctx;
    struct team_threads *all = t->all;
    rlhf_status st = RLHF_OK;
    if (ticket > t->begun) return team_threads_fail(t, "a ticket that does not exist");
    for (; t->ended < ticket; t->ended++) {
        const size_t slot = t->ended % RLHF_COLLECTIVE_DEPTH;
        pthread_barrier_wait(&all->barrier);
        for (int32_t k = 0; k < all->ranks; k++) {
            if (k == t->table.rank) continue;
            const rlhf_block from = all->rank[k].message[slot].send[t->table.rank];
            const rlhf_block to = t->message[slot].recv[k];
            t->sent += t->message[slot].send[k].bytes;
            if (from.bytes != to.bytes)
                st = team_threads_fail(t, "sizes of an exchange differ");
            else if (from.bytes)
                memcpy(to.at, from.at, from.bytes);
        }
        pthread_barrier_wait(&all->barrier);
    }
    return st;
}

static inline rlhf_status team_threads_exchange(void *ctx, const rlhf_block *send,
                                                const rlhf_block *recv, uint64_t *ticket) {
    struct team_thread *t = ctx;
    if (t->begun - t->ended == RLHF_COLLECTIVE_DEPTH) RLHF_TRY(team_threads_wait(t, t->ended + 1));
    struct team_message *m = &t->message[t->begun % RLHF_COLLECTIVE_DEPTH];
    memcpy(m->send, send, (size_t)t->all->ranks * sizeof *send);
    memcpy(m->recv, recv, (size_t)t->all->ranks * sizeof *recv);
    *ticket = ++t->begun;
    return RLHF_OK;
}

static inline rlhf_status team_threads_gather(void *ctx, const void *own, uint64_t bytes,
                                              void *out) {
    struct team_thread *t = ctx;
    RLHF_TRY(team_threads_wait(t, t->begun));
    t->own = own;
    pthread_barrier_wait(&t->all->barrier);
    for (int32_t k = 0; k < t->all->ranks; k++)
        memcpy((char *)out + (uint64_t)k * bytes, t->all->rank[k].own, bytes);
    pthread_barrier_wait(&t->all->barrier);
    return RLHF_OK;
}

static inline void team_threads_abort(void *ctx, int32_t status) {
    (void)ctx;
    exit(status);
}

static inline const char *team_threads_error(void *ctx) { return ((struct team_thread *)ctx)->why; }

static inline void *team_threads_main(void *arg) {
    struct team_thread *t = arg;
    struct rlhf__error err = {0, ""};
    t->status = rlhf__team_init(&t->team, &t->table, &err);
    void *result = t->status == RLHF_OK ? t->run(t) : NULL;
    rlhf__team_finish(&t->team);
    return result;
}

// Calls `run` in `ranks` threads at once, with arg[k] in the k-th, and waits for them. `run` must
// not use cmocka's assertions. Check afterwards what it has left in `arg`.
static inline void team_threads_run(int32_t ranks, void *(*run)(struct team_thread *),
                                    void *const *arg) {
    struct team_threads *all = calloc(1, sizeof *all);
    if (!all) abort();
    all->ranks = ranks;
    pthread_barrier_init(&all->barrier, NULL, (unsigned)ranks);
    for (int32_t k = 0; k < ranks; k++) {
        struct team_thread *t = &all->rank[k];
        *t = (struct team_thread){.all = all, .run = run, .arg = arg[k]};
        t->table = (rlhf_collective){.size = sizeof t->table,
                                     .rank = k,
                                     .ranks = ranks,
                                     .local = k,
                                     .locals = ranks,
                                     .name = "threads",
                                     .detail = "threads of a test",
                                     .ctx = t,
                                     .exchange = team_threads_exchange,
                                     .wait = team_threads_wait,
                                     .gather = team_threads_gather,
                                     .abort = team_threads_abort,
                                     .last_error = team_threads_error};
    }
    for (int32_t k = 0; k < ranks; k++)
        if (pthread_create(&all->rank[k].thread, NULL, team_threads_main, &all->rank[k])) abort();
    for (int32_t k = 0; k < ranks; k++)
        pthread_join(all->rank[k].thread, NULL);
    pthread_barrier_destroy(&all->barrier);
    free(all);
}

#endif
