// choosing_algo.c: an algorithm that chooses prompts by a fixed rule, in groups. It reports the
// scores and the use counts that it got from the host, and raises the log-probs in proportion to
// the rewards.
#include "support/plugin.h"

#include <rlhf/algo.h>

#include <math.h>
#include <string.h>

struct config {
    int64_t group_size, rounds, bad, silent, fails, stale;
};

struct algo {
    const rlhf_host *host;
    const struct config *config;
    double calls, seen, unseen, score,
        other;                    // calls and other: in this phase; others: in the last call
    int64_t chosen[64], n_chosen; // in this phase's calls
};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, group_size, 2, 1, 64, "responses per prompt"),
    RLHF_OPT_I64(struct config, rounds, 0, 0, 100, "rounds of further prompts"),
    RLHF_OPT_I64(struct config, bad, -1, -1, 1 << 20, "an index to choose in phase 2; -1: none"),
    RLHF_OPT_I64(struct config, silent, 0, 0, 1, "1: choose nothing in phase 2"),
    RLHF_OPT_I64(struct config, fails, 0, 0, 1, "1: fail in phase 2, after the rewards"),
    RLHF_OPT_I64(struct config, stale, 0, 0, 1, "1: rows may be old"),
};

TEST_INSTANCE(struct algo)

static rlhf_status plan(void *self, const rlhf_run_info *run, rlhf_plan *out) {
    const struct config *c = ((const struct algo *)self)->config;
    (void)run;
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP;
    out->epochs = out->minibatches = 1;
    out->group_size = (uint32_t)c->group_size;
    out->resample_rounds = (uint32_t)c->rounds;
    if (c->stale) out->flags |= RLHF_PLAN_STALE;
    return RLHF_OK;
}

// Chooses prompts p, p + 1, ... in phase p. If the phase needs another round of prompts, that round
// continues after the last prompt of the previous one.
static rlhf_status choose_prompts(void *self, const rlhf_prompts *in, rlhf_choice *out) {
    struct algo *a = self;
    const struct config *c = a->config;
    a->calls++;
    a->seen = a->score = a->unseen = 0;
    for (int64_t i = 0; i < in->n; i++) {
        a->seen += (double)in->seen[i];
        a->unseen += isnan(in->last_score[i]);
        if (!isnan(in->last_score[i])) a->score += (double)in->last_score[i];
        a->other += in->meta[i].len == 0;
    }
    for (uint32_t k = 0; k < in->n_choose; k++) {
        if (c->silent && in->phase == 1) continue;
        out->prompt[k] = (in->phase + a->n_chosen) % in->n;
        a->chosen[a->n_chosen++ % 64] = out->prompt[k];
    }
    if (c->bad >= 0 && in->phase == 1) out->prompt[in->n_choose - 1] = c->bad;
    return RLHF_OK;
}

// Checks that the rows are responses to the chosen prompts, group by group. Further rounds may have
// replaced some groups.
static rlhf_status advantages(void *self, const rlhf_rollout *in, rlhf_advantages *out) {
    struct algo *a = self;
    const uint32_t g = (uint32_t)a->config->group_size;
    if (a->config->fails && in->phase == 1)
        return a->host->fail(a->host, RLHF_E_INTERNAL, "on purpose");
    for (uint32_t i = 0; i < in->n; i++) {
        if (a->config->rounds == 0) a->other += in->source[i] != a->chosen[i / g];
        for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++)
            out->advantage[t] = in->score[i];
    }
    return RLHF_OK;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    (void)self;
    for (uint32_t i = 0; i < in->n; i++)
        for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++) {
            const double w = (double)in->advantage[t] / (double)in->batch_tokens;
            out->loss -= w * (double)in->heads->logp[t];
            out->d_heads->logp[t] = (float)-w;
        }
    return RLHF_OK;
}

static rlhf_status phase_end(void *self, const rlhf_phase_info *info) {
    struct algo *a = self;
    (void)info;
    rlhf_metric_last(a->host, "test/calls", a->calls);
    rlhf_metric_last(a->host, "test/seen", a->seen);
    rlhf_metric_last(a->host, "test/unseen", a->unseen);
    rlhf_metric_last(a->host, "test/score", a->score);
    rlhf_metric_last(a->host, "test/other", a->other);
    rlhf_metric_last(a->host, "test/chosen", (double)a->n_chosen);
    a->calls = a->other = 0;
    a->n_chosen = 0;
    return RLHF_OK;
}

static const rlhf_algo_ops ops = {.size = sizeof ops,
                                  .plan = plan,
                                  .advantages = advantages,
                                  .loss = loss,
                                  .phase_end = phase_end,
                                  .choose_prompts = choose_prompts};
TEST_PLUGIN(RLHF_KIND_ALGO, "choosing_algo", .summary = "chooses prompts", TEST_OPTIONS(opts),
            TEST_INSTANCES)
