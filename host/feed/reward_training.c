// reward_training.c: see reward_training.h.
#include "feed/reward_training.h"

#include "base/file.h"
#include "base/json.h"
#include "data/order.h"
#include "data/preferences.h"
#include "data/prompts.h"
#include "sample/rollout.h"
#include "weights/safetensors.h"
#include "weights/safetensors_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- samples of the reference ----

// Take each row's prompt if it has at most `room` tokens. A longer prompt leaves no room for a
// response.
static rlhf_status take_prompts(const struct rlhf__preferences *rows, int32_t room,
                                const struct rlhf__model *m, struct rlhf__prompts **out,
                                struct rlhf__error *err) {
    int64_t all = rlhf__preferences_count(rows), n = 0;
    const int32_t **ids = calloc((size_t)all, sizeof *ids);
    int32_t *len = calloc((size_t)all, sizeof *len);
    rlhf_status st = RLHF_OK;
    if (!ids || !len) st = RLHF__NOMEM(err, "out of memory for prompts");
    for (int64_t i = 0; st == RLHF_OK && i < all; i++) {
        struct rlhf__preference p = rlhf__preferences_get(rows, i);
        if (p.n_prompt > room) continue;
        ids[n] = p.prompt;
        len[n++] = p.n_prompt;
    }
    if (st == RLHF_OK && n == 0)
        st = rlhf__fail(err, RLHF_E_INVALID,
                        "score.calibrate draws responses of sampling.max_new_tokens tokens, but no "
                        "prompt of the rows leaves room for them in the context of '%s', %d tokens",
                        m->dir, m->info.n_ctx);
    if (st == RLHF_OK) st = rlhf__prompts_from_ids(ids, len, n, m->tok, out, err);
    free(ids);
    free(len);
    return st;
}

// Returns how many responses to draw: score.calibrate, but at most two to each prompt, or FEWEST.
static uint32_t samples_of(const struct rlhf__config *c, const struct rlhf__prompts *prompts) {
    enum { FEWEST = 64 };
    const int64_t twice = 2 * rlhf__prompts_count(prompts), most = twice > FEWEST ? twice : FEWEST;
    return (uint32_t)(c->score_head.calibrate < most ? c->score_head.calibrate : most);
}

static rlhf_status draw(const struct rlhf__feed_env *env, const volatile sig_atomic_t *cancelled,
                        const struct rlhf__model *m, const struct rlhf__prompts *prompts,
                        struct rlhf__rows *e, struct rlhf__error *err) {
    const struct rlhf__config *c = env->config;
    struct rlhf__rollout_request q = rlhf__rollout_request(c, m, prompts, NULL);
    q.n = samples_of(c, prompts);
    rlhf__logf(
        env->log, RLHF_LOG_INFO,
        "reward model: its scale is fitted to %u responses of at most %lld tokens, which the "
        "reference samples before phase 1 (score.calibrate, at most two responses per "
        "prompt)",
        q.n, (long long)c->sampling.max_new_tokens);
    q.stream = "calibrate";
    q.cancelled = cancelled;
    q.watch = rlhf__progress_watch(env->progress);
    q.doing = "samples of the reference";
    struct rlhf__order order = {0};
    int64_t *row = calloc(q.n, sizeof *row);
    rlhf_status st = rlhf__response_rules_open(&c->sampling, &c->response, m->tok, &q.rules, err);
    if (st == RLHF_OK && !row) st = RLHF__NOMEM(err, "out of memory for %u samples", q.n);
    if (st == RLHF_OK)
        st = rlhf__order_init(&order, rlhf__prompts_count(prompts), q.seed, "calibrate:prompts", 1,
                              err);
    for (uint32_t i = 0; st == RLHF_OK && i < q.n; i++)
        row[i] = rlhf__order_next(&order);
    if (st == RLHF_OK) st = rlhf__rollout(&q, row, e, NULL, err);
    rlhf__order_finish(&order);
    rlhf__response_rules_close(q.rules);
    free(row);
    return st;
}

// Open the model to sample from. If reference.path is set, this is the model there. Otherwise it is
// the policy with its initial weights. Sets `*own` to NULL if the policy itself can be used. If a
// score head has replaced the policy's LM head, opens the policy's directory again with the LM
// head.
static rlhf_status open_reference(const struct rlhf__feed_env *env,
                                  const struct rlhf__model_env *models, int was_classifier,
                                  struct rlhf__model **own, struct rlhf__error *err) {
    const char *path = env->config->reference.path;
    const struct rlhf__model *policy = env->cast->policy;
    *own = NULL;
    struct rlhf__model_spec spec = {
        .dir = path, .role = "reference", .frozen = 1, .tokens_only = 1};
    if (!path[0]) {
        const int headless = policy->info.causal && !(policy->info.caps & RLHF_CAP_GENERATE);
        spec.dir = policy->dir;
        if (env->config->policy.init == RLHF__INIT_RANDOM) spec.start = RLHF__START_RANDOM;
        if (!was_classifier) return headless ? rlhf__model_open(models, &spec, own, err) : RLHF_OK;
        return rlhf__fail(err, RLHF_E_INVALID,
                          "score.calibrate draws responses of the reference, but '%s' is a "
                          "classifier or reward model and writes none: name the reference with "
                          "reference.path, or set score.calibrate to 0",
                          policy->dir);
    }
    rlhf_status st = rlhf__model_open(models, &spec, own, err);
    if (st != RLHF_OK || rlhf__tokenizer_equal((*own)->tok, policy->tok)) return st;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the vocabulary of the reference '%s' is not the reward model's ('%s')",
                      (*own)->dir, policy->dir);
}

// Sample from `own`, or from the policy if `own` is NULL.
static rlhf_status sample(const struct rlhf__feed_env *env, const volatile sig_atomic_t *cancelled,
                          const struct rlhf__model *own, const struct rlhf__preferences *rows,
                          struct rlhf__rows *e, struct rlhf__error *err) {
    const struct rlhf__model *policy = env->cast->policy, *m = own ? own : policy;
    struct rlhf__prompts *prompts = NULL;
    // Rows must fit the context of the reference, which samples them, and of the reward model.
    int32_t least = m->info.n_ctx < policy->info.n_ctx ? m->info.n_ctx : policy->info.n_ctx;
    int64_t room = least - env->config->sampling.max_new_tokens;
    rlhf_status st = take_prompts(rows, room > 0 ? (int32_t)room : 0, m, &prompts, err);
    if (st == RLHF_OK) st = draw(env, cancelled, m, prompts, e, err);
    rlhf__prompts_close(prompts);
    return st;
}

// ---- the head ----

static rlhf_status calibrate(struct rlhf__reward_training *r, struct rlhf__reward_head *head,
                             struct rlhf__error *err) {
    const struct rlhf__rows *e = &r->samples;
    struct rlhf__reward_model rm = {r->model, *head};
    int fitted = 0;
    if (e->n == 0) return RLHF_OK;
    rlhf_status st =
        rlhf__reward_model_calibrate(&rm, e->n, e->ids, e->offset, e->prompt_len, &fitted, err);
    if (fitted) *head = rm.head;
    return st;
}

static rlhf_status choose_head(const struct rlhf__feed_env *env, struct rlhf__reward_head *head,
                               int *fresh, struct rlhf__error *err) {
    int32_t pooling = env->config->score_head.pooling;
    const struct rlhf__model *policy = env->cast->policy;
    char file[4400];
    int found;
    rlhf__path_in(file, sizeof file, policy->dir, "config.json");
    RLHF_TRY(rlhf__reward_head_read(policy->config, file, head, &found, err));
    if (pooling == RLHF_POOL_FIRST)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "score.pooling is first; a reward model pools mean or last");
    *fresh = !found || (pooling && pooling != head->pooling);
    if (pooling) head->pooling = pooling;
    return RLHF_OK;
}

rlhf_status rlhf__reward_training_open(const struct rlhf__feed_env *env,
                                       const struct rlhf__model_env *models,
                                       const volatile sig_atomic_t *cancelled, int resumed,
                                       const struct rlhf__preferences *rows,
                                       struct rlhf__reward_training **out,
                                       struct rlhf__error *err) {
    struct rlhf__model *policy = env->cast->policy, *own = NULL;
    int fresh = 0, was_classifier = rlhf__model_is_classifier(policy->config);
    int samples = !resumed && env->config->score_head.calibrate > 0;
    *out = NULL;
    struct rlhf__reward_training *r = calloc(1, sizeof *r);
    if (!r) return RLHF__NOMEM(err, "out of memory for the reward model");
    r->model = policy;
    r->calibrated = -1;
    rlhf_status st = choose_head(env, &r->head, &fresh, err);
    if (st == RLHF_OK && samples) st = open_reference(env, models, was_classifier, &own, err);
    if (st == RLHF_OK && samples) st = sample(env, cancelled, own, rows, &r->samples, err);
    rlhf__model_close(own);
    if (st == RLHF_OK && fresh) st = calibrate(r, &r->head, err);
    r->written = r->head;
    if (st == RLHF_OK) st = rlhf__reward_model_config(policy, &r->written, err);
    if (st != RLHF_OK) {
        rlhf__reward_training_close(r);
        return st;
    }
    if (!resumed)
        rlhf__logf(env->log, RLHF_LOG_INFO, "reward model: %s, gain %.4g, bias %.4g",
                   r->head.pooling == RLHF_POOL_LAST ? "score of the last token"
                                                     : "mean score of a response's tokens",
                   r->head.gain, r->head.bias);
    *out = r;
    return RLHF_OK;
}

void rlhf__reward_training_close(struct rlhf__reward_training *r) {
    if (!r) return;
    rlhf__rows_finish(&r->samples);
    free(r);
}

const struct rlhf__reward_head *rlhf__reward_training_head(const struct rlhf__reward_training *r) {
    return r ? &r->head : NULL;
}

rlhf_status rlhf__reward_training_calibrate(struct rlhf__reward_training *r, int64_t phase,
                                            struct rlhf__error *err) {
    if (r->calibrated == phase) return RLHF_OK;
    rlhf_status st = calibrate(r, &r->written, err);
    if (st == RLHF_OK) st = rlhf__reward_model_config(r->model, &r->written, err);
    if (st == RLHF_OK) r->calibrated = phase;
    return st;
}

// ---- in a checkpoint ----

static rlhf_status write_head(const struct rlhf__reward_head *h, const struct rlhf__folder *dir,
                              struct rlhf__error *err) {
    json_t *v = json_object();
    rlhf_status st = v ? rlhf__reward_head_write(h, v, err) : RLHF__NOMEM(err, "out of memory");
    if (st == RLHF_OK) return rlhf__json_save_new(dir, "state/reward_head.json", v, 0, err);
    json_decref(v);
    return st;
}

static rlhf_status write_samples(const struct rlhf__rows *e, const struct rlhf__folder *dir,
                                 struct rlhf__error *err) {
    const struct rlhf__tensor_spec specs[] = {
        {"ids", RLHF__TENSOR_I32, 1, {e->total}},
        {"offset", RLHF__TENSOR_I32, 1, {(int64_t)e->n + 1}},
        {"prompt_len", RLHF__TENSOR_I32, 1, {e->n}},
    };
    struct rlhf__weights_writer *w = NULL;
    rlhf_status st =
        rlhf__weights_writer_open(dir, "state/samples.safetensors", specs, 3, NULL, 0, &w, err);
    if (st != RLHF_OK) return st;
    st = rlhf__weights_put_bytes(w, e->ids, e->total * sizeof *e->ids, err);
    if (st == RLHF_OK)
        st = rlhf__weights_put_bytes(w, e->offset, (e->n + (size_t)1) * sizeof *e->offset, err);
    if (st == RLHF_OK)
        st = rlhf__weights_put_bytes(w, e->prompt_len, e->n * sizeof *e->prompt_len, err);
    if (st == RLHF_OK) return rlhf__weights_commit(w, err);
    rlhf__weights_abort(w);
    return st;
}

rlhf_status rlhf__reward_training_save(const struct rlhf__reward_training *r,
                                       const struct rlhf__folder *checkpoint,
                                       struct rlhf__error *err) {
    rlhf_status st = write_head(&r->head, checkpoint, err);
    return st == RLHF_OK && r->samples.n > 0 ? write_samples(&r->samples, checkpoint, err) : st;
}

// Returns a 1-D tensor of i32, or NULL.
static const struct rlhf__tensor *find_i32(const struct rlhf__weights *file, const char *name) {
    const struct rlhf__tensor *t = rlhf__weights_find(file, name);
    return t && t->dtype == RLHF__TENSOR_I32 && t->ndim == 1 && t->count < INT32_MAX ? t : NULL;
}

static int is_ragged(const struct rlhf__rows *e, int32_t n_vocab) {
    if (e->offset[0] != 0 || e->offset[e->n] != (int32_t)e->total) return 0;
    for (uint32_t i = 0; i < e->n; i++) {
        int64_t len = (int64_t)e->offset[i + 1] - e->offset[i];
        if (len < 1 || e->prompt_len[i] < 1 || e->prompt_len[i] > len) return 0;
    }
    for (uint32_t k = 0; k < e->total; k++)
        if (e->ids[k] < 0 || e->ids[k] >= n_vocab) return 0;
    return 1;
}

static rlhf_status read_samples(struct rlhf__reward_training *r, const char *path,
                                struct rlhf__error *err) {
    struct rlhf__weights *file = NULL;
    struct rlhf__rows *e = &r->samples;
    rlhf_status st = rlhf__weights_open(path, &file, err);
    if (st != RLHF_OK) return st;
    const struct rlhf__tensor *ids = find_i32(file, "ids"), *offset = find_i32(file, "offset"),
                              *prompt = find_i32(file, "prompt_len");
    int fits = ids && offset && prompt && prompt->count > 0 && offset->count == prompt->count + 1;
    if (fits) st = rlhf__rows_init(e, (uint32_t)prompt->count, (uint32_t)ids->count, err);
    if (fits && st == RLHF_OK) {
        st = rlhf__tensor_read_bytes(ids, e->ids, err);
        if (st == RLHF_OK) st = rlhf__tensor_read_bytes(offset, e->offset, err);
        if (st == RLHF_OK) st = rlhf__tensor_read_bytes(prompt, e->prompt_len, err);
        fits = st == RLHF_OK && is_ragged(e, r->model->info.n_vocab);
    }
    rlhf__weights_close(file);
    if (st != RLHF_OK || fits) return st;
    return rlhf__fail(err, RLHF_E_INVALID, "%s does not hold the samples of a run", path);
}

rlhf_status rlhf__reward_training_load(struct rlhf__reward_training *r, const char *dir,
                                       struct rlhf__error *err) {
    char path[4400], state[4300];
    json_t *v = NULL;
    int found = 0;
    rlhf__path_in(state, sizeof state, dir, "state");
    rlhf__path_in(path, sizeof path, state, "reward_head.json");
    rlhf_status st = rlhf__json_load(path, &v, err);
    if (st == RLHF_OK) st = rlhf__reward_head_read(v, path, &r->head, &found, err);
    json_decref(v);
    if (st == RLHF_OK && !found)
        st = rlhf__fail(err, RLHF_E_INVALID, "%s has no rlhf_reward", path);
    r->written = r->head;
    rlhf__path_in(path, sizeof path, state, "samples.safetensors");
    return st == RLHF_OK && rlhf__is_file(path) ? read_samples(r, path, err) : st;
}
