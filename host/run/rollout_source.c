// rollout_source.c: see rollout_source.h.
#include "run/rollout_source.h"
#include "learn/pass.h"

#include "run/run.h"
#include "sample/decode.h"
#include "sample/rollout.h"

#include <math.h>
#include <stdlib.h>

#define DEFAULT_SLOTS 64
#define CHECK_ROWS    4
#define CHECK_TOKENS  8

struct rlhf__rollout_source {
    const struct rlhf__model *policy;
    struct rlhf__prompts *prompts;
    int64_t n; // prompts
    struct rlhf__order order;
    rlhf_gen *session;
    uint32_t slots, prefix_slots;
    int32_t longest, reserved; // prompt + response, tokens
    uint32_t group;            // rows a prompt
    int32_t share;             // 1: they share it
    int32_t keep_support;      // 1: log-probs are over what top-k and top-p kept
    int32_t reserved2;
    rlhf_dist dist;
};

static rlhf_status check_sizes(const struct rlhf__run *t, struct rlhf__error *err) {
    const struct rlhf__config *c = t->config;
    if (c->sampling.max_new_tokens > RLHF__MAX_NEW_TOKENS)
        return rlhf__fail(err, RLHF_E_INVALID, "sampling.max_new_tokens is %lld; at most %d",
                          (long long)c->sampling.max_new_tokens, RLHF__MAX_NEW_TOKENS);
    const rlhf_plan *p = &t->cast.plan;
    if (c->batch.size % p->group_size != 0 || c->batch.size < p->minibatches)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "batch.size is %lld; it must be a multiple of the group size %d and at "
                          "least the number of minibatches %d",
                          (long long)c->batch.size, p->group_size, p->minibatches);
    if ((p->flags & RLHF_PLAN_WHOLE_GROUPS) && c->batch.size / p->group_size < p->minibatches)
        return rlhf__fail(
            err, RLHF_E_INVALID,
            "batch.size %lld is %lld groups of %d, fewer than the %d minibatches, and "
            "%s does not split a group: at least %lld is needed",
            (long long)c->batch.size, (long long)(c->batch.size / p->group_size), p->group_size,
            p->minibatches, t->cast.algo->plugin->file, (long long)p->minibatches * p->group_size);
    return RLHF_OK;
}

// Log-probs over what was sampled from need models that can take them so.
static rlhf_status choose_support(struct rlhf__rollout_source *s, const struct rlhf__run *t,
                                  struct rlhf__error *err) {
    const int32_t n_vocab = s->policy->info.n_vocab;
    int cuts = s->dist.top_p < 1 || (s->dist.top_k > 0 && s->dist.top_k < n_vocab);
    s->keep_support = cuts && !(t->cast.plan.flags & RLHF_PLAN_FULL_SUPPORT);
    const struct rlhf__model *models[] = {s->policy, t->cast.reference};
    for (size_t i = 0; s->keep_support && i < 2; i++)
        if (models[i] && !(models[i]->info.heads & RLHF_HEAD_SUPPORT))
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "log-probs over what top-k or top-p kept "
                              "(algo.logprob_support=sampled): %s cannot give them for '%s'; "
                              "algo.logprob_support=full does without",
                              models[i]->instance->plugin->file, models[i]->dir);
    return RLHF_OK;
}

rlhf_status rlhf__rollout_source_create(struct rlhf__run *t, struct rlhf__rollout_source **out,
                                        struct rlhf__error *err) {
    const struct rlhf__config *c = t->config;
    *out = NULL;
    rlhf_status st = check_sizes(t, err);
    if (st != RLHF_OK) return st;
    struct rlhf__rollout_source *s = calloc(1, sizeof *s);
    if (!s) return RLHF__NOMEM(err, "out of memory for the rollout");
    int32_t max_new = (int32_t)c->sampling.max_new_tokens;
    s->policy = t->cast.policy;
    s->dist =
        (rlhf_dist){1 / c->sampling.temperature, c->sampling.top_p, (int32_t)c->sampling.top_k, 0};
    s->slots = c->sampling.slots > 0 ? (uint32_t)c->sampling.slots : DEFAULT_SLOTS;
    if (s->slots > c->batch.size) s->slots = (uint32_t)c->batch.size;
    s->group = (uint32_t)t->cast.plan.group_size;
    s->share = c->batch.share_prompts && s->group > 1;
    if (s->share) s->prefix_slots = rlhf__prefix_slots(s->policy, s->slots, s->group);
    st = rlhf__rollout_prompts(&c->prompts, s->policy, max_new, t->req->env->dirs, t->report.log,
                               &t->loading, &s->prompts, err);
    if (st == RLHF_OK) s->n = rlhf__prompts_count(s->prompts);
    if (st == RLHF_OK)
        st = rlhf__order_init(&s->order, s->n, (uint64_t)c->run.seed, "prompts", c->prompts.shuffle,
                              err);
    if (st == RLHF_OK) st = choose_support(s, t, err);
    if (st == RLHF_OK) s->longest = rlhf__prompts_longest(s->prompts) + max_new;
    if (st == RLHF_OK)
        st = rlhf__model_gen_open(s->policy, s->slots + s->prefix_slots, (uint32_t)s->longest,
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
    free(s);
}

int32_t rlhf__rollout_source_longest(const struct rlhf__rollout_source *s) { return s->longest; }

struct rlhf__order *rlhf__rollout_source_order(struct rlhf__rollout_source *s) {
    return &s->order;
}

struct rlhf__prompt rlhf__rollout_source_prompt(const struct rlhf__rollout_source *s,
                                                const struct rlhf__episodes *e, uint32_t i) {
    return rlhf__prompts_get(s->prompts, e->source[i]);
}

// What both kinds of draws of a run have in common.
static struct rlhf__rollout_request request(const struct rlhf__rollout_source *s,
                                            const struct rlhf__run *t) {
    const struct rlhf__config *c = t->config;
    return (struct rlhf__rollout_request){.model = s->policy,
                                          .session = s->session,
                                          .prompts = s->prompts,
                                          .slots = s->slots,
                                          .prefix_slots = s->prefix_slots,
                                          .keep_support = s->keep_support,
                                          .stop_at_eos = c->sampling.stop_at_eos,
                                          .cut_at_stop =
                                              c->response.truncate == RLHF__TRUNCATE_STOP,
                                          .rules = t->cast.rules,
                                          .dist = &s->dist,
                                          .logp_dist = &t->learner.dist,
                                          .seed = (uint64_t)c->run.seed};
}

// Rows come in groups, one prompt each.
static void set_groups(const struct rlhf__rollout_source *s, struct rlhf__episodes *e,
                       uint32_t group) {
    if (s->share) e->flags |= RLHF__SHARE_PROMPTS;
    for (uint32_t i = 0; i < e->n; i++)
        e->group[i] = (int32_t)(i / group);
}

rlhf_status rlhf__rollout_source_next(struct rlhf__rollout_source *s, struct rlhf__run *t,
                                      struct rlhf__episodes *e, struct rlhf__error *err) {
    uint32_t n = (uint32_t)t->config->batch.size;
    int64_t *row = calloc(n, sizeof *row);
    if (!row) return RLHF__NOMEM(err, "out of memory for %u prompts", n);
    for (uint32_t i = 0; i < n; i++)
        row[i] = i % s->group ? row[i - 1] : rlhf__order_next(&s->order);
    struct rlhf__rollout_request q = request(s, t);
    q.n = n;
    q.max_new = (int32_t)t->config->sampling.max_new_tokens;
    q.stream = "rollout";
    q.watch = rlhf__progress_watch(t->report.progress);
    q.doing = "rollout";
    q.first = (uint64_t)t->count.sequences;
    q.version = t->optim->step;
    rlhf_status st = rlhf__rollout(&q, row, e, &t->report.times.model_tokens, err);
    free(row);
    if (st != RLHF_OK) return st;
    set_groups(s, e, s->group);
    t->report.times.rollout_tokens = rlhf__episodes_response_tokens(e, 0, e->n);
    t->count.sequences += n;
    return RLHF_OK;
}

rlhf_status rlhf__rollout_source_sample(const struct rlhf__rollout_source *s,
                                        const struct rlhf__run *t, const struct rlhf__model *model,
                                        uint32_t n, const char *stream, uint64_t first,
                                        struct rlhf__episodes *e, struct rlhf__error *err) {
    int64_t *row = calloc(n ? n : 1, sizeof *row);
    if (!row) return RLHF__NOMEM(err, "out of memory for %u prompts", n);
    for (uint32_t i = 0; i < n; i++)
        row[i] = i % s->n;
    struct rlhf__rollout_request q = request(s, t);
    q.model = model;
    q.session = NULL;
    q.keep_support = 0; // texts to be scored
    q.n = n;
    q.max_new = (int32_t)t->config->sampling.max_new_tokens;
    q.stream = stream;
    q.first = first;
    rlhf_status st = rlhf__rollout(&q, row, e, NULL, err);
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

static rlhf_status compare(struct rlhf__run *t, const struct rlhf__model *m,
                           const struct rlhf__episodes *e, const char *what,
                           struct rlhf__error *err) {
    // One numerical path: on a CPU the difference is exactly 0.
    double allowed = t->session.compute->table->device == 1 ? 0 : 1e-3;
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

rlhf_status rlhf__rollout_source_check(struct rlhf__rollout_source *s, struct rlhf__run *t,
                                       struct rlhf__error *err) {
    struct rlhf__rollout_request q = request(s, t);
    // Two rows a prompt where prompts are shared, so that sharing is checked too.
    uint32_t each = s->share ? 2 : 1, prompts = CHECK_ROWS / each;
    if (prompts > s->n) prompts = (uint32_t)s->n;
    int64_t row[CHECK_ROWS];
    q.n = prompts * each;
    for (uint32_t i = 0; i < q.n; i++)
        row[i] = i / each;
    q.max_new = (int32_t)t->config->sampling.max_new_tokens;
    if (q.max_new > CHECK_TOKENS) q.max_new = CHECK_TOKENS;
    q.stream = "check";
    struct rlhf__episodes e = {0};
    rlhf_status st = rlhf__rollout(&q, row, &e, NULL, err);
    if (st == RLHF_OK) set_groups(s, &e, each);
    if (st == RLHF_OK) st = compare(t, t->cast.policy, &e, "the training forward", err);
    int same = t->cast.reference && !t->config->reference.path[0] && !t->req->resume;
    if (st == RLHF_OK && same) st = compare(t, t->cast.reference, &e, "the reference", err);
    rlhf__episodes_finish(&e);
    return st;
}
