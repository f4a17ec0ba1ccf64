// text_feed.c: see feed.h.
#include "feed/feed.h"

#include "batch/text_source.h"
#include "config/effect.h"
#include "learn/evaluate.h"
#include "model/model_config.h"
#include "model/text_note.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text_feed {
    struct rlhf__feed feed;
    struct rlhf__text_source source;
    struct rlhf__dataset *held_out; // data.eval_path, or NULL
    int32_t max_tokens;
    int32_t labeled;           // 1: rows with a label, for a classifier
    char path[RLHF__PATH_CAP]; // of the rows, if they came with the program
};

static struct text_feed *of(struct rlhf__feed *f) { return (struct text_feed *)f; }

static struct rlhf__text_opts options(struct text_feed *f) {
    const struct rlhf__feed_env *env = f->feed.env;
    const struct rlhf__config *c = env->config;
    return (struct rlhf__text_opts){.path = rlhf__dirs_shared(env->dirs, c->data.path, f->path),
                                    .limit = c->data.limit,
                                    .skip = c->data.skip,
                                    .batch_size = c->batch.size,
                                    .batch_tokens = c->data.batch_tokens,
                                    .epochs = c->run.phases > 0 ? 0 : c->data.epochs,
                                    .split = c->data.long_rows == RLHF__DATA_SPLIT,
                                    .labeled = f->labeled,
                                    .assistant_only = c->data.assistant_only,
                                    .shuffle = c->data.shuffle,
                                    .seed = (uint64_t)c->run.seed,
                                    .loading = env->loading};
}

static rlhf_status text_next(struct rlhf__feed *f, uint64_t first, int64_t version,
                             struct rlhf__experience *x, struct rlhf__error *err) {
    (void)first;
    (void)version;
    rlhf_status st = rlhf__text_source_next(&of(f)->source, &x->rows, err);
    x->drawn = x->rows.n;
    return st;
}

static struct rlhf__order *text_order(struct rlhf__feed *f) { return &of(f)->source.batches.order; }

// ---- held-out rows ----

static int is_due(const struct text_feed *f, const struct rlhf__held_out *h) {
    if (!h->due || !f->held_out) return 0;
    rlhf__progress_note(f->feed.env->progress, "evaluation");
    return 1;
}

static rlhf_status evaluate_labels(struct rlhf__feed *feed, const struct rlhf__held_out *h,
                                   struct rlhf__error *err) {
    const struct text_feed *f = of(feed);
    struct rlhf__label_quality q;
    const struct rlhf__evaluating how = {.team = feed->env->cast->share.team};
    if (!is_due(f, h)) return RLHF_OK;
    rlhf_status st =
        rlhf__evaluate_labels(f->feed.env->cast->policy, f->held_out, f->max_tokens, &how, &q, err);
    if (st != RLHF_OK) return st;
    rlhf__metrics_set(h->metrics, "eval/accuracy", (double)q.correct / (double)q.rows);
    rlhf__metrics_set(h->metrics, "eval/loss", q.nats / (double)q.rows);
    rlhf__logf(f->feed.env->log, RLHF_LOG_INFO, "held-out accuracy %.4f after %lld phase%s",
               (double)q.correct / (double)q.rows, (long long)h->phase, h->phase == 1 ? "" : "s");
    return RLHF_OK;
}

static rlhf_status evaluate_text(struct rlhf__feed *feed, const struct rlhf__held_out *h,
                                 struct rlhf__error *err) {
    const struct text_feed *f = of(feed);
    struct rlhf__text_quality q;
    const struct rlhf__evaluating how = {.team = feed->env->cast->share.team};
    if (!is_due(f, h)) return RLHF_OK;
    RLHF_TRY(rlhf__evaluate_text(f->feed.env->cast->policy, f->held_out,
                                 feed->env->config->data.assistant_only, &how, &q, err));
    rlhf__metrics_set(h->metrics, "eval/bits_per_byte", rlhf__bits_per_byte(&q));
    rlhf__metrics_set(h->metrics, "eval/loss", q.nats / (double)q.tokens);
    rlhf__logf(f->feed.env->log, RLHF_LOG_INFO, "held-out bits per byte %.4f after %lld phase%s",
               rlhf__bits_per_byte(&q), (long long)h->phase, h->phase == 1 ? "" : "s");
    return RLHF_OK;
}

// Measure the first held-out rows, as both functions above would, on a memory plan.
static rlhf_status estimate_held_out(struct rlhf__feed *feed, struct rlhf__held_out_estimate *out,
                                     struct rlhf__error *err) {
    const struct text_feed *f = of(feed);
    const struct rlhf__model *policy = feed->env->cast->policy;
    const struct rlhf__evaluating how = {.most = RLHF__ESTIMATED_ROWS};
    struct rlhf__label_quality labels;
    struct rlhf__text_quality text;
    const int64_t rows = f->held_out ? rlhf__dataset_rows(f->held_out) : 0;
    *out = (struct rlhf__held_out_estimate){0};
    if (rows == 0) return RLHF_OK;
    out->share = (double)rlhf__evaluating_rows(&how, rows) / (double)rows;
    if (f->labeled)
        return rlhf__evaluate_labels(policy, f->held_out, f->max_tokens, &how, &labels, err);
    return rlhf__evaluate_text(policy, f->held_out, feed->env->config->data.assistant_only, &how,
                               &text, err);
}

// ---- life ----

static void text_destroy(struct rlhf__feed *f) {
    rlhf__text_source_finish(&of(f)->source);
    rlhf__dataset_close(of(f)->held_out);
    free(f);
}

static const struct rlhf__feed_ops text_ops = {.next = text_next,
                                               .largest = rlhf__feed_largest,
                                               .order = text_order,
                                               .evaluate = evaluate_text,
                                               .estimate_held_out = estimate_held_out,
                                               .destroy = text_destroy};
static const struct rlhf__feed_ops labeled_ops = {.next = text_next,
                                                  .largest = rlhf__feed_largest,
                                                  .order = text_order,
                                                  .evaluate = evaluate_labels,
                                                  .estimate_held_out = estimate_held_out,
                                                  .destroy = text_destroy};

rlhf_status rlhf__text_feed_open(const struct rlhf__feed_env *env, struct rlhf__labels *labels,
                                 struct rlhf__feed **out, struct rlhf__error *err) {
    struct text_feed *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f) return RLHF__NOMEM(err, "out of memory for the rows");
    f->feed = (struct rlhf__feed){.ops = labels ? &labeled_ops : &text_ops, .env = env};
    f->labeled = labels != NULL;
    struct rlhf__text_opts o = options(f);
    if (labels) {
        o.n_labels = labels->n;
        o.label_names = (const char *const *)labels->name;
    }
    rlhf_status st = rlhf__text_source_open(&f->source, &o, err);
    if (st == RLHF_OK && labels && labels->n == 0)
        st = rlhf__score_labels_numbered(f->source.n_labels, labels, err);
    if (st != RLHF_OK) {
        text_destroy(&f->feed);
        return st;
    }
    *out = &f->feed;
    return RLHF_OK;
}

static rlhf_status open_held_out(struct text_feed *f, struct rlhf__error *err) {
    const struct rlhf__feed_env *env = f->feed.env;
    const struct rlhf__data_config *c = &env->config->data;
    if (!c->eval_path[0]) return RLHF_OK;
    struct rlhf__dataset_opts d = {.paths = &c->eval_path,
                                   .n_paths = 1,
                                   .setting = "data.eval_path",
                                   .need = RLHF__FIELD_BIT(RLHF__FIELD_TEXT),
                                   .want = RLHF__FIELD_BIT(RLHF__FIELD_MESSAGES),
                                   .limit = c->eval_limit,
                                   .loading = env->loading};
    if (!f->labeled) d.want |= RLHF__FIELD_BIT(RLHF__FIELD_COMPLETION);
    if (f->labeled) {
        d.need |= RLHF__FIELD_BIT(RLHF__FIELD_LABEL);
        d.labels = (const char *const *)env->cast->policy->labels.name;
        d.n_labels = env->cast->policy->n_labels;
    }
    return rlhf__dataset_open(&d, &f->held_out, err);
}

// Fail if the loss covers only some of a row's tokens but the algorithm cannot leave tokens out.
static rlhf_status check_assistant_only(const struct text_feed *f, struct rlhf__error *err) {
    const struct rlhf__feed_env *env = f->feed.env;
    if (env->cast->plan.flags & RLHF_PLAN_LEAVES_OUT) return RLHF_OK;
    if (rlhf__dataset_completions(f->source.data))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: rows of a prompt and a completion are trained on the completion "
                          "alone, but %s cannot leave tokens of a row out of the loss",
                          env->config->data.path, env->cast->algo->plugin->file);
    if (!env->config->data.assistant_only) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INVALID,
        "data.assistant_only is true, but %s cannot leave tokens of a row out of the loss",
        env->cast->algo->plugin->file);
}

// Returns the number of threads for tokenizing. If run.threads is set, returns its value. Otherwise
// returns the number of the CPU backend's threads, or 0 (all cores) if the model is on another
// device.
static int32_t threads(const struct rlhf__feed_env *env) {
    const rlhf_compute *t = env->cast->policy->compute;
    if (env->config->run.threads > 0) return (int32_t)env->config->run.threads;
    return t->device == RLHF_DEVICE_CPU ? (int32_t)t->threads : 0;
}

// Write how many rows were left out because no token of their answer fits.
static void say_unreached(const struct text_feed *f, char *out, size_t cap) {
    const struct rlhf__token_rows *rows = &f->source.rows;
    snprintf(out, cap, "; %lld %s left out, first %s: the prompt is longer than %d tokens",
             (long long)rows->unreached, rows->unreached == 1 ? "was" : "were",
             rows->first_unreached, (int)f->max_tokens);
}

rlhf_status rlhf__text_feed_tokenize(struct rlhf__feed *feed, struct rlhf__error *err) {
    struct text_feed *f = of(feed);
    const struct rlhf__feed_env *env = feed->env;
    RLHF_TRY(check_assistant_only(f, err));
    struct rlhf__text_opts o = options(f);
    rlhf_status st = rlhf__feed_max_tokens(env, &f->max_tokens, err);
    o.max_len = f->max_tokens;
    o.threads = threads(env);
    if (st == RLHF_OK) st = open_held_out(f, err);
    if (st == RLHF_OK) st = rlhf__text_source_tokenize(&f->source, &o, env->cast->policy->tok, err);
    if (st == RLHF_OK && env->config->run.phases == 0)
        st = rlhf__text_source_batches(&f->source, &feed->phases, err);
    if (st != RLHF_OK) return st;
    const struct rlhf__token_rows *rows = &f->source.rows;
    if (rows->chats == 0 && env->config->data.assistant_only)
        RLHF_TRY(rlhf__effect_refuse_typed(
            env->config, "data.assistant_only",
            "no row has messages, and all tokens of a completion are learned from", err));
    feed->texts_alone = rows->chats == 0;
    char cut[600] = "";
    rlhf__model_chat_note(env->cast->policy, rows->chats, &env->config->prompts, NULL, env->log);
    rlhf__model_text_note(env->cast->policy, "texts", f->source.n_data - rows->chats,
                          f->source.encode_flags, 1, env->log);
    if (rows->truncated > 0)
        snprintf(cut, sizeof cut, "; %lld %s cut to %d tokens", (long long)rows->truncated,
                 rows->truncated == 1 ? "was" : "were", (int)f->max_tokens);
    if (rows->silent > 0)
        snprintf(cut + strlen(cut), sizeof cut - strlen(cut),
                 "; %lld %s left out: the assistant says nothing there", (long long)rows->silent,
                 rows->silent == 1 ? "was" : "were");
    if (rows->unreached > 0) say_unreached(f, cut + strlen(cut), sizeof cut - strlen(cut));
    if (env->config->run.phases == 0) rlhf__feed_few_rows(env, rows->n, feed->phases);
    rlhf__logf(env->log, RLHF_LOG_INFO, "data: %lld row%s, %lld sequence%s of %lld tokens in all%s",
               (long long)f->source.n_data, f->source.n_data == 1 ? "" : "s", (long long)rows->n,
               rows->n == 1 ? "" : "s", (long long)rows->total, cut);
    return RLHF_OK;
}
