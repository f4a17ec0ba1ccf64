// sums.c: measures the ordered sum over ranks and the spreading of new values (team/sum.h), without
// a model. bench/sums starts this program under a launcher:
//
//   rlhf-bench-sums FLOATS ROUNDS [SECONDS]
//
// Rank 0 prints the shortest time of a sum, of a spread and of both together, and the processor
// time per round, added up over all ranks. With SECONDS, it also prints how much of the exchange is
// hidden by a backward pass of SECONDS and the next forward pass, which takes half as long.
// In place of these passes, this thread only sleeps. The weights of the 48 matrix products of 12
// layers are 68 % of the parameters, and have the highest addresses. The other parameters are used
// like the embeddings of GPT-2 124M: they are needed first, and their gradients are complete last.
#include "base/clock.h"
#include "model/compute.h"
#include "team/sum.h"
#include "team/sum_overlap.h"
#include "team/team_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { PRODUCTS = 48 };

static double processor_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
           1e-6 * ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec);
}

struct times {
    double sum, spread, both, processor;
};

static rlhf_status rounds(struct rlhf__sum *s, int n, struct times *best, struct rlhf__error *err) {
    struct rlhf__team *t = s->share->team;
    rlhf_status table = RLHF_OK;
    double *all = calloc((size_t)t->ranks, sizeof *all);
    rlhf_status st = all ? RLHF_OK : RLHF__NOMEM(err, "out of memory for %d ranks", t->ranks);
    double before = 0;
    for (int i = -1; st == RLHF_OK && i < n; i++) { // round -1 only touches the memory
        double own = 0;
        if (i == 0) before = processor_seconds();
        st = rlhf__team_gather(t, &own, sizeof own, all, err); // all begin together
        const double from = rlhf__seconds();
        if (st == RLHF_OK) st = rlhf__sum_reduce(s, NULL, &table, err);
        const double middle = rlhf__seconds();
        if (st == RLHF_OK) st = rlhf__sum_spread(s, &table, err);
        const double to = rlhf__seconds();
        if (i <= 0 || middle - from < best->sum) best->sum = middle - from;
        if (i <= 0 || to - middle < best->spread) best->spread = to - middle;
        if (i <= 0 || to - from < best->both) best->both = to - from;
        if (st == RLHF_OK && table != RLHF_OK) st = rlhf__fail(err, table, "the backend failed");
    }
    double own = (processor_seconds() - before) / n;
    if (st == RLHF_OK) st = rlhf__team_gather(t, &own, sizeof own, all, err);
    for (int32_t k = 0; st == RLHF_OK && k < t->ranks; k++)
        best->processor += all[k];
    free(all);
    return st;
}

static void sleep_for(double s) {
    const struct timespec t = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};
    nanosleep(&t, NULL);
}

// What overlaps with the passes.
enum overlap { NOTHING, SUM, BOTH, OVERLAPS };

static uint64_t embeddings(const struct rlhf__sum *s) {
    const struct rlhf__piece *last = &s->blocks->piece[s->blocks->n_pieces - 1];
    const uint64_t all = last->at + last->len * sizeof(float);
    return (uint64_t)(0.316 * (double)all) / sizeof(float) * sizeof(float);
}

static uint64_t products(const struct rlhf__sum *s) {
    const struct rlhf__piece *last = &s->blocks->piece[s->blocks->n_pieces - 1];
    return last->at + last->len * sizeof(float) - embeddings(s);
}

// A backward pass of `seconds`, and the sum.
static rlhf_status backward(struct rlhf__sum *s, double seconds, int early, rlhf_status *table,
                            struct rlhf__error *err) {
    struct rlhf__overlap o = {0};
    if (early) rlhf__overlap_reduce(&o, s, NULL);
    for (uint64_t k = 1; k <= PRODUCTS; k++) {
        sleep_for(seconds / PRODUCTS);
        rlhf__overlap_complete(&o, embeddings(s) + products(s) * (PRODUCTS - k) / PRODUCTS);
    }
    return early ? rlhf__overlap_end(&o, table, err) : rlhf__sum_reduce(s, NULL, table, err);
}

// The spread, and a forward pass of `seconds`.
static rlhf_status forward(struct rlhf__sum *s, double seconds, int late, rlhf_status *table,
                           struct rlhf__error *err) {
    struct rlhf__overlap o = {0};
    const rlhf_dev value = s->blocks->piece[0].value;
    if (late)
        rlhf__overlap_spread(&o, s);
    else
        RLHF_TRY(rlhf__sum_spread(s, table, err));
    if (late) rlhf__overlap_wait(&o, value, embeddings(s));
    for (uint64_t k = 1; k <= PRODUCTS; k++) {
        if (late) rlhf__overlap_wait(&o, value, embeddings(s) + products(s) * k / PRODUCTS);
        sleep_for(seconds / PRODUCTS);
    }
    return late ? rlhf__overlap_end(&o, table, err) : RLHF_OK;
}

static rlhf_status step(struct rlhf__sum *s, double seconds, int overlap, double *took,
                        struct rlhf__error *err) {
    rlhf_status table = RLHF_OK;
    const double from = rlhf__seconds();
    rlhf_status st = backward(s, seconds, overlap >= SUM, &table, err);
    if (st == RLHF_OK && table == RLHF_OK)
        st = forward(s, seconds / 2, overlap == BOTH, &table, err);
    *took = rlhf__seconds() - from;
    return st == RLHF_OK && table != RLHF_OK ? rlhf__fail(err, table, "the backend failed") : st;
}

// Print what the passes hide. both: the shortest time of a sum and a spread.
static rlhf_status hide(struct rlhf__sum *s, int n, double seconds, double both,
                        struct rlhf__error *err) {
    struct rlhf__team *t = s->share->team;
    double best[OVERLAPS] = {0}, own = 0;
    double *all = calloc((size_t)t->ranks, sizeof *all);
    rlhf_status st = all ? RLHF_OK : RLHF__NOMEM(err, "out of memory for %d ranks", t->ranks);
    for (int i = 0; st == RLHF_OK && i < OVERLAPS * n; i++) {
        double took = 0;
        st = rlhf__team_gather(t, &own, sizeof own, all, err); // all begin together
        if (st == RLHF_OK) st = step(s, seconds, i % OVERLAPS, &took, err);
        if (i < OVERLAPS || took < best[i % OVERLAPS]) best[i % OVERLAPS] = took;
    }
    free(all);
    if (st == RLHF_OK && t->rank == 0)
        printf("backward pass of %.1f s, sum, spread, forward pass: %.3f s in turn; %.3f s if the "
               "sum begins early, which hides %.1f %% of sum and spread; %.3f s if the spread also "
               "ends late, %.1f %%\n",
               seconds, best[NOTHING], best[SUM], 100 * (best[NOTHING] - best[SUM]) / both,
               best[BOTH], 100 * (best[NOTHING] - best[BOTH]) / both);
    return st;
}

// Write to the memory, so that all of its pages exist.
static rlhf_status fill(const rlhf_compute *t, rlhf_dev to, uint64_t floats) {
    float some[4096];
    for (int i = 0; i < 4096; i++)
        some[i] = (float)i;
    for (uint64_t at = 0, n; at < floats; at += n) {
        n = floats - at < 4096 ? floats - at : 4096;
        RLHF_TRY(t->upload(t->ctx, rlhf_dev_at(to, at * sizeof(float)), some, n * sizeof(float)));
    }
    return RLHF_OK;
}

static rlhf_status measure(struct rlhf__team *team, const rlhf_compute *t, uint64_t floats, int n,
                           double seconds, struct rlhf__error *err) {
    const struct rlhf__share share = {.shards = (uint32_t)team->ranks,
                                      .rank = (uint32_t)team->rank,
                                      .ranks = (uint32_t)team->ranks,
                                      .team = team};
    struct rlhf__blocks blocks = {0};
    struct rlhf__sum sum = {0};
    struct rlhf__piece whole = {.len = floats};
    struct times best = {0};
    rlhf_status st = t->alloc(t->ctx, floats * sizeof(float), &whole.grad);
    if (st == RLHF_OK) st = t->alloc(t->ctx, floats * sizeof(float), &whole.value);
    if (st == RLHF_OK) st = fill(t, whole.grad, floats);
    if (st == RLHF_OK) st = fill(t, whole.value, floats);
    if (st != RLHF_OK)
        st = rlhf__fail(err, st, "no memory for %llu floats", (unsigned long long)floats);
    if (st == RLHF_OK) st = rlhf__blocks_add(&blocks, &whole, 0, err);
    if (st == RLHF_OK) st = rlhf__blocks_deal(&blocks, share.ranks, err);
    if (st == RLHF_OK) st = rlhf__sum_init(&sum, t, &blocks, &share, err);
    if (st == RLHF_OK) st = rounds(&sum, n, &best, err);
    if (st == RLHF_OK && team->rank == 0)
        printf("sum %.1f ms, spread %.1f ms, both %.1f ms, %.1f ms of processor time\n",
               best.sum * 1e3, best.spread * 1e3, best.both * 1e3, best.processor * 1e3);
    if (st == RLHF_OK && seconds > 0) st = hide(&sum, n, seconds, best.both, err);
    rlhf__sum_finish(&sum);
    rlhf__blocks_finish(&blocks);
    t->release(t->ctx, whole.grad);
    t->release(t->ctx, whole.value);
    return st;
}

int main(int argc, char **argv) {
    struct rlhf__dirs dirs;
    struct rlhf__error err = {0, ""};
    struct rlhf__log log;
    struct rlhf__collective c = {0};
    struct rlhf__compute *compute = NULL;
    const uint64_t floats = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    const int n = argc > 2 ? atoi(argv[2]) : 5;
    const double seconds = argc > 3 ? strtod(argv[3], NULL) : 0;
    rlhf__log_init(&log);
    if (rlhf__dirs_find(&dirs, &err) < 0) return 1;
    const struct rlhf__collective_spec spec = {
        .dirs = &dirs, .launch = rlhf__launch_read(), .backend = "auto", .log = &log};
    const struct rlhf__compute_spec cpu = {.dirs = &dirs, .backend = "cpu", .threads = 1};
    rlhf_status st = rlhf__collective_open(&spec, &c, &err);
    if (st == RLHF_OK && c.team.ranks < 2)
        st = rlhf__fail(&err, RLHF_E_INVALID, "start it with mpirun, as several processes");
    if (st == RLHF_OK) st = rlhf__compute_open(&cpu, &compute, &err);
    if (st == RLHF_OK) st = measure(&c.team, compute->table, floats, n > 0 ? n : 1, seconds, &err);
    if (st != RLHF_OK) rlhf__log_error(&log, err.text);
    rlhf__compute_close(compute);
    rlhf__collective_close(&c, rlhf__exit_status(st));
    rlhf__log_finish(&log);
    return rlhf__exit_status(st);
}
