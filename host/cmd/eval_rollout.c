// eval_rollout.c: `rlhf-host eval --reward`: fresh responses, judged. See eval_impl.h.
//
// A checkpoint is judged as it was trained; how is judged.h's.
#include "cmd/eval_impl.h"
#include "learn/pass.h"

#include "cmd/judged.h"
#include "learn/learner.h"
#include "sample/diversity.h"
#include "sample/mixing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SLOTS         64
#define MICROBATCH_TOKENS 4096

struct judge {
    const struct rlhf__eval_options *o;
    struct rlhf__judged with;
    struct rlhf__episodes e;
    float *raw; // [n_reward * n]
};

// ---- measuring ----

static rlhf_status respond(struct judge *j, struct rlhf__error *err) {
    struct rlhf__rollout_request q =
        rlhf__judged_request(&j->with, (uint32_t)j->o->n, MAX_SLOTS, j->o->seed, "eval");
    return rlhf__rollout_in_turn(&q, &j->e, err);
}

static rlhf_status judge_responses(struct judge *j, struct rlhf__error *err) {
    uint32_t n = j->e.n;
    struct rlhf__scored x = {0};
    uint8_t *keep = calloc(n, 1);
    j->raw = calloc(j->with.config.n_reward * n, sizeof *j->raw);
    rlhf_status st = RLHF_OK;
    if (!keep || !j->raw) st = RLHF__NOMEM(err, "out of memory scoring");
    if (st == RLHF_OK) st = rlhf__judged_score(&j->with, &j->e, &x, keep, j->raw, err);
    rlhf__scored_finish(&x);
    free(keep);
    if (st != RLHF_OK || !j->with.reference) return st;
    struct rlhf__pass_out out = {.logp = j->e.token[RLHF__LOGP_REF]};
    return rlhf__pass(j->with.reference, &j->e, &j->with.logp_dist, MICROBATCH_TOKENS, &out, err);
}

// Mean over sequences of sum (log p - log p_ref) over the response: an estimate of the sequence KL.
static double sequence_kl(const struct rlhf__episodes *e) {
    double sum = 0;
    for (uint32_t i = 0; i < e->n; i++)
        for (int32_t k = e->offset[i] + e->prompt_len[i]; k < e->offset[i + 1]; k++)
            sum += (double)e->token[RLHF__LOGP_OLD][k] - (double)e->token[RLHF__LOGP_REF][k];
    return sum / (double)e->n;
}

static json_t *rewards_json(const struct judge *j) {
    json_t *all = json_object();
    for (size_t k = 0; k < j->with.config.n_reward; k++) {
        double mean, std;
        rlhf__mean_std(j->raw + k * j->e.n, NULL, j->e.n, &mean, &std);
        json_object_set_new(all, j->with.config.reward[k].name,
                            json_pack("{s:f, s:f}", "mean", mean, "std", std));
    }
    return all;
}

static rlhf_status print_result(const struct judge *j, struct rlhf__error *err) {
    const struct rlhf__episodes *e = &j->e;
    double mean, std, distinct;
    double length = (double)rlhf__episodes_response_tokens(e, 0, e->n) / (double)e->n;
    rlhf__mean_std(e->reward, NULL, e->n, &mean, &std);
    rlhf_status st = rlhf__episodes_distinct3(e, &distinct, err);
    if (st != RLHF_OK) return st;
    if (j->o->json) {
        json_t *v =
            json_pack("{s:s, s:I, s:f, s:f, s:o, s:f, s:f}", "model", j->with.model->dir, "samples",
                      (json_int_t)e->n, "reward", mean, "reward_std", std, "rewards",
                      rewards_json(j), "mean_length", length, "distinct_3", distinct);
        if (v && j->with.reference) json_object_set_new(v, "kl", json_real(sequence_kl(e)));
        return rlhf__eval_print_new(v, err);
    }
    printf("reward      %.4f (std %.4f, %u responses)\n", mean, std, e->n);
    for (size_t k = 0; k < j->with.config.n_reward && j->with.config.n_reward > 1; k++) {
        rlhf__mean_std(j->raw + k * e->n, NULL, e->n, &mean, &std);
        printf("  %-9s %.4f (std %.4f)\n", j->with.config.reward[k].name, mean, std);
    }
    if (j->with.reference) printf("kl          %.4f nats a sequence\n", sequence_kl(e));
    printf("distinct-3  %.4f\nlength      %.1f tokens\n", distinct, length);
    return rlhf__eval_flush(err);
}

rlhf_status rlhf__eval_rollout(const struct rlhf__env *env, const struct rlhf__eval_options *o,
                               struct rlhf__error *err) {
    struct judge j = {.o = o};
    struct rlhf__judged_options with = {.model = o->model,
                                        .reference = o->reference,
                                        .config = o->config,
                                        .prompts = o->data,
                                        .backend = o->backend,
                                        .dtype = o->dtype,
                                        .reward_flag = "--reward",
                                        .command = "eval",
                                        .reward = &o->reward,
                                        .set = &o->set,
                                        .limit = o->limit,
                                        .max_mib = o->max_mib,
                                        .seed = o->seed,
                                        .threads = o->threads};
    rlhf_status st = rlhf__judged_open(&j.with, env, &with, err);
    if (st == RLHF_OK) st = respond(&j, err);
    if (st == RLHF_OK) st = judge_responses(&j, err);
    if (st == RLHF_OK) st = print_result(&j, err);
    free(j.raw);
    rlhf__episodes_finish(&j.e);
    rlhf__judged_finish(&j.with);
    return st;
}
