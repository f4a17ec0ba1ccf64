// rollout_source.c: see rollout_source.h.
#include "train/rollout_source.h"

#include "train/generate.h"
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_SLOTS 64
#define CHECK_ROWS    4
#define CHECK_TOKENS  8

struct rlhf__rollout_source {
    const struct rlhf__model *policy;
    struct rlhf__prompts *prompts;
    int64_t *eligible; // [n] prompts that are long enough
    int64_t n;
    struct rlhf__order order;
    rlhf_gen *session;
    uint32_t slots;
    int32_t max_new, stop_id, cut_at_stop;
    rlhf_dist dist, logp_dist;
};

// ---- prompts ----

static rlhf_status open_prompts(struct rlhf__rollout_source *s, const struct rlhf__trainer *t,
                                struct rlhf__error *err) {
    const struct rlhf__prompts_config *c = &t->config->prompts;
    int64_t room = (int64_t)s->policy->info.n_ctx - s->max_new;
    if (room < 1)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "sampling.max_new_tokens is %d, but the context of '%s' is %d tokens and a "
            "prompt needs one",
            s->max_new, s->policy->dir, s->policy->info.n_ctx);
    if (c->max_tokens > room)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "prompts.max_tokens %lld and sampling.max_new_tokens %d are together more "
            "than the context of '%s', %d tokens",
            (long long)c->max_tokens, s->max_new, s->policy->dir, s->policy->info.n_ctx);
    char built_in[2048];
    snprintf(built_in, sizeof built_in, "%s/models/prompts.jsonl", t->req->env->dirs->share);
    const char *path = c->path[0] ? c->path : built_in;
    struct rlhf__prompt_opts o = {.text = c->text,
                                  .paths = &path,
                                  .n_paths = c->text[0] ? 0 : 1,
                                  .field = strcmp(c->field, "prompt") == 0 ? NULL : c->field,
                                  .prepend_bos = c->prepend_bos,
                                  .start_after_period = c->start_after_period,
                                  .end_at_period = c->end_at_period,
                                  .length = (int32_t)c->length,
                                  .max_tokens = (int32_t)(c->max_tokens ? c->max_tokens : room),
                                  .limit = c->limit};
    return rlhf__prompts_open(&o, s->policy->tok, &s->prompts, err);
}

static rlhf_status choose_eligible(struct rlhf__rollout_source *s, const struct rlhf__trainer *t,
                                   struct rlhf__error *err) {
    const struct rlhf__prompts_config *c = &t->config->prompts;
    int64_t all = rlhf__prompts_count(s->prompts), least = c->min_tokens;
    if (c->length > 0 && !c->end_at_period && c->length + c->prepend_bos > least)
        least = c->length + c->prepend_bos;
    s->eligible = calloc((size_t)all, sizeof *s->eligible);
    if (!s->eligible) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for prompts");
    for (int64_t i = 0; i < all; i++)
        if (rlhf__prompts_get(s->prompts, i).n >= least) s->eligible[s->n++] = i;
    if (s->n == 0)
        return rlhf__fail(err, RLHF_E_INVALID, "none of the %lld prompts has %lld tokens",
                          (long long)all, (long long)least);
    return rlhf__order_init(&s->order, s->n, (uint64_t)t->config->run.seed, "prompts", c->shuffle,
                            err);
}

rlhf_status rlhf__rollout_source_create(struct rlhf__trainer *t, struct rlhf__rollout_source **out,
                                        struct rlhf__error *err) {
    const struct rlhf__config *c = t->config;
    *out = NULL;
    if (c->sampling.max_new_tokens > RLHF__MAX_NEW_TOKENS)
        return rlhf__fail(err, RLHF_E_INVALID, "sampling.max_new_tokens is %lld; at most %d",
                          (long long)c->sampling.max_new_tokens, RLHF__MAX_NEW_TOKENS);
    if (c->batch.size % t->plan.group_size != 0 || c->batch.size < t->plan.minibatches)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "batch.size is %lld; it must be a multiple of the group size %d and at "
                          "least the number of minibatches %d",
                          (long long)c->batch.size, t->plan.group_size, t->plan.minibatches);
    struct rlhf__rollout_source *s = calloc(1, sizeof *s);
    if (!s) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for the rollout");
    const struct rlhf__tokenizer_info *info = rlhf__tokenizer_info(t->policy->tok);
    s->policy = t->policy;
    s->max_new = (int32_t)c->sampling.max_new_tokens;
    s->stop_id = info->eos;
    s->cut_at_stop = c->response.truncate == RLHF__TRUNCATE_STOP;
    s->dist =
        (rlhf_dist){1 / c->sampling.temperature, c->sampling.top_p, (int32_t)c->sampling.top_k, 0};
    s->slots = c->sampling.slots > 0 ? (uint32_t)c->sampling.slots : DEFAULT_SLOTS;
    if (s->slots > c->batch.size) s->slots = (uint32_t)c->batch.size;
    rlhf_status st = open_prompts(s, t, err);
    if (st == RLHF_OK) st = choose_eligible(s, t, err);
    if (st == RLHF_OK)
        st = rlhf__model_gen_open(s->policy, s->slots,
                                  (uint32_t)(rlhf__prompts_longest(s->prompts) + s->max_new),
                                  &s->session, err);
    if (st != RLHF_OK) {
        rlhf__rollout_source_destroy(s);
        return st;
    }
    *out = s;
    return RLHF_OK;
}

void rlhf__rollout_source_destroy(struct rlhf__rollout_source *s) {
    if (!s) return;
    rlhf__model_gen_close(s->policy, s->session);
    rlhf__prompts_close(s->prompts);
    rlhf__order_finish(&s->order);
    free(s->eligible);
    free(s);
}

struct rlhf__order *rlhf__rollout_source_order(struct rlhf__rollout_source *s) {
    return &s->order;
}

struct rlhf__prompt rlhf__rollout_source_prompt(const struct rlhf__rollout_source *s,
                                                const struct rlhf__episodes *e, uint32_t i) {
    return rlhf__prompts_get(s->prompts, e->source[i]);
}

// ---- responses ----

// How much of response i is kept, and whether a stop token is in it.
static int32_t kept_length(const struct rlhf__rollout_source *s, const struct rlhf__gen_result *r,
                           uint32_t i, uint8_t *finished) {
    const int32_t *ids = r->ids + (size_t)i * (size_t)r->stride;
    *finished = 0;
    for (int32_t k = 0; k < r->len[i] && s->stop_id >= 0; k++) {
        if (ids[k] != s->stop_id) continue;
        *finished = 1;
        return s->cut_at_stop ? k + 1 : r->len[i];
    }
    return r->len[i];
}

static rlhf_status assemble(const struct rlhf__rollout_source *s, const struct rlhf__prompt *prompt,
                            const struct rlhf__gen_result *r, uint32_t n, struct rlhf__episodes *e,
                            struct rlhf__error *err) {
    uint64_t total = 0;
    uint8_t finished;
    for (uint32_t i = 0; i < n; i++)
        total += (uint64_t)(prompt[i].n + kept_length(s, r, i, &finished));
    if (total > INT32_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "a batch of %llu tokens is too large",
                          (unsigned long long)total);
    rlhf_status st = rlhf__episodes_init(e, n, (uint32_t)total, err);
    if (st != RLHF_OK) return st;
    for (uint32_t i = 0; i < n; i++) {
        int32_t at = e->offset[i] + prompt[i].n, len = kept_length(s, r, i, &e->finished[i]);
        size_t from = (size_t)i * (size_t)r->stride;
        memcpy(e->ids + e->offset[i], prompt[i].ids, (size_t)prompt[i].n * sizeof *e->ids);
        memcpy(e->ids + at, r->ids + from, (size_t)len * sizeof *e->ids);
        memcpy(e->token[RLHF__LOGP_OLD] + at, r->logp + from, (size_t)len * sizeof(float));
        e->prompt_len[i] = prompt[i].n;
        e->offset[i + 1] = at + len;
    }
    return RLHF_OK;
}

// Draw n responses of at most max_new tokens to `prompt`s and lay them out as rows.
static rlhf_status draw(struct rlhf__rollout_source *s, struct rlhf__trainer *t,
                        const struct rlhf__prompt *prompt, uint32_t n, const char *stream,
                        int32_t max_new, struct rlhf__episodes *e, struct rlhf__error *err) {
    const int32_t **ids = calloc(n, sizeof *ids);
    int32_t *len = calloc(n, sizeof *len);
    struct rlhf__gen_result r = {0};
    rlhf_status st = RLHF_OK;
    if (!ids || !len) st = rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %u prompts", n);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        ids[i] = prompt[i].ids;
        len[i] = prompt[i].n;
    }
    struct rlhf__gen_request q = {.n = n,
                                  .slots = s->slots,
                                  .prompt = ids,
                                  .prompt_len = len,
                                  .max_new = max_new,
                                  .stop_id = t->config->sampling.stop_at_eos ? s->stop_id : -1,
                                  .dist = &s->dist,
                                  .logp_dist = &t->learner.dist,
                                  .seed = (uint64_t)t->config->run.seed,
                                  .stream = rlhf_rng_stream(stream),
                                  .first = (uint64_t)t->episodes};
    if (st == RLHF_OK) st = rlhf__generate(s->policy, s->session, &q, &r, err);
    if (st == RLHF_OK) st = assemble(s, prompt, &r, n, e, err);
    t->times.rollout_tokens += r.tokens;
    rlhf__gen_result_finish(&r);
    free(ids);
    free(len);
    return st;
}

rlhf_status rlhf__rollout_source_next(struct rlhf__rollout_source *s, struct rlhf__trainer *t,
                                      struct rlhf__episodes *e, struct rlhf__error *err) {
    uint32_t n = (uint32_t)t->config->batch.size, group = (uint32_t)t->plan.group_size;
    struct rlhf__prompt *prompt = calloc(n, sizeof *prompt);
    int64_t *row = calloc(n, sizeof *row);
    rlhf_status st = RLHF_OK;
    if (!prompt || !row) st = rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %u prompts", n);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        row[i] = i % group ? row[i - 1] : s->eligible[rlhf__order_next(&s->order)];
        prompt[i] = rlhf__prompts_get(s->prompts, row[i]);
    }
    if (st == RLHF_OK) st = draw(s, t, prompt, n, "rollout", s->max_new, e, err);
    for (uint32_t i = 0; st == RLHF_OK && i < n; i++) {
        e->source[i] = row[i];
        e->group[i] = (int32_t)(i / group);
    }
    if (st == RLHF_OK) t->episodes += n;
    free(prompt);
    free(row);
    return st;
}

// ---- the check at start-up ----

static double largest_difference(const struct rlhf__episodes *e, const float *a, const float *b) {
    double max = 0;
    for (uint32_t i = 0; i < e->n; i++)
        for (int32_t k = e->offset[i] + e->prompt_len[i]; k < e->offset[i + 1]; k++) {
            double d = fabs((double)a[k] - (double)b[k]);
            if (!(d <= max)) max = d;
        }
    return max;
}

static rlhf_status compare(struct rlhf__trainer *t, const struct rlhf__model *m,
                           const struct rlhf__episodes *e, const char *what,
                           struct rlhf__error *err) {
    // One numerical path: on a CPU the difference is exactly 0.
    double allowed = t->compute->table->device == 1 ? 0 : 1e-3;
    struct rlhf__pass_out out = {.logp = e->token[RLHF__LOGP_REF]};
    rlhf_status st =
        rlhf__pass(m, e, &t->learner.dist, t->config->batch.microbatch_tokens, &out, err);
    if (st != RLHF_OK) return st;
    double d = largest_difference(e, e->token[RLHF__LOGP_OLD], e->token[RLHF__LOGP_REF]);
    if (d <= allowed) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INTERNAL,
                      "before the first update the log-probs of sampling and of %s differ by %g",
                      what, d);
}

rlhf_status rlhf__rollout_source_check(struct rlhf__rollout_source *s, struct rlhf__trainer *t,
                                       struct rlhf__error *err) {
    struct rlhf__prompt prompt[CHECK_ROWS];
    uint32_t n = CHECK_ROWS;
    if ((int64_t)n > s->n) n = (uint32_t)s->n;
    if (n > s->slots) n = s->slots;
    for (uint32_t i = 0; i < n; i++)
        prompt[i] = rlhf__prompts_get(s->prompts, s->eligible[i]);
    struct rlhf__episodes e = {0};
    int32_t max_new = s->max_new < CHECK_TOKENS ? s->max_new : CHECK_TOKENS;
    rlhf_status st = draw(s, t, prompt, n, "check", max_new, &e, err);
    if (st == RLHF_OK) st = compare(t, t->policy, &e, "the training forward", err);
    int same = t->reference && !t->config->reference.path[0] && !t->req->resume;
    if (st == RLHF_OK && same) st = compare(t, t->reference, &e, "the reference", err);
    rlhf__episodes_finish(&e);
    return st;
}
