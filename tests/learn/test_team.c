// test_team.c: a learner on several ranks. If the shards are equal, then weights, moments and
// numbers have the same bits for any number of ranks.
#include "learner_kit.h"
#include "support/team_threads.h"

#include "learn/optim_blocks.h"
#include "learn/optim_state.h"
#include "learn/same_weights.h"
#include "learn/shards.h"
#include "model/parameters.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3 };

// The results of a run.
struct outcome {
    uint64_t weights, moments; // hashes
    double loss[STEPS], norm[STEPS], clipped[STEPS];
    int64_t tokens, compared;
    uint64_t moment_bytes; // bytes of this rank's moments
    uint64_t early;        // bytes of gradients whose sum began in the last backward pass
    int late;              // steps after which the next minibatch began with the old values
    rlhf_status status;
    char said[400];
};

struct job {
    struct fixture *f;
    uint32_t shards;
    uint32_t block; // elements of a block
    uint64_t part;  // elements that are exchanged at a time; 0: as many as fit
    int skip;       // 1: the second step's loss is not finite
    int fails;      // the rank whose loss fails, or -1
    int fails_from; // the step from which on this loss fails
    int alone;      // 1: the learner does not know that minibatches follow
    int settles;    // 1: the learner knows this, but the policy is needed before
    uint32_t rows;  // rows that are trained on; 0: all but one
    int stops;      // 1: the algorithm ends the epochs after the second step
    int rank, critic, muon;
    int differs; // 1: one bit of rank 2's weights changes after the steps
    int apart;   // 1: gradients must be copied before they are sent
    struct outcome out;
};

static const struct rlhf__optim_config adamw = {.lr = 0.01,
                                                .beta1 = 0.9,
                                                .beta2 = 0.99,
                                                .eps = 1e-8,
                                                .weight_decay = 0.1,
                                                .max_grad_norm = 0.5,
                                                .muon_lr = 0.02,
                                                .muon_momentum = 0.95};

static uint64_t hashed(uint64_t h, const void *p, size_t n) {
    const unsigned char *x = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ x[i]) * 0x100000001b3U;
    return h;
}

static rlhf_status weights_hash(const struct rlhf__model *m, uint64_t *h) {
    const rlhf_compute *t = m->compute;
    for (uint32_t i = 0; m && i < m->n_tensors; i++) {
        const size_t bytes = (size_t)rlhf__param_count(&m->params[i]) * sizeof(float);
        void *p = malloc(bytes);
        rlhf_status st = p ? t->download(t->ctx, p, m->params[i].value, bytes) : RLHF_E_NOMEM;
        if (st == RLHF_OK) *h = hashed(*h, p, bytes);
        free(p);
        RLHF_TRY(st);
    }
    return RLHF_OK;
}

// Computes a hash of the state of all ranks, as a checkpoint collects it. Only rank 0 has this
// state.
static rlhf_status moments_hash(const struct rlhf__optim *o, uint32_t rank, uint64_t *h,
                                struct rlhf__error *err) {
    for (uint32_t i = 0;; i++) {
        const uint64_t n = rlhf__optim_elements(o, i);
        if (n == 0) return RLHF_OK;
        float *p = calloc(n, sizeof *p);
        if (!p) return RLHF_E_NOMEM;
        // in two parts, neither of which begins or ends with a block
        const uint64_t half = n / 3;
        rlhf_status st = rlhf__optim_get(o, i, 0, half, p, err);
        if (st == RLHF_OK) st = rlhf__optim_get(o, i, half, n - half, p + half, err);
        if (st == RLHF_OK && rank == 0) *h = hashed(*h, p, n * sizeof *p);
        free(p);
        RLHF_TRY(st);
    }
}

static rlhf_status failing_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out,
                                struct rlhf__error *err) {
    (void)self;
    (void)in;
    (void)out;
    return rlhf__fail(err, RLHF_E_NUMERIC, "the loss failed");
}

static rlhf_status stopping(void *self, const rlhf_step_info *info, int32_t *stop,
                            struct rlhf__error *err) {
    (void)self;
    (void)err;
    *stop = info->minibatch == 1;
    return RLHF_OK;
}

static rlhf_status steps(struct job *j, struct rlhf__error *err) {
    struct fixture *f = j->f;
    struct outcome *out = &j->out;
    rlhf__learner_begin(&f->learner);
    rlhf__learner_expect(&f->learner, STEPS, STEPS * ROWS, 1);
    if (j->stops) f->learner.objective.stepped = stopping;
    for (int s = 0; s < STEPS && !f->stop; s++) {
        memset(&f->seen, 0, sizeof f->seen);
        f->seen.bad = j->skip && s == 1 ? NAN : 0;
        if (j->fails == j->rank && s == j->fails_from) f->learner.objective.loss = failing_loss;
        f->learner.more = !j->alone && s + 1 < STEPS;
        RLHF_TRY(rlhf__minibatch(&f->learner, &f->e, 0, (uint32_t)s, 1, &f->stop, err));
        if (f->learner.shards) out->late += f->learner.shards->late.sum != NULL;
        if (j->settles) RLHF_TRY(rlhf__shards_settle(&f->learner, err));
        out->loss[s] = f->learner.last_loss;
        out->norm[s] = f->learner.last.grad_norm;
        out->clipped[s] = f->learner.last.grad_norm_clipped;
    }
    if (f->learner.shards) out->early = f->optim->grads_bytes - f->learner.shards->sums.complete;
    out->tokens = f->learner.tokens;
    out->compared = f->learner.compared;
    return RLHF_OK;
}

// Change the last bit of a weight.
static rlhf_status change_bit(const struct rlhf__model *m) {
    const rlhf_compute *t = m->compute;
    const rlhf_param *p = &m->params[m->n_tensors / 2];
    uint32_t x;
    RLHF_TRY(t->download(t->ctx, &x, p->value, sizeof x));
    x ^= 1;
    return t->upload(t->ctx, p->value, &x, sizeof x);
}

static rlhf_status compare(struct job *j, struct rlhf__error *err) {
    const struct rlhf__model *const models[] = {j->f->critic, j->f->policy};
    if (j->differs && j->rank == 2) RLHF_TRY(change_bit(j->f->policy));
    return rlhf__same_weights(j->f->share.team, models, 2, 16, err);
}

static rlhf_status run_job(struct job *j, struct rlhf__error *err) {
    struct fixture *f = j->f;
    struct outcome *out = &j->out;
    out->weights = out->moments = 0xcbf29ce484222325U;
    RLHF_TRY(steps(j, err));
    RLHF_TRY(compare(j, err));
    RLHF_TRY(weights_hash(f->policy, &out->weights));
    if (f->critic) RLHF_TRY(weights_hash(f->critic, &out->weights));
    RLHF_TRY(moments_hash(f->optim, f->share.rank, &out->moments, err));
    if (f->critic) RLHF_TRY(moments_hash(f->critic_optim, f->share.rank, &out->moments, err));
    return RLHF_OK;
}

static void *thread(struct team_thread *t) {
    struct job *j = t->arg;
    struct rlhf__error err = {0, ""};
    j->f->share.team = &t->team;
    if (j->part) j->f->optim->blocks->over.len = j->part;
    j->out.status = run_job(j, &err);
    snprintf(j->out.said, sizeof j->out.said, "%.399s", err.text);
    return NULL;
}

// Runs `like` on `ranks` ranks. out[i] receives the results of rank i.
static void run(const struct job *like, uint32_t ranks, struct outcome *out) {
    static struct fixture *fixture[TEAM_THREADS_MOST];
    struct job job[TEAM_THREADS_MOST];
    void *arg[TEAM_THREADS_MOST];
    static struct rlhf__optim_config config;
    config = adamw;
    if (like->muon) config.kind = RLHF__OPTIM_MUON;
    for (uint32_t k = 0; k < ranks; k++) {
        assert_int_equal(learner_setup((void **)&fixture[k]), 0);
        struct fixture *f = fixture[k];
        f->share = (struct rlhf__share){
            .shards = like->shards, .rank = k, .ranks = ranks, .block = like->block};
        f->optim_config = &config;
        f->apart = like->apart;
        learner_open(f, "cpu", RLHF__DTYPE_F32, 1, like->critic);
        f->e.use[6] = RLHF_USE_EXCLUDED; // 7 rows, so that shards differ
        for (uint32_t i = like->rows; like->rows && i < f->e.n; i++)
            f->e.use[i] = RLHF_USE_EXCLUDED;
        f->plugin.ops.algo.minibatch_end = NULL;
        job[k] = *like;
        job[k].f = f;
        job[k].rank = (int)k;
        arg[k] = &job[k];
    }
    team_threads_run((int32_t)ranks, thread, arg);
    for (uint32_t k = 0; k < ranks; k++) {
        out[k] = job[k].out;
        out[k].moment_bytes = ranks > 1 ? fixture[k]->optim->blocks->moments_bytes : 0;
        assert_int_equal(learner_teardown((void **)&fixture[k]), 0);
    }
}

static void same(const struct outcome *a, const struct outcome *b, uint32_t ranks) {
    if (b->status != RLHF_OK) fail_msg("%u ranks: %s", ranks, b->said);
    assert_memory_equal(a->loss, b->loss, sizeof a->loss);
    assert_memory_equal(a->norm, b->norm, sizeof a->norm);
    assert_memory_equal(a->clipped, b->clipped, sizeof a->clipped);
    assert_int_equal(a->tokens, b->tokens);
    assert_int_equal(a->compared, b->compared);
    if (a->weights != b->weights) fail_msg("%u ranks have other weights", ranks);
}

static void check(const struct job *like) {
    struct outcome one, out[TEAM_THREADS_MOST];
    run(like, 1, &one);
    if (one.status != RLHF_OK) fail_msg("%s", one.said);
    assert_true(one.norm[0] > one.clipped[0]);
    for (uint32_t ranks = 2; ranks <= like->shards && ranks <= 4; ranks++) {
        if (like->shards % ranks) continue;
        run(like, ranks, out);
        for (uint32_t k = 0; k < ranks; k++)
            same(&one, &out[k], ranks);
        // A rank whose last shard has rows begins its sums early. It then sums only the gradients
        // of the embeddings late. In a test with few rows, the last shards of all ranks may be
        // empty, so `early` may be 0.
        uint64_t early = 0;
        for (uint32_t k = 0; k < ranks; k++)
            early = out[k].early > early ? out[k].early : early;
        if (like->apart ? early != 0 : early == 0 && like->rows == 0)
            fail_msg("%llu bytes of sums began early", (unsigned long long)early);
        // All steps but the last count, except steps that change nothing.
        const int late = like->apart || like->alone ? 0 : STEPS - 1 - (like->skip || like->stops);
        assert_int_equal(out[0].late, late);
        if (out[0].moments != one.moments) fail_msg("%u ranks have other moments", ranks);
    }
}

static void ranks_do_not_matter(void **state) {
    (void)state;
    for (uint32_t shards = 2; shards <= 8; shards += 2)
        check(&(struct job){.shards = shards, .block = 1000, .fails = -1});
    check(&(struct job){.shards = 12, .block = 1000, .fails = -1}); // empty shards, several nodes
    check(&(struct job){.shards = 4, .fails = -1});                 // one block
}

static void nor_parts_of_blocks(void **state) {
    (void)state;
    check(&(struct job){.shards = 4, .block = 1000, .part = 300, .fails = -1});
}

static void nor_copies(void **state) {
    (void)state;
    check(&(struct job){.shards = 4, .block = 1000, .apart = 1, .fails = -1});
    check(&(struct job){.shards = 12, .block = 1000, .part = 300, .apart = 1, .fails = -1});
}

static void nor_with_a_critic(void **state) {
    (void)state;
    check(&(struct job){.shards = 4, .block = 1000, .critic = 1, .fails = -1});
}

static void nor_with_muon(void **state) {
    (void)state;
    check(&(struct job){.shards = 4, .block = 1000, .muon = 1, .fails = -1});
}

static void nor_when_values_arrive(void **state) {
    (void)state;
    struct outcome alone, late;
    run(&(struct job){.shards = 4, .block = 1000, .alone = 1, .fails = -1}, 1, &alone);
    run(&(struct job){.shards = 4, .block = 1000, .fails = -1}, 1, &late);
    same(&alone, &late, 1);
    check(&(struct job){.shards = 4, .block = 1000, .alone = 1, .fails = -1});
    check(&(struct job){.shards = 4, .block = 1000, .settles = 1, .fails = -1});
    check(&(struct job){.shards = 4, .block = 1000, .stops = 1, .fails = -1});
}

static void nor_ranks_without_rows(void **state) {
    (void)state;
    check(&(struct job){.shards = 4, .block = 1000, .rows = 1, .fails = -1});
    check(&(struct job){.shards = 4, .block = 1000, .rows = 2, .fails = -1});
}

static void all_skip_a_step_together(void **state) {
    (void)state;
    check(&(struct job){.shards = 4, .block = 1000, .skip = 1, .fails = -1});
}

// If a rank fails, all ranks end with its sentence, also if new values are being received.
static void one_fails_and_all_leave(void **state) {
    (void)state;
    struct outcome out[4];
    for (int step = 0; step < 2; step++) {
        const struct job like = {.shards = 4, .block = 1000, .fails = 2, .fails_from = step};
        run(&like, 4, out);
        for (int k = 0; k < 4; k++) {
            assert_int_equal(out[k].status, RLHF_E_NUMERIC);
            assert_memory_equal(out[k].said, "rank 2 on ", 10);
            assert_non_null(strstr(out[k].said, ": the loss failed"));
            assert_int_equal(out[k].late, step);
        }
    }
}

static void other_weights_are_found(void **state) {
    (void)state;
    struct outcome out[4];
    const struct job like = {.shards = 4, .differs = 1, .fails = -1};
    run(&like, 4, out);
    for (int k = 0; k < 4; k++) {
        assert_int_equal(out[k].status, RLHF_E_INTERNAL);
        assert_memory_equal(out[k].said, "after phase 16 the weights of rank 2 on ", 40);
        assert_non_null(strstr(out[k].said, " differ from those of rank 0 on "));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_do_not_matter),
                                       cmocka_unit_test(nor_parts_of_blocks),
                                       cmocka_unit_test(nor_copies),
                                       cmocka_unit_test(nor_with_a_critic),
                                       cmocka_unit_test(nor_with_muon),
                                       cmocka_unit_test(nor_when_values_arrive),
                                       cmocka_unit_test(nor_ranks_without_rows),
                                       cmocka_unit_test(all_skip_a_step_together),
                                       cmocka_unit_test(one_fails_and_all_leave),
                                       cmocka_unit_test(other_weights_are_found)};
    return cmocka_run_group_tests_name("learn/team", tests, NULL, NULL);
}
