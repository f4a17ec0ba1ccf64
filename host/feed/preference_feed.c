// preference_feed.c: see feed.h.
#include "feed/feed.h"

#include "batch/preference_source.h"
#include "config/effect.h"
#include "feed/reward_training.h"
#include "learn/evaluate.h"
#include "model/text_note.h"

#include <stdlib.h>

struct preference_feed {
    struct rlhf__feed feed;
    struct rlhf__preference_source source;
    struct rlhf__preferences *held_out;            // data.eval_path, or NULL
    struct rlhf__reward_training *reward_training; // NULL: a policy is trained
    int32_t max_tokens;
};

static struct preference_feed *of(struct rlhf__feed *f) { return (struct preference_feed *)f; }

static rlhf_status preference_next(struct rlhf__feed *f, uint64_t first, int64_t version,
                                   struct rlhf__experience *x, struct rlhf__error *err) {
    (void)first;
    (void)version;
    rlhf_status st = rlhf__preference_source_next(&of(f)->source, &x->rows, err);
    x->drawn = x->rows.n;
    return st;
}

static struct rlhf__order *preference_order(struct rlhf__feed *f) {
    return &of(f)->source.batches.order;
}

// ---- held-out rows ----

// Report the head's gain and bias. If held-out rows are due, reports the values that are fitted to
// the current weights. If not, reports the values that training uses, but only at the end of the
// first phase.
static rlhf_status report_head(struct rlhf__reward_training *r, const struct rlhf__held_out *h,
                               struct rlhf__error *err) {
    if (!r || r->samples.n == 0 || (!h->due && h->phase > 1)) return RLHF_OK;
    rlhf_status st = h->due ? rlhf__reward_training_calibrate(r, h->phase, err) : RLHF_OK;
    const struct rlhf__reward_head *head = h->due ? &r->written : &r->head;
    if (st != RLHF_OK) return st;
    rlhf__metrics_set(h->metrics, "reward_model/gain", head->gain);
    rlhf__metrics_set(h->metrics, "reward_model/bias", head->bias);
    return RLHF_OK;
}

static rlhf_status measure(const struct preference_feed *f, struct rlhf__preference_quality *q,
                           struct rlhf__error *err) {
    const struct rlhf__cast *cast = f->feed.env->cast;
    const struct rlhf__evaluating how = {.team = cast->share.team};
    if (!f->reward_training)
        return rlhf__evaluate_policy_preferences(cast->policy, cast->reference, f->held_out, &how,
                                                 q, err);
    struct rlhf__reward_model rm = {cast->policy, f->reward_training->written};
    return rlhf__evaluate_preferences(&rm, f->held_out, &how, q, err);
}

// Measure held-out completions. A label that no row has is not reported.
static rlhf_status evaluate_completions(const struct preference_feed *f,
                                        const struct rlhf__held_out *h, struct rlhf__error *err) {
    const struct rlhf__cast *cast = f->feed.env->cast;
    const struct rlhf__evaluating how = {.team = cast->share.team};
    struct rlhf__completion_quality q;
    double mean[2];
    RLHF_TRY(rlhf__evaluate_policy_completions(cast->policy, cast->reference, f->held_out, &how, &q,
                                               err));
    for (int wanted = 0; wanted < 2; wanted++)
        mean[wanted] = q.reward[wanted] / (double)q.rows[wanted];
    if (q.rows[1]) rlhf__metrics_set(h->metrics, "eval/wanted", mean[1]);
    if (q.rows[0]) rlhf__metrics_set(h->metrics, "eval/unwanted", mean[0]);
    if (!q.rows[0] || !q.rows[1]) return RLHF_OK;
    rlhf__metrics_set(h->metrics, "eval/margin", mean[1] - mean[0]);
    rlhf__logf(f->feed.env->log, RLHF_LOG_INFO, "held-out margin %.4f after %lld phase%s",
               mean[1] - mean[0], (long long)h->phase, h->phase == 1 ? "" : "s");
    return RLHF_OK;
}

static rlhf_status preference_evaluate(struct rlhf__feed *feed, const struct rlhf__held_out *h,
                                       struct rlhf__error *err) {
    struct preference_feed *f = of(feed);
    struct rlhf__preference_quality q;
    rlhf_status st = report_head(f->reward_training, h, err);
    if (st != RLHF_OK || !h->due || !f->held_out) return st;
    rlhf__progress_note(feed->env->progress, "evaluation");
    if (feed->env->cast->plan.source == RLHF_SOURCE_COMPLETIONS)
        return evaluate_completions(f, h, err);
    st = measure(f, &q, err);
    if (st != RLHF_OK) return st;
    double rows = (double)q.rows;
    rlhf__metrics_set(h->metrics, "eval/accuracy", (double)q.correct / rows);
    rlhf__metrics_set(h->metrics, "eval/margin", q.margin / rows);
    // Only a reward model's loss is reported, because the loss of a policy depends on the
    // algorithm.
    if (f->reward_training) rlhf__metrics_set(h->metrics, "eval/loss", q.nats / rows);
    rlhf__logf(feed->env->log, RLHF_LOG_INFO, "held-out accuracy %.4f after %lld phase%s",
               (double)q.correct / rows, (long long)h->phase, h->phase == 1 ? "" : "s");
    return RLHF_OK;
}

// Measure the first held-out rows on a memory plan, with any gain and bias of the head.
static rlhf_status estimate_held_out(struct rlhf__feed *feed, struct rlhf__held_out_estimate *out,
                                     struct rlhf__error *err) {
    const struct rlhf__preferences *set = of(feed)->held_out;
    const struct rlhf__cast *cast = feed->env->cast;
    const struct rlhf__evaluating how = {.most = RLHF__ESTIMATED_ROWS};
    const struct rlhf__reward_model rm = {cast->policy, {.pooling = RLHF_POOL_MEAN, .gain = 1}};
    struct rlhf__preference_quality pairs;
    struct rlhf__completion_quality completions;
    const int64_t rows = set ? rlhf__preferences_count(set) : 0;
    *out = (struct rlhf__held_out_estimate){0};
    if (rows == 0) return RLHF_OK;
    out->share = (double)rlhf__evaluating_rows(&how, rows) / (double)rows;
    if (cast->plan.source == RLHF_SOURCE_COMPLETIONS)
        return rlhf__evaluate_policy_completions(cast->policy, cast->reference, set, &how,
                                                 &completions, err);
    if (cast->plan.heads & RLHF_HEAD_SCORE)
        return rlhf__evaluate_preferences(&rm, set, &how, &pairs, err);
    return rlhf__evaluate_policy_preferences(cast->policy, cast->reference, set, &how, &pairs, err);
}

// ---- life ----

static void preference_destroy(struct rlhf__feed *f) {
    rlhf__preference_source_finish(&of(f)->source);
    rlhf__preferences_close(of(f)->held_out);
    free(f);
}

static const struct rlhf__feed_ops preference_ops = {.next = preference_next,
                                                     .largest = rlhf__feed_largest,
                                                     .order = preference_order,
                                                     .evaluate = preference_evaluate,
                                                     .estimate_held_out = estimate_held_out,
                                                     .destroy = preference_destroy};

static struct rlhf__preference_opts row_opts(const struct preference_feed *f,
                                             const char *const *path, const char *setting) {
    const struct rlhf__feed_env *env = f->feed.env;
    const struct rlhf__cast *cast = env->cast;
    return (struct rlhf__preference_opts){
        .paths = path,
        .n_paths = 1,
        .setting = setting,
        .prepend_bos = rlhf__tokenizer_has_bos(cast->policy->tok),
        .max_tokens = f->max_tokens,
        .long_rows = RLHF__PREFERENCE_CUT,
        .completions = cast->plan.source == RLHF_SOURCE_COMPLETIONS,
        .no_margins = cast->plan.flags & RLHF_PLAN_MARGINS ? NULL : cast->algo->plugin->file,
        .loading = env->loading};
}

// Log the number of completions, and check that there are enough for mismatched rows.
static rlhf_status say_completions(struct preference_feed *f, struct rlhf__error *err) {
    const struct rlhf__feed_env *env = f->feed.env;
    const struct rlhf__preferences *set = f->source.set;
    const int64_t n = rlhf__preferences_count(set);
    int64_t wanted = 0;
    for (int64_t i = 0; i < n; i++)
        wanted += rlhf__preferences_get(set, i).best == 0;
    const long long cut = (long long)rlhf__preferences_truncated(set);
    rlhf__logf(env->log, RLHF_LOG_INFO, "data: %lld row%s, %lld true and %lld false; %lld %s cut",
               (long long)n, n == 1 ? "" : "s", (long long)wanted, (long long)(n - wanted), cut,
               cut == 1 ? "was" : "were");
    if (wanted == 0 || wanted == n)
        rlhf__logf(env->log, RLHF_LOG_WARN,
                   "data: every label is %s: there are no %s completions, so the policy is only %s "
                   "the given ones",
                   wanted ? "true" : "false", wanted ? "unwanted" : "wanted",
                   wanted ? "drawn to" : "driven from");
    f->source.mismatched = (env->cast->plan.flags & RLHF_PLAN_MISMATCHED) != 0;
    if (!f->source.mismatched || n > 1) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s: one row is left, and the algorithm compares a row's completion with "
                      "another row's; 2 or more are needed",
                      env->config->data.path);
}

static void warn_of_cuts(const struct preference_feed *f, const struct rlhf__preferences *set) {
    const int64_t cut = rlhf__preferences_truncated(set), n = rlhf__preferences_count(set);
    if (2 * cut <= n) return;
    rlhf__logf(f->feed.env->log, RLHF_LOG_WARN,
               "data: %.0f %% of the rows do not fit into %d tokens and were cut, first from the "
               "beginning of their prompts; a higher data.max_tokens shows the model more of them",
               100 * (double)cut / (double)n, (int)f->max_tokens);
}

static rlhf_status open_rows(struct preference_feed *f, struct rlhf__error *err) {
    const struct rlhf__feed_env *env = f->feed.env;
    const struct rlhf__config *c = env->config;
    struct rlhf__preference_opts rows = row_opts(f, &c->data.path, "data.path");
    struct rlhf__batch_opts batches = {.batch_size = c->batch.size,
                                       .batch_tokens = c->data.batch_tokens,
                                       .epochs = c->run.phases > 0 ? 0 : c->data.epochs,
                                       .seed = (uint64_t)c->run.seed,
                                       .shuffle = c->data.shuffle};
    rows.skip = c->data.skip;
    rows.limit = c->data.limit;
    rlhf_status st =
        rlhf__preference_source_open(&f->source, &rows, &batches, env->cast->policy->tok, err);
    if (st != RLHF_OK) return st;
    const struct rlhf__preferences *set = f->source.set;
    f->feed.texts_alone = rlhf__preferences_chats(set) == 0;
    if (rows.completions)
        RLHF_TRY(say_completions(f, err));
    else
        rlhf__logf(env->log, RLHF_LOG_INFO,
                   "data: %lld row%s with %lld responses in all; %lld %s cut, %lld left out (equal "
                   "tokens)",
                   (long long)rlhf__preferences_count(set),
                   rlhf__preferences_count(set) == 1 ? "" : "s",
                   (long long)rlhf__preferences_responses(set),
                   (long long)rlhf__preferences_truncated(set),
                   rlhf__preferences_truncated(set) == 1 ? "was" : "were",
                   (long long)rlhf__preferences_dropped(set));
    warn_of_cuts(f, set);
    if (rlhf__preferences_too_long(set) > 0)
        rlhf__logf(env->log, RLHF_LOG_WARN,
                   "data: %lld %s left out: their messages leave no room for a response in %d "
                   "tokens",
                   (long long)rlhf__preferences_too_long(set),
                   rlhf__preferences_too_long(set) == 1 ? "row was" : "rows were",
                   (int)f->max_tokens);
    rlhf__model_chat_note(env->cast->policy, rlhf__preferences_chats(set), &c->prompts, NULL,
                          env->log);
    rlhf__model_text_note(env->cast->policy, "texts",
                          rlhf__preferences_count(set) - rlhf__preferences_chats(set),
                          rows.prepend_bos ? RLHF__ENCODE_BOS : 0, 1, env->log);
    if (c->prompts.prepend_bos != RLHF__BOS_AUTO &&
        rlhf__preferences_chats(set) == rlhf__preferences_count(set))
        RLHF_TRY(rlhf__effect_refuse_typed(
            c, "prompts.prepend_bos",
            "all rows have messages, and their chat template says how they begin", err));
    if (c->run.phases > 0) return RLHF_OK;
    RLHF_TRY(rlhf__batches_count(&f->source.batches, &f->feed.phases, err));
    rlhf__feed_few_rows(env, rlhf__preferences_count(set), f->feed.phases);
    return RLHF_OK;
}

static rlhf_status open_held_out(struct preference_feed *f, struct rlhf__error *err) {
    const struct rlhf__data_config *c = &f->feed.env->config->data;
    if (!c->eval_path[0]) return RLHF_OK;
    struct rlhf__preference_opts rows = row_opts(f, &c->eval_path, "data.eval_path");
    rows.limit = c->eval_limit;
    return rlhf__preferences_open(&rows, f->feed.env->cast->policy->tok, &f->held_out, err);
}

rlhf_status rlhf__preference_feed_open(const struct rlhf__feed_env *env, struct rlhf__feed **out,
                                       struct rlhf__error *err) {
    struct preference_feed *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f) return RLHF__NOMEM(err, "out of memory for the rows");
    f->feed = (struct rlhf__feed){.ops = &preference_ops, .env = env};
    rlhf_status st = rlhf__feed_max_tokens(env, &f->max_tokens, err);
    if (st == RLHF_OK) st = open_rows(f, err);
    if (st == RLHF_OK) st = open_held_out(f, err);
    if (st != RLHF_OK) {
        preference_destroy(&f->feed);
        return st;
    }
    *out = &f->feed;
    return RLHF_OK;
}

const struct rlhf__preferences *rlhf__preference_feed_rows(const struct rlhf__feed *f) {
    return ((const struct preference_feed *)f)->source.set;
}

void rlhf__preference_feed_trains(struct rlhf__feed *f, struct rlhf__reward_training *r) {
    of(f)->reward_training = r;
}
