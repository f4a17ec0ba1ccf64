// eval_rollout.c: `rlhf-host eval --reward`: samples new responses and scores them. See
// eval_impl.h.
//
// A checkpoint is measured with the settings that it was trained with; see eval_setup.h.
#include "cmd/eval_impl.h"
#include "learn/pass.h"

#include "batch/rows.h"
#include "cmd/eval_setup.h"
#include "sample/decode.h"
#include "sample/mixing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct measured {
    const struct rlhf__eval_options *o;
    struct rlhf__eval_setup with;
    struct rlhf__rows e;
    float *raw;     // [n_reward * n]
    double correct; // share of right responses; NaN if no reward verifies them
};

// ---- measuring ----

static rlhf_status respond(struct measured *m, struct rlhf__error *err) {
    const uint32_t slots = rlhf__compute_slots(m->with.model->compute, 0);
    struct rlhf__rollout_request q =
        rlhf__eval_setup_request(&m->with, (uint32_t)m->o->n, slots, m->o->seed, "eval");
    return rlhf__rollout_in_turn(&q, &m->e, err);
}

static rlhf_status score_responses(struct measured *m, struct rlhf__error *err) {
    uint32_t n = m->e.n;
    struct rlhf__scored x = {0};
    uint8_t *keep = calloc(n, 1);
    m->raw = calloc(m->with.config.n_reward * n, sizeof *m->raw);
    rlhf_status st = RLHF_OK;
    if (!keep || !m->raw) st = RLHF__NOMEM(err, "out of memory scoring");
    if (st == RLHF_OK) st = rlhf__eval_setup_score(&m->with, &m->e, &x, keep, m->raw, err);
    m->correct = st == RLHF_OK ? rlhf__scored_correct(&x, keep) : NAN;
    rlhf__scored_finish(&x);
    free(keep);
    if (st != RLHF_OK || !m->with.reference) return st;
    struct rlhf__pass_out out = {.logp = m->e.token[RLHF__LOGP_REF]};
    return rlhf__pass(m->with.reference, &m->e, &m->with.logp_dist, RLHF__MICROBATCH_TOKENS, &out,
                      err);
}

// Mean over sequences of sum (log p - log p_ref) over the response: an estimate of the sequence KL.
static double sequence_kl(const struct rlhf__rows *e) {
    double sum = 0;
    for (uint32_t i = 0; i < e->n; i++)
        for (int32_t k = e->offset[i] + e->prompt_len[i]; k < e->offset[i + 1]; k++)
            sum += (double)e->token[RLHF__LOGP_OLD][k] - (double)e->token[RLHF__LOGP_REF][k];
    return sum / (double)e->n;
}

static json_t *rewards_json(const struct measured *m) {
    json_t *all = json_object();
    for (size_t k = 0; k < m->with.config.n_reward; k++) {
        double mean, std;
        rlhf__mean_std(m->raw + k * m->e.n, NULL, m->e.n, &mean, &std);
        json_object_set_new(all, m->with.config.reward[k].name,
                            json_pack("{s:f, s:f}", "mean", mean, "std", std));
    }
    return all;
}

static rlhf_status print_result(const struct measured *m, struct rlhf__error *err) {
    const struct rlhf__rows *e = &m->e;
    double mean, std, distinct;
    double length = (double)rlhf__rows_response_tokens(e, 0, e->n) / (double)e->n;
    rlhf__mean_std(e->reward, NULL, e->n, &mean, &std);
    rlhf_status st = rlhf__rows_distinct3(e, &distinct, err);
    if (st != RLHF_OK) return st;
    if (m->o->json) {
        json_t *v =
            json_pack("{s:s, s:I, s:f, s:f, s:o, s:f, s:f}", "model", m->with.model->dir, "samples",
                      (json_int_t)e->n, "reward", mean, "reward_std", std, "rewards",
                      rewards_json(m), "mean_length", length, "distinct_3", distinct);
        if (v && isfinite(m->correct)) json_object_set_new(v, "correct", json_real(m->correct));
        if (v && m->with.reference) json_object_set_new(v, "kl", json_real(sequence_kl(e)));
        return rlhf__print_json_new(v, err);
    }
    printf("reward      %.4f (std %.4f, %u responses)\n", mean, std, e->n);
    for (size_t k = 0; k < m->with.config.n_reward && m->with.config.n_reward > 1; k++) {
        rlhf__mean_std(m->raw + k * e->n, NULL, e->n, &mean, &std);
        printf("  %-9s %.4f (std %.4f)\n", m->with.config.reward[k].name, mean, std);
    }
    if (isfinite(m->correct)) printf("correct     %.4f\n", m->correct);
    if (m->with.reference) printf("kl          %.4f nats a sequence\n", sequence_kl(e));
    printf("distinct-3  %.4f\nlength      %.1f tokens\n", distinct, length);
    return rlhf__print_flush(err);
}

rlhf_status rlhf__eval_rollout(const struct rlhf__env *env, const struct rlhf__eval_options *o,
                               struct rlhf__error *err) {
    struct measured m = {.o = o};
    struct rlhf__eval_setup_options with = {.model = o->model,
                                            .reference = o->reference,
                                            .config = o->config,
                                            .prompts = o->data,
                                            .at = &o->at,
                                            .reward_flag = "--reward",
                                            .command = "eval",
                                            .reward = &o->reward,
                                            .set = &o->set,
                                            .limit = o->limit,
                                            .max_mib = o->max_mib,
                                            .seed = o->seed};
    rlhf_status st = rlhf__eval_setup_open(&m.with, env, &with, err);
    rlhf__progress_note(m.with.at.progress, "sampling the responses");
    if (st == RLHF_OK) st = respond(&m, err);
    rlhf__progress_note(m.with.at.progress, "scoring the responses");
    if (st == RLHF_OK) st = score_responses(&m, err);
    if (m.with.at.progress) rlhf__progress_hide(m.with.at.progress);
    if (st == RLHF_OK) st = print_result(&m, err);
    free(m.raw);
    rlhf__rows_finish(&m.e);
    rlhf__eval_setup_finish(&m.with);
    return st;
}
