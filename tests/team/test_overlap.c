// test_overlap.c: tests overlap.h on ranks that are threads. Sums begin while gradients are still
// being computed, and the next pass begins while its values are still being received. A pass must
// find only new values, and the sums must have the same bits as sums that begin later.
#include "support/check.h"
#include "support/team_threads.h"
#include "team/sum_overlap.h"

#include <math.h>
#include <time.h>

enum { N = 7000, STEPS = 4, PARTS = 9 };

// ---- device memory that is host memory ----

static rlhf_status alloc(void *ctx, uint64_t bytes, rlhf_dev *out) {
    (void)ctx;
    *out = (rlhf_dev)calloc(1, bytes + 1);
    return *out ? RLHF_OK : RLHF_E_NOMEM;
}

static void release(void *ctx, rlhf_dev p) {
    (void)ctx;
    free((void *)p);
}

static rlhf_status add(void *ctx, rlhf_dev y, rlhf_dev x, int32_t dtype, uint64_t n) {
    float *to = (float *)(void *)y;
    const float *from = (const float *)(const void *)x;
    (void)ctx;
    (void)dtype;
    for (uint64_t i = 0; i < n; i++)
        to[i] += from[i];
    return RLHF_OK;
}

static rlhf_status copy(void *ctx, rlhf_dev to, rlhf_dev from, uint64_t bytes) {
    (void)ctx;
    memcpy((void *)to, (const void *)from, bytes);
    return RLHF_OK;
}

static rlhf_status download(void *ctx, void *to, rlhf_dev from, uint64_t bytes) {
    (void)ctx;
    memcpy(to, (const void *)from, bytes);
    return RLHF_OK;
}

static rlhf_status upload(void *ctx, rlhf_dev to, const void *from, uint64_t bytes) {
    (void)ctx;
    memcpy((void *)to, from, bytes);
    return RLHF_OK;
}

// ---- a rank ----

struct rank {
    struct rlhf__blocks blocks;
    struct rlhf__sum sum;
    struct rlhf__share share;
    rlhf_compute table;
    int overlap;
    float grad[N], value[N], summed[STEPS][N];
    int old;            // values that a pass found before they had arrived
    int fails_at;       // step in which the ranks cannot reach each other; STEPS: no step
    rlhf_status status; // status of that step
    struct rlhf__error err;
};

// Tensors of odd sizes, so that blocks have several pieces.
static rlhf_status open(struct rank *r) {
    static const uint64_t len[] = {2001, 17, 800, 3000, 1, 1181};
    r->table = (rlhf_compute){.size = sizeof r->table,
                              .flags = RLHF_COMPUTE_HOST_MEMORY,
                              .alloc = alloc,
                              .release = release,
                              .add = add,
                              .copy = copy,
                              .download = download,
                              .upload = upload};
    r->blocks.limit = 500;
    uint64_t at = 0;
    for (uint32_t i = 0; i < sizeof len / sizeof *len; at += len[i++]) {
        const struct rlhf__piece p = {.grad = (rlhf_dev)(void *)(r->grad + at),
                                      .value = (rlhf_dev)(void *)(r->value + at),
                                      .len = len[i],
                                      .at = at * sizeof(float),
                                      .tensor = i};
        RLHF_TRY(rlhf__blocks_add(&r->blocks, &p, 0, &r->err));
    }
    RLHF_TRY(rlhf__blocks_deal(&r->blocks, r->share.ranks, &r->err));
    return rlhf__sum_init(&r->sum, &r->table, &r->blocks, &r->share, &r->err);
}

static float gradient(uint32_t rank, int step, int i) {
    return sinf((float)(i + 1) * (float)(rank + 1)) * (float)(step + 1);
}

// Writes the gradients from the last to the first. This is so slow that a sum that does not wait
// would overtake it.
static rlhf_status backward(struct rank *r, int step) {
    const struct timespec nap = {0, 300000};
    struct rlhf__overlap o = {0};
    rlhf_status table = RLHF_OK;
    if (r->overlap) rlhf__overlap_reduce(&o, &r->sum, NULL);
    for (int part = PARTS; part-- > 0;) {
        const int from = N * part / PARTS, to = N * (part + 1) / PARTS;
        nanosleep(&nap, NULL);
        for (int i = from; i < to; i++)
            r->grad[i] = gradient(r->share.rank, step, i);
        if (part > 0) rlhf__overlap_complete(&o, (uint64_t)from * sizeof(float));
    }
    const rlhf_status st = r->overlap ? rlhf__overlap_end(&o, &table, &r->err)
                                      : rlhf__sum_reduce(&r->sum, NULL, &table, &r->err);
    return st == RLHF_OK ? table : st;
}

// Sets the values of this rank's blocks, and keeps the sums of these blocks.
static void change(struct rank *r, int step) {
    for (uint32_t b = 0; b < r->blocks.n; b++)
        for (uint32_t k = r->blocks.block[b].first;
             r->blocks.block[b].owner == r->share.rank && k < r->blocks.block[b].end; k++) {
            const struct rlhf__piece *p = &r->blocks.piece[k];
            const size_t at = p->at / sizeof(float);
            memcpy(r->summed[step] + at, r->grad + at, p->len * sizeof(float));
            for (size_t i = at; i < at + p->len; i++)
                r->value[i] = (float)(step + 1);
        }
}

// Reads the values from the first to the last.
static rlhf_status forward(struct rank *r, int step) {
    struct rlhf__overlap o = {0};
    rlhf_status table = RLHF_OK, st = RLHF_OK;
    if (r->overlap)
        rlhf__overlap_spread(&o, &r->sum);
    else
        st = rlhf__sum_spread(&r->sum, &table, &r->err);
    for (int part = 0; st == RLHF_OK && part < PARTS; part++) {
        const int from = N * part / PARTS, to = N * (part + 1) / PARTS;
        if (r->overlap)
            rlhf__overlap_wait(&o, (rlhf_dev)(void *)(r->value + from),
                               (uint64_t)(to - from) * sizeof(float));
        for (int i = from; i < to && step != r->fails_at; i++)
            r->old += r->value[i] != (float)(step + 1);
    }
    if (r->overlap) st = rlhf__overlap_end(&o, &table, &r->err);
    return st == RLHF_OK ? table : st;
}

static rlhf_status unreachable(void *ctx, uint64_t ticket) {
    (void)ctx;
    (void)ticket;
    return RLHF_E_DEVICE;
}

static void *run(struct team_thread *t) {
    struct rank *r = t->arg;
    r->share.team = &t->team;
    r->status = open(r);
    for (int step = 0; r->status == RLHF_OK && step < STEPS; step++) {
        r->status = backward(r, step);
        change(r, step);
        if (step == r->fails_at) t->table.wait = unreachable;
        if (r->status == RLHF_OK) r->status = forward(r, step);
    }
    rlhf__sum_finish(&r->sum);
    rlhf__blocks_finish(&r->blocks);
    return NULL;
}

static struct rank *start(uint32_t ranks, int overlap, int fails_at) {
    struct rank *r = calloc(ranks, sizeof *r);
    void *arg[TEAM_THREADS_MOST];
    assert_non_null(r);
    for (uint32_t k = 0; k < ranks; k++) {
        r[k].share = (struct rlhf__share){.shards = ranks, .rank = k, .ranks = ranks};
        r[k].overlap = overlap;
        r[k].fails_at = fails_at;
        arg[k] = &r[k];
    }
    team_threads_run((int32_t)ranks, run, arg);
    return r;
}

static void same_bits(void **state) {
    (void)state;
    for (uint32_t ranks = 2; ranks <= 4; ranks++) {
        struct rank *plain = start(ranks, 0, STEPS), *overlapped = start(ranks, 1, STEPS);
        for (uint32_t k = 0; k < ranks; k++) {
            assert_int_equal(plain[k].status, RLHF_OK);
            assert_int_equal(overlapped[k].status, RLHF_OK);
            assert_int_equal(plain[k].old, 0);
            assert_int_equal(overlapped[k].old, 0);
            assert_memory_equal(plain[k].summed, overlapped[k].summed, sizeof plain->summed);
            assert_memory_equal(plain[k].value, overlapped[k].value, sizeof plain->value);
        }
        free(plain);
        free(overlapped);
    }
}

// A pass does not wait forever for values that cannot be received.
static void a_failure_ends_the_wait(void **state) {
    (void)state;
    struct rank *r = start(2, 1, 1);
    for (int k = 0; k < 2; k++)
        assert_int_equal(r[k].status, RLHF_E_DEVICE);
    free(r);
}

static uint64_t length(int32_t ranks, int32_t locals, int32_t of_ranks, int32_t of_locals) {
    struct rlhf__team all = {.ranks = of_ranks, .locals = of_locals};
    struct rlhf__team part = {.ranks = ranks, .locals = locals, .parent = of_ranks ? &all : NULL};
    struct rank r = {.share = {.shards = (uint32_t)ranks, .ranks = (uint32_t)ranks}};
    const struct rlhf__piece p = {.len = 4 * RLHF__BLOCK};
    r.share.team = &part;
    r.table = (rlhf_compute){.size = sizeof r.table,
                             .flags = RLHF_COMPUTE_HOST_MEMORY,
                             .alloc = alloc,
                             .release = release};
    assert_int_equal(rlhf__blocks_add(&r.blocks, &p, 0, &r.err), RLHF_OK);
    assert_int_equal(rlhf__blocks_deal(&r.blocks, r.share.ranks, &r.err), RLHF_OK);
    assert_int_equal(rlhf__sum_init(&r.sum, &r.table, &r.blocks, &r.share, &r.err), RLHF_OK);
    const uint64_t len = r.sum.len;
    rlhf__sum_finish(&r.sum);
    rlhf__blocks_finish(&r.blocks);
    return len;
}

// Between machines, messages are shorter. The ranks that train are a part of all ranks if there are
// actors (split.h). Then all of them must choose the same length, even if their machines have
// different numbers of ranks.
static void all_ranks_choose_the_same_length(void **state) {
    (void)state;
    assert_true(length(2, 1, 0, 0) < length(2, 2, 0, 0));
    assert_true(length(4, 3, 8, 3) == length(4, 5, 8, 5));
    assert_true(length(4, 3, 8, 3) < length(4, 8, 8, 8));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits),
                                       cmocka_unit_test(all_ranks_choose_the_same_length),
                                       cmocka_unit_test(a_failure_ends_the_wait)};
    return cmocka_run_group_tests_name("team/overlap", tests, NULL, NULL);
}
