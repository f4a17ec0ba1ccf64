// prompt_feed.c: see feed.h.
#include "feed/feed.h"

#include "base/clock.h"
#include "feed/ahead.h"
#include "feed/largest_rows.h"
#include "feed/prompt_episodes.h"
#include "feed/start_check.h"
#include "learn/plan.h"
#include "model/text_note.h"
#include "sample/decode.h"
#include "sample/rollout_share.h"
#include "team/team.h"

#include <stdlib.h>
#include <string.h>

struct prompt_feed {
    struct rlhf__feed feed;
    struct rlhf__prompts *prompts;
    struct rlhf__prompts *held_out; // data.eval_path, or NULL
    int64_t n;                      // number of prompts
    struct rlhf__order order;
    rlhf_gen *cache; // NULL until the policy is loaded
    uint32_t slots, prefix_slots;
    uint32_t group;             // rows per prompt
    int32_t share;              // 1: rows of a group share its prompt in the KV cache
    int32_t keep_support;       // 1: log-probs are over the tokens that top-k and top-p kept
    int32_t reference_is_start; // 1: the reference is the policy as it starts
    struct rlhf__prompt_episodes episodes;
};

static struct prompt_feed *of(struct rlhf__feed *f) { return (struct prompt_feed *)f; }

static const struct prompt_feed *look(const struct rlhf__feed *f) {
    return (const struct prompt_feed *)f;
}

// ---- sampling ----

// Returns the settings of a request that are the same for all sampling in a run.
static struct rlhf__rollout_request request(const struct prompt_feed *f) {
    const struct rlhf__cast *cast = f->feed.env->cast;
    struct rlhf__rollout_request q =
        rlhf__rollout_request(f->feed.env->config, cast->policy, f->prompts, cast->rules);
    q.cache = f->cache;
    q.slots = f->slots;
    q.prefix_slots = f->prefix_slots;
    q.keep_support = f->keep_support;
    q.logp_dist = cast->logp_dist;
    return q;
}

// Returns the request of a phase, whose rows come in groups with the same prompt.
static struct rlhf__rollout_request batch_request(const struct prompt_feed *f) {
    struct rlhf__rollout_request q = request(f);
    q.n = (uint32_t)f->feed.env->config->batch.size;
    q.stream = "rollout";
    q.group = f->group;
    return q;
}

// With rewards.overlap, rewards that allow it are called while rows are being sampled.
static rlhf_status open_overlap(const struct prompt_feed *f, uint32_t n, struct rlhf__experience *x,
                                struct rlhf__error *err) {
    const struct rlhf__feed_env *env = f->feed.env;
    const struct rlhf__overlap_request q = {
        .config = env->config,
        .rewards = env->cast->rewards,
        .by = {&env->config->response, env->cast->rules, f->prompts},
        .phase = x->phase,
        .log = env->log,
        .n = n,
        .group = f->group};
    // With several processes, scoring does not overlap with sampling: each process calls the
    // rewards for its rows after sampling all of them.
    if (rlhf__team_shares(env->cast->share.team)) return RLHF_OK;
    return env->config->mixing.overlap ? rlhf__overlap_create(&q, &x->overlap, err) : RLHF_OK;
}

// Choose the prompts of n rows, in the order of the file or by the algorithm. If the algorithm
// chooses, the cursor of the file's order only counts prompts.
static rlhf_status pick_prompts(struct prompt_feed *f, uint32_t n, int64_t phase, int64_t *row,
                                struct rlhf__error *err) {
    const uint32_t groups = n / f->group;
    struct rlhf__prompt_choice *choice = f->feed.choice;
    if (choice) RLHF_TRY(rlhf__prompt_choice_ask(choice, phase, groups, row, err));
    for (uint32_t k = 0; k < groups; k++) {
        const int64_t next = rlhf__order_next(&f->order);
        if (!choice) row[k] = next;
    }
    // backwards, because row[k] has the prompt of group k until it is overwritten
    for (uint32_t i = n; i-- > 0;)
        row[i] = row[i / f->group];
    return RLHF_OK;
}

static rlhf_status draw(struct rlhf__feed *feed, uint32_t n, uint64_t first, int64_t version,
                        struct rlhf__experience *x, struct rlhf__error *err) {
    struct prompt_feed *f = of(feed);
    int64_t *row = calloc(n, sizeof *row);
    rlhf__progress_note(feed->env->progress, "rollout");
    if (!row) return RLHF__NOMEM(err, "out of memory for %u prompts", n);
    struct rlhf__rollout_request q = batch_request(f);
    q.n = n;
    q.watch = rlhf__progress_watch(feed->env->progress);
    q.doing = "rollout";
    q.first = first;
    q.version = version;
    rlhf_status st = pick_prompts(f, n, x->phase, row, err);
    const int episodes = feed->env->environment != NULL;
    if (st == RLHF_OK && !episodes) st = open_overlap(f, n, x, err);
    q.overlap = x->overlap;
    if (st == RLHF_OK && episodes)
        st = rlhf__prompt_episodes_play(&f->episodes, feed->env, &q, row, x, err);
    else if (st == RLHF_OK)
        st = rlhf__rollout_share(feed->env->cast->share.team, &q, row, &x->rows, &x->tokens, err);
    free(row);
    if (st != RLHF_OK) return st;
    if (f->share) x->rows.flags |= RLHF__SHARE_PROMPTS;
    x->sampled = rlhf__rows_response_tokens(&x->rows, 0, x->rows.n);
    x->drawn = n;
    return RLHF_OK;
}

// ---- rollout.ahead ----

rlhf_status rlhf__prompt_feed_act(struct rlhf__feed *feed, const struct rlhf__actor_order *o,
                                  struct rlhf__sampled *out, struct rlhf__error *err) {
    const struct prompt_feed *f = look(feed);
    struct rlhf__rollout_request q = batch_request(f);
    const double from = rlhf__seconds();
    for (uint32_t i = 0; i < o->n; i++)
        if (o->row[i] < 0 || o->row[i] >= f->n)
            return rlhf__fail(err, RLHF_E_INTERNAL, "there is no prompt %lld",
                              (long long)o->row[i]);
    q.n = o->end - o->begin;
    q.first = o->first + o->begin;
    q.version = o->version;
    if (q.n > 0) RLHF_TRY(rlhf__rollout(&q, o->row + o->begin, &out->rows, &out->tokens, err));
    out->seconds = rlhf__seconds() - from;
    return RLHF_OK;
}

rlhf_status rlhf__prompt_feed_ahead(struct rlhf__feed *feed, int64_t phase, uint64_t first,
                                    int64_t version, struct rlhf__error *err) {
    struct prompt_feed *f = of(feed);
    struct rlhf__rollout_request q = batch_request(f);
    int64_t *row = calloc(q.n, sizeof *row);
    if (!row) return RLHF__NOMEM(err, "out of memory for %u prompts", q.n);
    q.first = first;
    q.version = version;
    const rlhf_status st = pick_prompts(f, q.n, phase, row, err);
    if (st == RLHF_OK) return rlhf__ahead_begin(feed->ahead, &q, row, err);
    free(row);
    return st;
}

rlhf_status rlhf__prompt_feed_ahead_load(struct rlhf__feed *feed, const char *dir,
                                         struct rlhf__error *err) {
    const struct prompt_feed *f = look(feed);
    const rlhf_model_info *m = &feed->env->cast->policy->info;
    const struct rlhf__rows_fit fit = {.prompts = f->n,
                                       .n_ctx = (uint32_t)m->n_ctx,
                                       .n_vocab = m->n_vocab,
                                       .n_vocab_support = f->keep_support ? m->n_vocab : 0};
    return rlhf__ahead_load(feed->ahead, dir, &fit, err);
}

// Take the batch that was sampled while the previous phase trained.
static rlhf_status take_ahead(struct prompt_feed *f, uint64_t first, struct rlhf__experience *x,
                              struct rlhf__error *err) {
    RLHF_TRY(rlhf__ahead_take(f->feed.ahead, first, x, err));
    if (f->share) x->rows.flags |= RLHF__SHARE_PROMPTS;
    if (f->feed.choice) rlhf__prompt_choice_chosen(f->feed.choice, x->phase, &x->rows);
    return RLHF_OK;
}

static rlhf_status prompt_next(struct rlhf__feed *feed, uint64_t first, int64_t version,
                               struct rlhf__experience *x, struct rlhf__error *err) {
    if (feed->ahead && rlhf__ahead_ready(feed->ahead)) return take_ahead(of(feed), first, x, err);
    return draw(feed, (uint32_t)feed->env->config->batch.size, first, version, x, err);
}

static rlhf_status prompt_more(struct rlhf__feed *feed, uint32_t groups, uint64_t first,
                               int64_t version, struct rlhf__experience *x,
                               struct rlhf__error *err) {
    return draw(feed, groups * of(feed)->group, first, version, x, err);
}

rlhf_status rlhf__prompt_feed_sample(const struct rlhf__feed *feed, const struct rlhf__model *model,
                                     uint32_t n, const char *stream, uint64_t first,
                                     struct rlhf__rows *e, struct rlhf__error *err) {
    struct rlhf__rollout_request q = request(look(feed));
    q.model = model;
    q.cache = NULL;
    q.keep_support = 0; // only the text of the rows is used
    q.n = n;
    q.stream = stream;
    q.first = first;
    return rlhf__rollout_in_turn(&q, e, err);
}

int rlhf__prompt_feed_keeps_support(const struct rlhf__feed *feed) {
    return look(feed)->keep_support;
}

int32_t rlhf__prompt_feed_longest(const struct rlhf__feed *feed) {
    const struct prompt_feed *f = look(feed);
    if (feed->env->environment) return rlhf__prompt_episodes_longest(&f->episodes);
    const int32_t held_out = f->held_out ? rlhf__prompts_longest(f->held_out) : 0;
    const int32_t longest = rlhf__prompts_longest(f->prompts);
    return (longest > held_out ? longest : held_out) +
           (int32_t)feed->env->config->sampling.max_new_tokens;
}

static struct rlhf__order *prompt_order(struct rlhf__feed *f) { return &of(f)->order; }

static rlhf_status prompt_check(struct rlhf__feed *feed, struct rlhf__error *err) {
    const struct prompt_feed *f = look(feed);
    const struct rlhf__start_check check = {
        .env = feed->env,
        .request = request(f),
        .share = f->share,
        .reference_is_start = f->reference_is_start,
    };
    return rlhf__start_check(&check, err);
}

static rlhf_status prompt_evaluate(struct rlhf__feed *feed, const struct rlhf__held_out *h,
                                   struct rlhf__error *err) {
    const struct prompt_feed *f = look(feed);
    if (!h->due || !f->held_out) return RLHF_OK;
    struct rlhf__rollout_request q = request(f);
    q.prompts = f->held_out;
    const struct rlhf__episode_setup *episodes = &f->episodes.held_out;
    return rlhf__held_out_prompts_measure(feed->env, q, episodes->environment ? episodes : NULL, h,
                                          err);
}

// ---- life ----

static rlhf_status check_sizes(const struct rlhf__feed_env *env, struct rlhf__error *err) {
    const struct rlhf__config *c = env->config;
    if (c->sampling.max_new_tokens > RLHF__MAX_NEW_TOKENS)
        return rlhf__fail(err, RLHF_E_INVALID, "sampling.max_new_tokens is %lld; at most %d",
                          (long long)c->sampling.max_new_tokens, RLHF__MAX_NEW_TOKENS);
    return rlhf__plan_check_batch(env->cast->algo->plugin, &env->cast->plan, c, err);
}

// Log-probs over the sampled supports need models that can compute them.
static rlhf_status choose_support(struct prompt_feed *f, struct rlhf__error *err) {
    const struct rlhf__cast *cast = f->feed.env->cast;
    const rlhf_dist d = rlhf__sampling_dist(&f->feed.env->config->sampling);
    RLHF_TRY(rlhf__compute_draws(cast->policy->compute, &d, err));
    int cuts = d.top_p < 1 || d.min_p > 0 || (d.top_k > 0 && d.top_k < cast->policy->info.n_vocab);
    f->keep_support = cuts && !(cast->plan.flags & RLHF_PLAN_FULL_SUPPORT);
    const struct rlhf__model *models[2 + RLHF_NAMED_MAX] = {cast->policy, cast->reference};
    for (uint32_t i = 0; i < cast->plan.n_named; i++)
        models[2 + i] = cast->named[i];
    for (size_t i = 0; f->keep_support && i < 2 + cast->plan.n_named; i++)
        if (models[i] && !(models[i]->info.caps & RLHF_CAP_SUPPORT))
            return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                              "log-probs over what top-k, top-p or min-p kept "
                              "(algo.logprob_support=sampled): %s cannot give them for '%s'; "
                              "algo.logprob_support=full does without",
                              models[i]->instance->plugin->file, models[i]->dir);
    return RLHF_OK;
}

static void choose_slots(struct prompt_feed *f) {
    const struct rlhf__config *c = f->feed.env->config;
    const struct rlhf__cast *cast = f->feed.env->cast;
    f->slots = rlhf__compute_slots(cast->policy->compute, c->sampling.slots);
    if (f->slots > c->batch.size) f->slots = (uint32_t)c->batch.size;
    f->group = (uint32_t)cast->plan.group_size;
    f->share = c->batch.share_prompts && f->group > 1;
    if (f->share) f->prefix_slots = rlhf__prefix_slots(cast->policy, f->slots, f->group);
}

static void prompt_destroy(struct rlhf__feed *feed) {
    struct prompt_feed *f = of(feed);
    rlhf__ahead_destroy(feed->ahead);
    rlhf__model_gen_close(feed->env->cast->policy, f->cache);
    rlhf__prompt_choice_destroy(feed->choice);
    rlhf__prompt_episodes_close(&f->episodes);
    rlhf__prompts_close(f->prompts);
    rlhf__prompts_close(f->held_out);
    rlhf__order_finish(&f->order);
    free(f);
}

static rlhf_status open_cache(const struct prompt_feed *f, const struct rlhf__model *m,
                              rlhf_gen **out, struct rlhf__error *err) {
    return rlhf__model_gen_open(m, f->slots + f->prefix_slots,
                                (uint32_t)rlhf__prompt_feed_longest(&f->feed), out, err);
}

// ---- the largest possible rows ----

static rlhf_status prompt_largest(struct rlhf__feed *feed, struct rlhf__experience *x,
                                  struct rlhf__error *err) {
    struct prompt_feed *f = of(feed);
    const struct rlhf__config *c = feed->env->config;
    const struct rlhf__largest_rows q = {
        .prompts = f->prompts,
        .order = &f->order,
        .n = (uint32_t)c->batch.size,
        .group = f->group,
        .any = feed->choice != NULL,
        .max_new = (int32_t)c->sampling.max_new_tokens,
        .longest = f->episodes.train.limits.tokens,
        .n_vocab_support = f->keep_support ? feed->env->cast->policy->info.n_vocab : 0,
        .flags = f->share ? RLHF__SHARE_PROMPTS : 0u};
    return rlhf__largest_rows(&q, &x->rows, err);
}

// On the memory plan, let m fill every slot of a cache and decode one more token. *cache stays
// open; the caller closes it.
static rlhf_status estimate(struct prompt_feed *f, const struct rlhf__model *m,
                            const struct rlhf__experience *x, rlhf_gen **cache,
                            struct rlhf__error *err) {
    struct rlhf__rollout_request q = batch_request(f);
    struct rlhf__rows few = {0};
    q.model = m;
    q.stream = "estimate";
    q.n = f->slots;
    q.max_new = q.max_new < 2 ? q.max_new : 2;
    q.keep_support = 0;
    q.rules = NULL;
    int64_t *row = calloc(q.n, sizeof *row);
    if (!row) return RLHF__NOMEM(err, "out of memory for %u prompts", q.n);
    for (uint32_t i = 0; i < q.n; i++)
        row[i] = x->rows.source[i];
    rlhf_status st = open_cache(f, m, cache, err);
    q.cache = *cache;
    if (st == RLHF_OK) st = rlhf__rollout(&q, row, &few, NULL, err);
    rlhf__rows_finish(&few);
    free(row);
    return st;
}

static rlhf_status prompt_estimate(struct rlhf__feed *feed, const struct rlhf__experience *x,
                                   struct rlhf__error *err) {
    const struct rlhf__model *policy = feed->env->cast->policy;
    rlhf_gen *cache = NULL;
    const rlhf_status st = estimate(of(feed), policy, x, &cache, err);
    rlhf__model_gen_close(policy, cache);
    return st;
}

rlhf_status rlhf__prompt_feed_estimate_ahead(struct rlhf__feed *feed,
                                             const struct rlhf__experience *x, rlhf_gen **cache,
                                             struct rlhf__error *err) {
    const struct rlhf__sampler *s = rlhf__ahead_sampler(feed->ahead);
    const struct rlhf__model *m = s ? rlhf__sampler_model(s) : NULL;
    if (!m) return RLHF_OK;
    return estimate(of(feed), m, x, cache, err);
}

// A backend that records calls keeps one session for the whole run. With others, each rollout opens
// and closes a session, which then takes no memory during the update.
static rlhf_status prompt_ready(struct rlhf__feed *feed, struct rlhf__error *err) {
    struct prompt_feed *f = of(feed);
    if (!RLHF_COMPUTE_HAS(feed->env->cast->policy->compute, record)) return RLHF_OK;
    return open_cache(f, feed->env->cast->policy, &f->cache, err);
}

static const struct rlhf__feed_ops prompt_ops = {.next = prompt_next,
                                                 .more = prompt_more,
                                                 .largest = prompt_largest,
                                                 .estimate = prompt_estimate,
                                                 .order = prompt_order,
                                                 .ready = prompt_ready,
                                                 .check = prompt_check,
                                                 .evaluate = prompt_evaluate,
                                                 .destroy = prompt_destroy};

static rlhf_status open_feed(struct prompt_feed *f, struct rlhf__error *err) {
    const struct rlhf__feed_env *env = f->feed.env;
    const struct rlhf__config *c = env->config;
    const struct rlhf__model *policy = env->cast->policy;
    RLHF_TRY(rlhf__rollout_check_model(c, policy, env->log, err));
    const int alone = rlhf__playing_alone(env->environment, &c->prompts);
    if (alone)
        RLHF_TRY(rlhf__playing_no_prompts(policy->tok, &f->prompts, err));
    else
        RLHF_TRY(rlhf__rollout_prompts(&c->prompts, "prompts.path", policy, &c->sampling, env->dirs,
                                       env->log, env->loading, &f->prompts, err));
    f->n = rlhf__prompts_count(f->prompts);
    // otherwise the note was logged already
    if (!alone && (!c->prompts.prepend_bos || rlhf__tokenizer_info(policy->tok)->bos >= 0))
        rlhf__model_text_note(policy, "texts", f->n - rlhf__prompts_chats(f->prompts),
                              c->prompts.prepend_bos ? RLHF__ENCODE_BOS : 0, 0, env->log);
    RLHF_TRY(rlhf__held_out_prompts_open(env, &f->held_out, err));
    if (!alone) RLHF_TRY(rlhf__rollout_check_rows(c, f->prompts, err));
    RLHF_TRY(rlhf__prompt_episodes_open(env, f->prompts, f->held_out, alone, &f->episodes, err));
    f->feed.prompts = f->prompts;
    f->feed.texts_alone = rlhf__prompts_chats(f->prompts) == 0;
    f->feed.held_out = f->held_out;
    RLHF_TRY(rlhf__prompt_choice_create(env->cast->algo, f->prompts, &f->feed.choice, err));
    RLHF_TRY(rlhf__order_init(&f->order, f->n, (uint64_t)c->run.seed, "prompts", c->prompts.shuffle,
                              err));
    return choose_support(f, err);
}

rlhf_status rlhf__prompt_feed_open(const struct rlhf__feed_env *env, int reference_is_start,
                                   struct rlhf__feed **out, struct rlhf__error *err) {
    *out = NULL;
    RLHF_TRY(check_sizes(env, err));
    struct prompt_feed *f = calloc(1, sizeof *f);
    if (!f) return RLHF__NOMEM(err, "out of memory for the rollout");
    f->feed = (struct rlhf__feed){.ops = &prompt_ops, .env = env, .phases = RLHF__DEFAULT_PHASES};
    f->reference_is_start = reference_is_start;
    choose_slots(f);
    rlhf_status st = open_feed(f, err);
    if (st != RLHF_OK) {
        prompt_destroy(&f->feed);
        return st;
    }
    *out = &f->feed;
    return RLHF_OK;
}
