// reward_round.c: see reward_round.h.
#include "keep/reward_round.h"

#include "feed/feed.h"
#include "learn/minibatch.h"
#include "learn/shards.h"
#include "sample/scoring.h"

#include <math.h>
#include <rlhf/exact.h>
#include <stdlib.h>
#include <string.h>

// Returns the loss of a pair with rewards r[2], multiplied by w, and writes its derivative to d[2].
static double one_pair(const float *r, double w, float *d) {
    double chosen = (double)r[0], rejected = (double)r[1];
    double top = rejected > chosen ? rejected : chosen;
    double log_sum = top + rlhf_log(rlhf_exp(chosen - top) + rlhf_exp(rejected - top));
    d[0] = (float)(w * (rlhf_exp(chosen - log_sum) - 1));
    d[1] = (float)(w * rlhf_exp(rejected - log_sum));
    return w * (log_sum - chosen);
}

static rlhf_status pairs_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out,
                              struct rlhf__error *err) {
    struct rlhf__pair_loss *p = self;
    const double w = 2 / (double)in->batch_sequences;
    (void)err;
    for (uint32_t i = 0; i + 1 < in->n; i += 2) {
        const float *r = in->heads->score + i;
        out->loss += one_pair(r, w, out->d_heads->score + i);
        p->margin += (double)r[0] - (double)r[1];
        p->right += r[1] < r[0];
        p->pairs++;
    }
    p->loss += out->loss;
    return RLHF_OK;
}

struct rlhf__objective rlhf__pair_objective(struct rlhf__pair_loss *p) {
    return (struct rlhf__objective){.loss = pairs_loss, .self = p, .name = ""};
}

// ---- set-up ----

static rlhf_status open_learner(struct rlhf__reward_round *r, struct rlhf__error *err) {
    const struct rlhf__config *c = r->config;
    const struct rlhf__model *m = r->rm->model;
    struct rlhf__optim_config own = c->optim;
    own.kind = RLHF__OPTIM_ADAMW;
    const struct rlhf__optim_spec spec = {.kernels = rlhf__model_kernels(m),
                                          .params = m->params,
                                          .n = m->n_tensors,
                                          .config = &own,
                                          .grads = m->info.grad_base,
                                          .grads_bytes = m->info.grad_bytes,
                                          .share = &r->cast->share};
    rlhf_status st = rlhf__optim_open(m->compute, &spec, &r->optim, err);
    r->learner.model = m;
    r->learner.reward_head = &r->rm->head;
    r->learner.objective = rlhf__pair_objective(&r->loss);
    r->learner.plan = (rlhf_plan){.source = RLHF_SOURCE_PREFERENCES,
                                  .heads = RLHF_HEAD_SCORE,
                                  .epochs = 1,
                                  .minibatches = 1,
                                  .group_size = 1};
    r->learner.optim = r->optim;
    r->learner.dist = (rlhf_dist)RLHF_DIST_WHOLE;
    r->learner.microbatch_tokens = rlhf__model_microbatch(m, c->batch.microbatch_tokens);
    r->learner.written_out = !c->batch.share_prompts;
    r->learner.max_new_tokens = c->sampling.max_new_tokens;
    double *const sums[] = {&r->loss.loss, &r->loss.margin, &r->loss.pairs, &r->loss.right};
    memcpy(r->learner.sums, sums, sizeof sums);
    return st == RLHF_OK ? rlhf__shards_open(&r->learner, &r->cast->share, err) : st;
}

rlhf_status rlhf__reward_round_open(const struct rlhf__config *config,
                                    const struct rlhf__cast *cast, const struct rlhf__feed *feed,
                                    struct rlhf__log *log, struct rlhf__reward_model *rm,
                                    struct rlhf__reward_round **out, struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__reward_round *r = calloc(1, sizeof *r);
    if (!r) return RLHF__NOMEM(err, "out of memory for the reward model's training");
    *r = (struct rlhf__reward_round){
        .config = config, .cast = cast, .feed = feed, .log = log, .rm = rm};
    rlhf_status st = open_learner(r, err);
    if (st != RLHF_OK) {
        rlhf__reward_round_close(r);
        return st;
    }
    *out = r;
    return RLHF_OK;
}

void rlhf__reward_round_close(struct rlhf__reward_round *r) {
    if (!r) return;
    rlhf__shards_close(&r->learner);
    rlhf__learner_finish(&r->learner);
    rlhf__optim_close(r->optim);
    free(r);
}

// ---- a round ----

static rlhf_status check(const rlhf_reward_update *u, struct rlhf__error *err) {
    if (u->epochs < 1)
        return rlhf__fail(err, RLHF_E_INVALID, "the reward model's epochs are %d; at least 1",
                          u->epochs);
    if (u->batch_pairs < 1)
        return rlhf__fail(err, RLHF_E_INVALID, "the reward model's batch is %d pairs; at least 1",
                          u->batch_pairs);
    if (!(u->lr > 0 && u->lr <= 10))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the reward model's learning rate is %g; it must be above 0, at most 10",
                          u->lr);
    if (u->history_max < 0)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the replay history is limited to %lld pairs; 0 (all) or more",
                          (long long)u->history_max);
    return RLHF_OK;
}

// Take one optimizer step on the pairs pick[0..n).
static rlhf_status step(struct rlhf__reward_round *r, const struct rlhf__replay *replay,
                        const uint32_t *pick, uint32_t n, uint32_t k, double factor,
                        struct rlhf__error *err) {
    struct rlhf__rows e = {0};
    int32_t stop; // unused: the round decides when it ends
    rlhf_status st = rlhf__replay_rows(replay, pick, n, &e, err);
    if (st == RLHF_OK) st = rlhf__minibatch(&r->learner, &e, 0, k, factor, &stop, err);
    rlhf__rows_finish(&e);
    return st;
}

static rlhf_status train(struct rlhf__reward_round *r, const struct rlhf__replay *replay,
                         const rlhf_reward_update *u, const uint32_t *pick, uint32_t n,
                         rlhf_reward_update_report *out, struct rlhf__error *err) {
    uint32_t batch = (uint32_t)u->batch_pairs, steps = n / batch + (n % batch != 0);
    rlhf_status st = RLHF_OK;
    r->optim->config.lr = r->optim->head_lr = u->lr;
    r->loss = (struct rlhf__pair_loss){0};
    for (uint32_t k = 0; st == RLHF_OK && k < steps; k++) {
        uint32_t from = k * batch, size = n - from < batch ? n - from : batch;
        st = step(r, replay, pick + from, size, k, 1 - (double)k / (double)steps, err);
    }
    if (st != RLHF_OK) return st;
    for (uint32_t k = 0; k < n; k++)
        out->replayed += pick[k] < replay->n_history;
    out->fresh = (int64_t)n - out->replayed;
    out->steps = steps;
    out->loss = r->loss.loss / (double)steps;
    out->accuracy = r->loss.right / r->loss.pairs;
    out->margin = r->loss.margin / r->loss.pairs;
    return RLHF_OK;
}

// Compute the share of the fresh pairs whose chosen response has the higher reward.
static rlhf_status fresh_accuracy(const struct rlhf__reward_round *r,
                                  const struct rlhf__replay *replay, double *out,
                                  struct rlhf__error *err) {
    uint32_t n = (uint32_t)(replay->n - replay->n_history), right = 0;
    struct rlhf__rows e = {0};
    uint32_t *pick = calloc((size_t)n + 1, sizeof *pick);
    float *seq = calloc(2 * (size_t)n + 1, sizeof *seq);
    rlhf_status st = RLHF_OK;
    if (!pick || !seq) st = RLHF__NOMEM(err, "out of memory for %u pairs", n);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++)
        pick[i] = (uint32_t)replay->n_history + i;
    if (st == RLHF_OK) st = rlhf__replay_rows(replay, pick, n, &e, err);
    if (st == RLHF_OK)
        st = rlhf__reward_model_score(r->rm, e.n, e.ids, e.offset, e.prompt_len, 0, seq, NULL, err);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++)
        right += seq[2 * i] > seq[2 * i + 1];
    *out = (double)right / (double)n;
    rlhf__rows_finish(&e);
    free(pick);
    free(seq);
    return st;
}

// ---- gain and bias ----

static rlhf_status calibrate(struct rlhf__reward_round *r, const struct rlhf__rows *e,
                             struct rlhf__error *err) {
    const struct rlhf__scored_by by = {&r->config->response, r->cast->rules, r->feed->prompts};
    struct rlhf__scored x = {0};
    struct rlhf__reward_rows c = {0};
    int fitted = 0;
    rlhf_status st = rlhf__scored_init(&x, &by, e, err);
    if (st == RLHF_OK) st = rlhf__reward_rows_init(&c, &x, e, 0, err);
    if (st == RLHF_OK)
        st =
            rlhf__reward_model_calibrate(r->rm, e->n, c.ids, c.offset, e->prompt_len, &fitted, err);
    if (st == RLHF_OK && !fitted)
        rlhf__logf(
            r->log, RLHF_LOG_WARN,
            "gain and bias of the reward model stay: its rewards of %u samples are all equal",
            e->n);
    rlhf__reward_rows_finish(&c);
    rlhf__scored_finish(&x);
    return st;
}

static rlhf_status recalibrate(struct rlhf__reward_round *r, uint64_t syncs,
                               struct rlhf__error *err) {
    uint32_t n = (uint32_t)r->config->score_head.calibrate;
    struct rlhf__rows e = {0};
    if (n == 0) return RLHF_OK;
    rlhf_status st =
        rlhf__prompt_feed_sample(r->feed, r->cast->reference, n, "refit", syncs << 24, &e, err);
    if (st == RLHF_OK) st = calibrate(r, &e, err);
    rlhf__rows_finish(&e);
    return st;
}

rlhf_status rlhf__reward_round_run(struct rlhf__reward_round *r, struct rlhf__replay *replay,
                                   uint64_t syncs, const rlhf_reward_update *u,
                                   rlhf_reward_update_report *report, struct rlhf__error *err) {
    uint32_t *pick = NULL, n = 0;
    rlhf_status st = check(u, err);
    if (st == RLHF_OK)
        st = rlhf__replay_round(replay, (uint64_t)r->config->run.seed, u->epochs, u->replay_share,
                                &pick, &n, err);
    if (st == RLHF_OK && n > 0) st = fresh_accuracy(r, replay, &report->fresh_before, err);
    if (st == RLHF_OK && n > 0) st = train(r, replay, u, pick, n, report, err);
    if (st == RLHF_OK && n > 0) st = fresh_accuracy(r, replay, &report->fresh_after, err);
    free(pick);
    if (st != RLHF_OK) return st;
    rlhf__replay_retire(replay, (size_t)u->history_max);
    report->history = (int64_t)replay->n_history;
    return n > 0 && u->refit ? recalibrate(r, syncs, err) : RLHF_OK;
}
