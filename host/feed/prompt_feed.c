// prompt_feed.c: see feed.h.
#include "feed/feed.h"

#include "base/clock.h"
#include "feed/ahead.h"
#include "feed/largest_rows.h"
#include "feed/prompt_episodes.h"
#include "feed/prompt_sampling.h"
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
    struct rlhf__prompt_sampling sampling;
    int32_t reference_is_start; // 1: the reference equals the starting policy
    struct rlhf__prompt_episodes episodes;
};

static struct prompt_feed *of(struct rlhf__feed *f) { return (struct prompt_feed *)f; }

static const struct prompt_feed *look(const struct rlhf__feed *f) {
    return (const struct prompt_feed *)f;
}

// ---- the rows of a phase ----

// Choose the prompts of n rows. With feed.choice, the algorithm chooses them, and f->order only
// counts prompts. Otherwise they are the next prompts in f->order.
static rlhf_status pick_prompts(struct prompt_feed *f, uint32_t n, int64_t phase, int64_t *row,
                                struct rlhf__error *err) {
    const uint32_t groups = n / f->sampling.group;
    struct rlhf__prompt_choice *choice = f->feed.choice;
    if (choice) RLHF_TRY(rlhf__prompt_choice_ask(choice, phase, groups, row, err));
    for (uint32_t k = 0; k < groups; k++) {
        const int64_t next = rlhf__order_next(&f->order);
        if (!choice) row[k] = next;
    }
    // backwards, because row[k] has the prompt of group k until it is overwritten
    for (uint32_t i = n; i-- > 0;)
        row[i] = row[i / f->sampling.group];
    return RLHF_OK;
}

static rlhf_status draw(struct rlhf__feed *feed, uint32_t n, uint64_t first, int64_t version,
                        struct rlhf__experience *x, struct rlhf__error *err) {
    struct prompt_feed *f = of(feed);
    int64_t *row = calloc(n, sizeof *row);
    rlhf__progress_note(feed->env->progress, "rollout");
    if (!row) return RLHF__NOMEM(err, "out of memory for %u prompts", n);
    struct rlhf__rollout_request q = rlhf__prompt_sampling_batch(&f->sampling);
    q.n = n;
    q.watch = rlhf__progress_watch(feed->env->progress);
    q.doing = "rollout";
    q.first = first;
    q.version = version;
    rlhf_status st = pick_prompts(f, n, x->phase, row, err);
    const int episodes = feed->env->environment != NULL;
    if (st == RLHF_OK && !episodes) st = rlhf__prompt_sampling_overlap(&f->sampling, n, x, err);
    q.overlap = x->overlap;
    if (st == RLHF_OK && episodes)
        st = rlhf__prompt_episodes_play(&f->episodes, feed->env, &q, row, x, err);
    else if (st == RLHF_OK)
        st = rlhf__rollout_share(feed->env->cast->share.team, &q, row, &x->rows, &x->tokens, err);
    free(row);
    if (st != RLHF_OK) return st;
    if (f->sampling.share) x->rows.flags |= RLHF__SHARE_PROMPTS;
    x->sampled = rlhf__rows_response_tokens(&x->rows, 0, x->rows.n);
    x->drawn = n;
    return RLHF_OK;
}

// ---- rollout.ahead ----

rlhf_status rlhf__prompt_feed_act(struct rlhf__feed *feed, const struct rlhf__actor_order *o,
                                  struct rlhf__sampled *out, struct rlhf__error *err) {
    const struct prompt_feed *f = look(feed);
    struct rlhf__rollout_request q = rlhf__prompt_sampling_batch(&f->sampling);
    const double from = rlhf__seconds();
    for (uint32_t i = 0; i < o->n; i++)
        if (o->row[i] < 0 || o->row[i] >= f->n)
            return rlhf__fail(err, RLHF_E_INTERNAL, "prompt %lld does not exist",
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
    struct rlhf__rollout_request q = rlhf__prompt_sampling_batch(&f->sampling);
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
                                       .n_vocab_support =
                                           f->sampling.keep_support ? m->n_vocab : 0};
    return rlhf__ahead_load(feed->ahead, dir, &fit, err);
}

// Take the batch that was sampled while the previous phase trained.
static rlhf_status take_ahead(struct prompt_feed *f, uint64_t first, struct rlhf__experience *x,
                              struct rlhf__error *err) {
    RLHF_TRY(rlhf__ahead_take(f->feed.ahead, first, x, err));
    if (f->sampling.share) x->rows.flags |= RLHF__SHARE_PROMPTS;
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
    return draw(feed, groups * of(feed)->sampling.group, first, version, x, err);
}

rlhf_status rlhf__prompt_feed_sample(const struct rlhf__feed *feed, const struct rlhf__model *model,
                                     uint32_t n, const char *stream, uint64_t first,
                                     struct rlhf__rows *e, struct rlhf__error *err) {
    struct rlhf__rollout_request q = rlhf__prompt_sampling_request(&look(feed)->sampling);
    q.model = model;
    q.cache = NULL;
    q.keep_support = 0; // only the text of the rows is used
    q.n = n;
    q.stream = stream;
    q.first = first;
    return rlhf__rollout_in_turn(&q, e, err);
}

int rlhf__prompt_feed_keeps_support(const struct rlhf__feed *feed) {
    return look(feed)->sampling.keep_support;
}

int32_t rlhf__prompt_feed_longest(const struct rlhf__feed *feed) {
    const struct prompt_feed *f = look(feed);
    if (feed->env->environment) return rlhf__prompt_episodes_longest(&f->episodes);
    const int32_t held_out = f->held_out ? rlhf__prompts_longest(f->held_out) : 0;
    const int32_t longest = rlhf__prompts_longest(f->prompts);
    return (longest > held_out ? longest : held_out) +
           (int32_t)feed->env->config->sampling.max_new_tokens;
}

static uint32_t longest(const struct rlhf__feed *feed) {
    return (uint32_t)rlhf__prompt_feed_longest(feed);
}

static struct rlhf__order *prompt_order(struct rlhf__feed *f) { return &of(f)->order; }

static rlhf_status prompt_check(struct rlhf__feed *feed, struct rlhf__error *err) {
    const struct prompt_feed *f = look(feed);
    const struct rlhf__start_check check = {
        .env = feed->env,
        .request = rlhf__prompt_sampling_request(&f->sampling),
        .share = f->sampling.share,
        .reference_is_start = f->reference_is_start,
    };
    return rlhf__start_check(&check, err);
}

static rlhf_status prompt_evaluate(struct rlhf__feed *feed, const struct rlhf__held_out *h,
                                   struct rlhf__error *err) {
    const struct prompt_feed *f = look(feed);
    if (!h->due || !f->held_out) return RLHF_OK;
    struct rlhf__rollout_request q = rlhf__prompt_sampling_request(&f->sampling);
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

static void prompt_destroy(struct rlhf__feed *feed) {
    struct prompt_feed *f = of(feed);
    rlhf__ahead_close(feed->ahead);
    rlhf__prompt_sampling_finish(&f->sampling);
    rlhf__prompt_choice_close(feed->choice);
    rlhf__prompt_episodes_close(&f->episodes);
    rlhf__prompts_close(f->prompts);
    rlhf__prompts_close(f->held_out);
    rlhf__order_finish(&f->order);
    free(f);
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
        .group = f->sampling.group,
        .any = feed->choice != NULL,
        .max_new = (int32_t)c->sampling.max_new_tokens,
        .longest = f->episodes.train.limits.tokens,
        .n_vocab_support = f->sampling.keep_support ? feed->env->cast->policy->info.n_vocab : 0,
        .flags = (f->sampling.share ? RLHF__SHARE_PROMPTS : 0u) |
                 rlhf__plan_row_flags(&feed->env->cast->plan)};
    return rlhf__largest_rows(&q, &x->rows, err);
}

static rlhf_status prompt_estimate(struct rlhf__feed *feed, const struct rlhf__experience *x,
                                   struct rlhf__error *err) {
    const struct rlhf__model *policy = feed->env->cast->policy;
    rlhf_gen *cache = NULL;
    const rlhf_status st = rlhf__prompt_sampling_estimate(&look(feed)->sampling, policy,
                                                          longest(feed), x, &cache, err);
    rlhf__model_gen_close(policy, cache);
    return st;
}

static rlhf_status prompt_estimate_held_out(struct rlhf__feed *feed,
                                            struct rlhf__held_out_estimate *out,
                                            struct rlhf__error *err) {
    const struct prompt_feed *f = look(feed);
    *out = (struct rlhf__held_out_estimate){0};
    if (!f->held_out) return RLHF_OK;
    return rlhf__prompt_sampling_estimate_held_out(&f->sampling, f->held_out, out, err);
}

rlhf_status rlhf__prompt_feed_estimate_ahead(struct rlhf__feed *feed,
                                             const struct rlhf__experience *x, rlhf_gen **cache,
                                             struct rlhf__error *err) {
    const struct rlhf__sampler *s = rlhf__ahead_sampler(feed->ahead);
    const struct rlhf__model *m = s ? rlhf__sampler_model(s) : NULL;
    if (!m) return RLHF_OK;
    return rlhf__prompt_sampling_estimate(&look(feed)->sampling, m, longest(feed), x, cache, err);
}

static rlhf_status prompt_ready(struct rlhf__feed *feed, struct rlhf__error *err) {
    return rlhf__prompt_sampling_ready(&of(feed)->sampling, longest(feed), err);
}

static const struct rlhf__feed_ops prompt_ops = {.next = prompt_next,
                                                 .more = prompt_more,
                                                 .largest = prompt_largest,
                                                 .estimate = prompt_estimate,
                                                 .order = prompt_order,
                                                 .ready = prompt_ready,
                                                 .check = prompt_check,
                                                 .evaluate = prompt_evaluate,
                                                 .estimate_held_out = prompt_estimate_held_out,
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
    if (!alone)
        rlhf__model_text_note(policy, "texts", f->n - rlhf__prompts_chats(f->prompts),
                              rlhf__tokenizer_has_bos(policy->tok) ? RLHF__ENCODE_BOS : 0, 0,
                              env->log);
    RLHF_TRY(rlhf__held_out_prompts_open(env, &f->held_out, err));
    if (!alone) RLHF_TRY(rlhf__rollout_check_rows(c, f->prompts, err));
    RLHF_TRY(rlhf__prompt_episodes_open(env, f->prompts, f->held_out, alone, &f->episodes, err));
    f->feed.prompts = f->prompts;
    f->feed.texts_alone = rlhf__prompts_chats(f->prompts) == 0;
    f->feed.held_out = f->held_out;
    RLHF_TRY(rlhf__prompt_choice_open(env->cast->algo, f->prompts, &f->feed.choice, err));
    RLHF_TRY(rlhf__order_init(&f->order, f->n, (uint64_t)c->run.seed, "prompts", c->prompts.shuffle,
                              err));
    return rlhf__prompt_sampling_init(&f->sampling, env, f->prompts, err);
}

rlhf_status rlhf__prompt_feed_open(const struct rlhf__feed_env *env, int reference_is_start,
                                   struct rlhf__feed **out, struct rlhf__error *err) {
    *out = NULL;
    RLHF_TRY(check_sizes(env, err));
    struct prompt_feed *f = calloc(1, sizeof *f);
    if (!f) return RLHF__NOMEM(err, "out of memory for the rollout");
    f->feed = (struct rlhf__feed){.ops = &prompt_ops, .env = env, .phases = RLHF__DEFAULT_PHASES};
    f->reference_is_start = reference_is_start;
    rlhf_status st = open_feed(f, err);
    if (st != RLHF_OK) {
        prompt_destroy(&f->feed);
        return st;
    }
    *out = &f->feed;
    return RLHF_OK;
}
