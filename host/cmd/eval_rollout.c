// eval_rollout.c: `rlhf-host eval --reward`: fresh responses, judged. See eval_impl.h.
//
// Sampling, prompts and response rules come from a run's config (or ppo.so's defaults), so that a
// checkpoint is judged as it was trained; rewards are weighted but neither normalised nor clipped.
#include "cmd/eval_impl.h"

#include "base/json.h"
#include "train/completions.h"
#include "train/decode.h"
#include "train/learner.h"
#include "train/mixing.h"
#include "train/rollout.h"
#include "train/scoring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SLOTS         64
#define MICROBATCH_TOKENS 4096

struct judge {
    const struct rlhf__env *env;
    const struct rlhf__eval_options *o;
    struct rlhf__config config;
    struct rlhf__plugins *plugins;
    const struct rlhf__plugin *algo, **reward;
    struct rlhf__session session;
    struct rlhf__model *model, *reference;
    struct rlhf__instance **rewards;
    struct rlhf__prompts *prompts;
    struct rlhf__episodes e;
    float *raw; // [n_reward * n]
    rlhf_dist dist, logp_dist;
};

static rlhf_status load_config(struct judge *j, struct rlhf__error *err) {
    const struct rlhf__eval_options *o = j->o;
    struct rlhf__config_request req = {.dirs = j->env->dirs,
                                       .config_file = o->config,
                                       .algo = o->config ? NULL : "ppo.so",
                                       .reward = o->reward.item,
                                       .n_reward = o->reward.n,
                                       .set = o->set.item,
                                       .n_set = o->set.n};
    const struct rlhf__plugin *judge; // of a run's config: looked on in training only
    rlhf_status st = rlhf__config_load(&req, &j->config, err);
    if (st == RLHF_OK) st = rlhf__plugins_create(j->env->dirs, &j->plugins, err);
    if (st == RLHF_OK)
        st = rlhf__config_resolve(&j->config, j->plugins, &j->algo, &j->reward, &judge, err);
    j->config.rewards.normalize = RLHF__NORMALIZE_NONE;
    j->config.rewards.clip = 0;
    const struct rlhf__sampling_config *s = &j->config.sampling;
    j->dist = (rlhf_dist){1 / s->temperature, s->top_p, (int32_t)s->top_k, 0};
    j->logp_dist = (rlhf_dist){1 / s->temperature, 1, 0, 0}; // KL is of whole distributions
    return st;
}

static rlhf_status open_models(struct judge *j, struct rlhf__error *err) {
    const struct rlhf__eval_options *o = j->o;
    struct rlhf__run_config run = {.seed = o->seed, .threads = o->threads};
    struct rlhf__compute_config compute = {.backend = o->backend};
    char built_in[2048];
    rlhf__default_model(j->env->dirs, "policy", built_in);
    rlhf_status st = rlhf__dtype_choice(o->dtype, "--dtype", &compute.dtype, err);
    if (st == RLHF_OK)
        st = rlhf__session_init(&j->session, j->env->dirs, j->env->log, j->env->cancelled,
                                j->plugins, &compute, &run, err);
    struct rlhf__model_spec spec = {.dir = o->model ? o->model : built_in, .role = "model"};
    if (st == RLHF_OK) st = rlhf__model_open(&j->session.models, &spec, &j->model, err);
    if (st != RLHF_OK || !o->reference) return st;
    rlhf__text_services_policy(j->session.text, j->model->tok);
    struct rlhf__model_spec ref = {.dir = o->reference, .role = "reference"};
    st = rlhf__model_open(&j->session.models, &ref, &j->reference, err);
    if (st == RLHF_OK && !rlhf__tokenizer_equal(j->reference->tok, j->model->tok))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the vocabulary of the reference '%s' is not the model's ('%s')",
                          j->reference->dir, j->model->dir);
    return st;
}

static rlhf_status open_rewards(struct judge *j, struct rlhf__error *err) {
    rlhf__text_services_policy(j->session.text, j->model->tok);
    j->rewards = calloc(j->config.n_reward, sizeof(void *));
    if (!j->rewards) return RLHF__NOMEM(err, "out of memory for rewards");
    for (size_t i = 0; i < j->config.n_reward; i++) {
        struct rlhf__origin from = {"--reward", "", NULL, 0, 0, 0};
        rlhf_status st =
            rlhf__instance_create(j->reward[i], &j->session.services, j->config.reward[i].options,
                                  &from, &j->rewards[i], err);
        if (st != RLHF_OK) return st;
    }
    return RLHF_OK;
}

// ---- measuring ----

static rlhf_status respond(struct judge *j, struct rlhf__error *err) {
    struct rlhf__rollout_request q = {.model = j->model,
                                      .prompts = j->prompts,
                                      .n = (uint32_t)j->o->n,
                                      .slots = MAX_SLOTS,
                                      .max_new = (int32_t)j->config.sampling.max_new_tokens,
                                      .stop_at_eos = j->config.sampling.stop_at_eos,
                                      .cut_at_stop =
                                          j->config.response.truncate == RLHF__TRUNCATE_STOP,
                                      .dist = &j->dist,
                                      .logp_dist = &j->logp_dist,
                                      .seed = (uint64_t)j->o->seed,
                                      .stream = "eval",
                                      .cancelled = j->env->cancelled};
    return rlhf__rollout_in_turn(&q, &j->e, err);
}

static rlhf_status judge_responses(struct judge *j, struct rlhf__error *err) {
    uint32_t n = j->e.n;
    struct rlhf__scorer s = {.config = &j->config, .rewards = j->rewards, .tok = j->model->tok};
    struct rlhf__scored x = {0};
    struct rlhf__prompt *prompt = calloc(n, sizeof *prompt);
    uint8_t *keep = calloc(n, 1);
    j->raw = calloc(j->config.n_reward * n, sizeof *j->raw);
    rlhf_status st = RLHF_OK;
    if (!prompt || !keep || !j->raw) st = RLHF__NOMEM(err, "out of memory scoring");
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++)
        prompt[i] = rlhf__prompts_get(j->prompts, j->e.source[i]);
    if (st == RLHF_OK) st = rlhf__scored_init(&x, &s, &j->e, prompt, err);
    if (st == RLHF_OK) st = rlhf__score(&s, &x, &j->e, keep, j->raw, err);
    rlhf__scored_finish(&x);
    free(prompt);
    free(keep);
    if (st != RLHF_OK || !j->reference) return st;
    struct rlhf__pass_out out = {.logp = j->e.token[RLHF__LOGP_REF]};
    return rlhf__pass(j->reference, &j->e, &j->logp_dist, MICROBATCH_TOKENS, &out, err);
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
    for (size_t k = 0; k < j->config.n_reward; k++) {
        double mean, std;
        rlhf__mean_std(j->raw + k * j->e.n, NULL, j->e.n, &mean, &std);
        json_object_set_new(all, j->config.reward[k].name,
                            json_pack("{s:f, s:f}", "mean", mean, "std", std));
    }
    return all;
}

static rlhf_status print_result(const struct judge *j, struct rlhf__error *err) {
    const struct rlhf__episodes *e = &j->e;
    double mean, std, distinct;
    double length = (double)rlhf__episodes_response_tokens(e, 0, e->n) / (double)e->n;
    rlhf__mean_std(e->score, NULL, e->n, &mean, &std);
    rlhf_status st = rlhf__episodes_distinct3(e, &distinct, err);
    if (st != RLHF_OK) return st;
    if (j->o->json) {
        json_t *v =
            json_pack("{s:s, s:I, s:f, s:f, s:o, s:f, s:f}", "model", j->model->dir, "samples",
                      (json_int_t)e->n, "reward", mean, "reward_std", std, "rewards",
                      rewards_json(j), "mean_length", length, "distinct_3", distinct);
        if (j->reference) json_object_set_new(v, "kl", json_real(sequence_kl(e)));
        struct rlhf__buf line = RLHF__BUF_INIT;
        rlhf__json_write(&line, v, 0);
        puts(rlhf__buf_text(&line));
        rlhf__buf_free(&line);
        json_decref(v);
    } else {
        printf("reward      %.4f (std %.4f, %u responses)\n", mean, std, e->n);
        if (j->reference) printf("kl          %.4f nats a sequence\n", sequence_kl(e));
        printf("distinct-3  %.4f\nlength      %.1f tokens\n", distinct, length);
    }
    if (fflush(stdout) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_IO, "cannot write to standard output");
}

static void judge_finish(struct judge *j) {
    for (size_t i = 0; j->rewards && i < j->config.n_reward; i++)
        rlhf__instance_destroy(j->rewards[i]);
    free(j->rewards);
    free(j->reward);
    free(j->raw);
    rlhf__episodes_finish(&j->e);
    rlhf__prompts_close(j->prompts);
    rlhf__model_close(j->reference);
    rlhf__model_close(j->model);
    rlhf__session_finish(&j->session);
    rlhf__plugins_destroy(j->plugins);
    rlhf__config_free(&j->config);
}

rlhf_status rlhf__eval_rollout(const struct rlhf__env *env, const struct rlhf__eval_options *o,
                               struct rlhf__error *err) {
    struct judge j = {.env = env, .o = o};
    rlhf_status st = load_config(&j, err);
    if (st == RLHF_OK) st = open_models(&j, err);
    if (st == RLHF_OK) st = open_rewards(&j, err);
    struct rlhf__prompts_config prompts = j.config.prompts;
    if (o->data) prompts.path = o->data;
    if (o->data) prompts.text = "";
    if (o->limit) prompts.limit = o->limit;
    if (st == RLHF_OK)
        st = rlhf__rollout_prompts(&prompts, j.model, (int32_t)j.config.sampling.max_new_tokens,
                                   env->dirs, &j.prompts, err);
    if (st == RLHF_OK) st = respond(&j, err);
    if (st == RLHF_OK) st = judge_responses(&j, err);
    if (st == RLHF_OK) st = print_result(&j, err);
    judge_finish(&j);
    return st;
}
