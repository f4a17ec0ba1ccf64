// setup_supervised.c: rlhf__setup_supervised of setup.h: rows of text, with or without labels.
#include "run/setup.h"

#include "model/classifier_config.h"

#include "model/reward_model.h"
#include <stdio.h>

static struct rlhf__text_opts text_opts(const struct rlhf__run *t) {
    const struct rlhf__config *c = t->config;
    struct rlhf__text_opts o = {.path = c->data.path,
                                .limit = c->data.limit,
                                .skip = c->data.skip,
                                .batch_size = c->batch.size,
                                .batch_tokens = c->data.batch_tokens,
                                .epochs = c->run.phases > 0 ? 0 : c->data.epochs,
                                .split = c->data.long_rows == RLHF__DATA_SPLIT,
                                .labelled = t->cast.plan.source == RLHF_SOURCE_LABELLED,
                                .shuffle = c->data.shuffle,
                                .threads = (int32_t)c->run.threads,
                                .seed = (uint64_t)c->run.seed,
                                .loading = &t->loading};
    return o;
}

// The names in score.labels, else those of a start that is a classifier; n = 0: neither.
static rlhf_status name_labels(const struct rlhf__run *t, struct rlhf__labels *labels,
                               struct rlhf__error *err) {
    char dir[4200];
    json_t *config = NULL;
    rlhf_status st = rlhf__score_labels(t->config->score.labels, labels, err);
    if (st != RLHF_OK || labels->n > 0) return st;
    rlhf__setup_policy_dir(t, dir);
    st = rlhf__hf_config_read(dir, &config, err);
    if (st == RLHF_OK && rlhf__model_is_classifier(config) && !rlhf__reward_model_is(config))
        st = rlhf__hf_labels(config, dir, labels, err);
    json_decref(config);
    return st;
}

static rlhf_status open_rows(struct rlhf__run *t, struct rlhf__labels *labels,
                             struct rlhf__error *err) {
    struct rlhf__text_opts o = text_opts(t);
    rlhf_status st = RLHF_OK;
    if (o.labelled) st = name_labels(t, labels, err);
    if (st != RLHF_OK) return st;
    o.n_labels = labels->n;
    o.label_names = (const char *const *)labels->name;
    st = rlhf__text_source_open(&t->source, &o, err);
    if (st == RLHF_OK && o.labelled && labels->n == 0)
        st = rlhf__score_labels_numbered(t->source.n_labels, labels, err);
    return st;
}

static rlhf_status open_held_out(struct rlhf__run *t, struct rlhf__error *err) {
    const struct rlhf__data_config *c = &t->config->data;
    if (!c->eval_path[0]) return RLHF_OK;
    struct rlhf__dataset_opts d = {.paths = &c->eval_path,
                                   .n_paths = 1,
                                   .setting = "data.eval_path",
                                   .need = RLHF__FIELD_BIT(RLHF__FIELD_TEXT),
                                   .limit = c->eval_limit,
                                   .loading = &t->loading};
    if (t->cast.plan.source == RLHF_SOURCE_LABELLED) {
        d.need |= RLHF__FIELD_BIT(RLHF__FIELD_LABEL);
        d.labels = (const char *const *)t->cast.policy->labels.name;
        d.n_labels = t->cast.policy->n_labels;
    }
    return rlhf__dataset_open(&d, &t->held_out, err);
}

rlhf_status rlhf__setup_max_tokens(struct rlhf__run *t, struct rlhf__error *err) {
    int64_t max = t->config->data.max_tokens;
    if (max > t->cast.policy->info.n_ctx)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "data.max_tokens is %lld, but the context of '%s' is %d tokens",
                          (long long)max, t->cast.policy->dir, t->cast.policy->info.n_ctx);
    t->max_tokens = max > 0 ? (int32_t)max : t->cast.policy->info.n_ctx;
    return RLHF_OK;
}

rlhf_status rlhf__setup_supervised(struct rlhf__run *t, struct rlhf__error *err) {
    struct rlhf__labels labels = {0};
    rlhf_status st = open_rows(t, &labels, err);
    struct rlhf__setup_head head = {.pooling = t->config->score.pooling};
    if (t->cast.plan.heads & RLHF_HEAD_SCORE) head.n_labels = labels.n;
    if (st == RLHF_OK) st = rlhf__setup_policy(t, &head, err);
    // A classifier that is trained further reads texts as it did; a fresh one begins them with bos.
    if (st == RLHF_OK && head.n_labels > 0 && !rlhf__model_is_classifier(t->cast.policy->config))
        rlhf__tokenizer_set_bos(t->cast.policy->tok, 1);
    if (st == RLHF_OK && head.n_labels > 0)
        st = rlhf__classifier_config(t->cast.policy, &labels, err);
    rlhf__labels_finish(&labels);
    if (st != RLHF_OK) return st;
    struct rlhf__text_opts o = text_opts(t);
    st = rlhf__setup_max_tokens(t, err);
    o.max_len = t->max_tokens;
    if (st == RLHF_OK) st = open_held_out(t, err);
    if (st == RLHF_OK) st = rlhf__text_source_tokenise(&t->source, &o, t->cast.policy->tok, err);
    if (st != RLHF_OK) return st;
    t->count.phases = t->config->run.phases;
    if (t->count.phases == 0) st = rlhf__text_source_batches(&t->source, &t->count.phases, err);
    const struct rlhf__token_rows *rows = &t->source.rows;
    char cut[80] = "";
    if (rows->truncated > 0)
        snprintf(cut, sizeof cut, "; %lld %s cut to %d tokens", (long long)rows->truncated,
                 rows->truncated == 1 ? "was" : "were", (int)t->max_tokens);
    rlhf__logf(t->report.log, RLHF_LOG_INFO,
               "data: %lld rows, %lld sequences of %lld tokens in all%s",
               (long long)t->source.n_data, (long long)rows->n, (long long)rows->total, cut);
    return st == RLHF_OK ? rlhf__setup_check_plan(t, t->source.n_labels, err) : st;
}
