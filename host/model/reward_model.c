// reward_model.c: see reward_model.h.
#include "model/reward_model.h"

#include "base/file.h"
#include "gguf/model_text.h"
#include "model/adapter.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "tensors/gguf_file.h"
#include "weights/wrong_dir.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rlhf_status bad(const char *file, const char *what, struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID, "%s: %s", file, what);
}

rlhf_status rlhf__reward_head_read(const json_t *config, const char *file,
                                   struct rlhf__reward_head *out, int *found,
                                   struct rlhf__error *err) {
    *out = (struct rlhf__reward_head){RLHF_POOL_MEAN, 1, 0};
    const json_t *v = json_object_get(config, "rlhf_reward");
    *found = v != NULL;
    if (!v) return RLHF_OK;
    if (!json_is_object(v)) return bad(file, "rlhf_reward must be an object", err);
    const char *pooling = json_string_value(json_object_get(v, "pooling"));
    const json_t *gain = json_object_get(v, "gain"), *bias = json_object_get(v, "bias");
    if (!pooling || (strcmp(pooling, "mean") != 0 && strcmp(pooling, "last") != 0))
        return bad(file, "rlhf_reward.pooling must be one of mean, last", err);
    if (!json_is_number(gain) || !(json_number_value(gain) > 0))
        return bad(file, "rlhf_reward.gain must be a number above 0", err);
    if (!json_is_number(bias)) return bad(file, "rlhf_reward.bias must be a number", err);
    out->pooling = strcmp(pooling, "mean") == 0 ? RLHF_POOL_MEAN : RLHF_POOL_LAST;
    out->gain = json_number_value(gain);
    out->bias = json_number_value(bias);
    return RLHF_OK;
}

rlhf_status rlhf__reward_head_write(const struct rlhf__reward_head *h, json_t *config,
                                    struct rlhf__error *err) {
    json_t *v =
        json_pack("{s:s, s:f, s:f}", "pooling", h->pooling == RLHF_POOL_LAST ? "last" : "mean",
                  "gain", h->gain, "bias", h->bias);
    if (v && json_object_set_new(config, "rlhf_reward", v) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for config.json");
}

void rlhf__reward_pool(const struct rlhf__reward_head *h, uint32_t n, const int32_t *offset,
                       const int32_t *prompt_len, const float *raw, float *seq) {
    for (uint32_t i = 0; i < n; i++) {
        int32_t begin = offset[i] + prompt_len[i], end = offset[i + 1];
        double sum = 0;
        if (begin < end && h->pooling == RLHF_POOL_LAST) begin = end - 1;
        for (int32_t k = begin; k < end; k++)
            sum += (double)raw[k];
        double pooled = begin < end ? sum / (double)(end - begin) : 0;
        seq[i] = (float)(h->gain * pooled + h->bias);
    }
}

void rlhf__reward_pool_bwd(const struct rlhf__reward_head *h, uint32_t n, const int32_t *offset,
                           const int32_t *prompt_len, const float *d_seq, float *d_raw) {
    for (uint32_t i = 0; i < n; i++) {
        int32_t begin = offset[i] + prompt_len[i], end = offset[i + 1];
        if (begin >= end) continue;
        if (h->pooling == RLHF_POOL_LAST) begin = end - 1;
        double d = h->gain * (double)d_seq[i] / (double)(end - begin);
        for (int32_t k = begin; k < end; k++)
            d_raw[k] += (float)d;
    }
}

int rlhf__reward_fit(struct rlhf__reward_head *h, const float *raw, size_t n) {
    double sum = 0, square = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)raw[i];
    double mean = n ? sum / (double)n : 0;
    for (size_t i = 0; i < n; i++)
        square += ((double)raw[i] - mean) * ((double)raw[i] - mean);
    double sd = n ? sqrt(square / (double)n) : 0;
    // Rounding can make equal scores differ from their mean. Such a difference does not count as
    // spread.
    if (n < 2 || !isfinite(sd) || !(sd > 1e-7 * (1 + fabs(mean)))) return 0;
    h->gain = 1 / sd;
    h->bias = -mean / sd;
    return 1;
}

// ---- BOS at the start of a row ----

// Returns how the start of a row must change for this tokenizer: 1 = add a BOS, -1 = remove the
// BOS, 0 = no change. A prompt that is only a BOS keeps the BOS, because a response must follow
// some token.
static int32_t front(const struct rlhf__tokenizer *tok, const int32_t *row, int32_t prompt_len) {
    int32_t bos = rlhf__tokenizer_info(tok)->bos;
    int has = prompt_len > 0 && row[0] == bos, wants = rlhf__tokenizer_has_bos(tok);
    if (bos < 0 || has == wants) return 0;
    return wants ? 1 : -(prompt_len > 1);
}

rlhf_status rlhf__reward_rows(const struct rlhf__tokenizer *tok, uint32_t n, const int32_t *ids,
                              const int32_t *offset, const int32_t *prompt_len,
                              struct rlhf__fronted *out, struct rlhf__error *err) {
    int64_t total = 0;
    int changed = 0;
    *out = (struct rlhf__fronted){ids, offset, prompt_len, NULL};
    for (uint32_t i = 0; i < n; i++) {
        int32_t more = front(tok, ids + offset[i], prompt_len[i]);
        changed |= more != 0;
        total += (int64_t)(offset[i + 1] - offset[i]) + more;
    }
    if (!changed) return RLHF_OK;
    if (total > INT32_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "%lld tokens are too many for one batch",
                          (long long)total);
    int32_t *own = malloc(((size_t)total + 2 * (size_t)n + 1) * sizeof *own);
    if (!own) return RLHF__NOMEM(err, "out of memory for the rows of a reward model");
    int32_t *to = own, *end = own + total, *len = end + n + 1;
    out->own = own;
    out->ids = own;
    out->offset = end;
    out->prompt_len = len;
    for (uint32_t i = 0; i < n; i++) {
        const int32_t *row = ids + offset[i];
        int32_t more = front(tok, row, prompt_len[i]);
        int32_t kept = offset[i + 1] - offset[i] - (more < 0);
        end[i] = (int32_t)(to - own);
        len[i] = prompt_len[i] + more;
        if (more > 0) *to++ = rlhf__tokenizer_info(tok)->bos;
        memcpy(to, row + (more < 0), (size_t)kept * sizeof *to);
        to += kept;
    }
    end[n] = (int32_t)total;
    return RLHF_OK;
}

void rlhf__fronted_finish(struct rlhf__fronted *f) {
    free(f->own);
    *f = (struct rlhf__fronted){0};
}

// Copies apart[], the token rewards of f's rows, to token[], which has an entry for each token of
// the original rows. A token that was added in f is left out. A token that was removed in f gets 0.
static void tokens_of(const struct rlhf__fronted *f, uint32_t n, const int32_t *offset,
                      const float *apart, float *token) {
    for (uint32_t i = 0; i < n; i++) {
        int32_t len = offset[i + 1] - offset[i], own = f->offset[i + 1] - f->offset[i];
        int32_t shared = len < own ? len : own; // both rows have the same end
        for (int32_t k = 0; k < len - shared; k++)
            token[offset[i] + k] = 0;
        memcpy(token + offset[i + 1] - shared, apart + f->offset[i + 1] - shared,
               (size_t)shared * sizeof *token);
    }
}

// ---- the model ----

int rlhf__reward_model_is(const json_t *config) {
    struct rlhf__labels labels = {0};
    int one = rlhf__model_is_classifier(config) &&
              rlhf__hf_labels(config, "", &labels, NULL) == RLHF_OK && labels.n == 1;
    rlhf__labels_finish(&labels);
    return one;
}

static rlhf_status check_config(const struct rlhf__reward_model_spec *spec,
                                struct rlhf__error *err) {
    json_t *config = NULL;
    const char *dir = *spec->dir ? spec->dir : spec->adapter.dir;
    RLHF_TRY(rlhf__adapter_config_of(spec->dir, &spec->adapter, &config, err));
    const int is = rlhf__reward_model_is(config);
    json_decref(config);
    if (is) return RLHF_OK;
    if (rlhf__gguf_is(dir)) return rlhf__wrong_head(dir, "reward model", err);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "%s/config.json: the model is not a reward model (architectures must be a "
                      "...ForSequenceClassification with num_labels 1)",
                      dir);
}

static rlhf_status check(const struct rlhf__reward_model_spec *spec, const struct rlhf__model *m,
                         struct rlhf__error *err) {
    if (!(m->info.heads & RLHF_HEAD_TOKEN_SCORE))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the reward model '%s' (%s) gives no score a token", m->dir,
                          m->instance->plugin->file);
    if (spec->policy && !rlhf__tokenizer_equal(m->tok, spec->policy))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the vocabulary of the reward model '%s' is not the policy's", m->dir);
    if (!rlhf__tokenizer_only_bos(m->tok))
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the tokenizer of the reward model '%s' puts more than a bos token "
                          "around a text, which a run's rows do not have",
                          m->dir);
    if (spec->longest > m->info.n_ctx)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "the context of the reward model '%s' is %d tokens; prompts and "
                          "responses of this run have up to %d",
                          m->dir, m->info.n_ctx, spec->longest);
    return RLHF_OK;
}

rlhf_status rlhf__reward_model_open(const struct rlhf__model_env *env,
                                    const struct rlhf__reward_model_spec *spec,
                                    struct rlhf__reward_model **out, struct rlhf__error *err) {
    *out = NULL;
    struct rlhf__reward_model *rm = calloc(1, sizeof *rm);
    if (!rm) return RLHF__NOMEM(err, "out of memory opening a reward model");
    struct rlhf__model_spec m = {.dir = spec->dir,
                                 .adapter = spec->adapter,
                                 .role = "reward model",
                                 .trainable = spec->trainable,
                                 .n_labels = -1,
                                 .pooling = RLHF_POOL_LAST, // for rows without a response
                                 .frozen = !spec->trainable};
    char file[4400];
    int found;
    rlhf_status st = check_config(spec, err);
    if (st == RLHF_OK) st = rlhf__model_open(env, &m, &rm->model, err);
    if (st == RLHF_OK) st = check(spec, rm->model, err);
    if (st == RLHF_OK) rlhf__path_in(file, sizeof file, rm->model->dir, "config.json");
    if (st == RLHF_OK) st = rlhf__reward_head_read(rm->model->config, file, &rm->head, &found, err);
    // transformers and TRL train the score of the last token.
    if (st == RLHF_OK && !found) rm->head.pooling = RLHF_POOL_LAST;
    if (st != RLHF_OK) {
        rlhf__reward_model_close(rm);
        return st;
    }
    *out = rm;
    return RLHF_OK;
}

void rlhf__reward_model_close(struct rlhf__reward_model *rm) {
    if (!rm) return;
    rlhf__model_close(rm->model);
    free(rm);
}

// ---- scoring ----

// The arrays of a microbatch, which consists of the rows [from, to) of the caller's rows.
struct rows {
    uint32_t from, to;
    const int32_t *ids, *offset, *prompt_len;
};

static int32_t length(const struct rows *r, uint32_t i) { return r->offset[i + 1] - r->offset[i]; }

static rlhf_status forward(const struct rlhf__reward_model *rm, const struct rows *r,
                           const struct rlhf__reward_head *head, int32_t *offset, float *raw,
                           float *last, float *seq, struct rlhf__error *err) {
    rlhf_dist dist = RLHF_DIST_WHOLE;
    rlhf_forward f = {.size = sizeof f, .heads = RLHF_HEAD_TOKEN_SCORE, .dist = &dist};
    uint32_t n = r->to - r->from;
    const int32_t *prompt_len = r->prompt_len + r->from;
    for (uint32_t i = 0; i <= n; i++)
        offset[i] = r->offset[r->from + i] - r->offset[r->from];
    for (uint32_t i = 0; i < n; i++)
        if (prompt_len[i] >= offset[i + 1] - offset[i]) f.heads |= RLHF_HEAD_SCORE;
    rlhf_batch b = {.size = sizeof b,
                    .n = n,
                    .total = (uint32_t)offset[n],
                    .ids = r->ids + r->offset[r->from],
                    .offset = offset,
                    .prompt_len = prompt_len};
    rlhf_heads h = {.size = sizeof h, .token_score = raw, .score = last};
    memset(raw, 0, (size_t)b.total * sizeof *raw);
    RLHF_TRY(rlhf__model_forward(rm->model, &b, &f, &h, err));
    rlhf__reward_pool(head, n, offset, prompt_len, raw, seq + r->from);
    for (uint32_t i = 0; i < n; i++)
        if (prompt_len[i] >= offset[i + 1] - offset[i])
            seq[r->from + i] = (float)(head->gain * (double)last[i] + head->bias);
    return RLHF_OK;
}

// Sets token[] to gain * raw + bias for the rows' response tokens, and to 0 for prompt tokens.
static void put_tokens(const struct rows *r, const struct rlhf__reward_head *head, const float *raw,
                       float *token) {
    int32_t base = r->offset[r->from];
    for (uint32_t i = r->from; i < r->to; i++)
        for (int32_t k = 0; k < length(r, i); k++) {
            int32_t at = r->offset[i] + k;
            double v = head->gain * (double)raw[at - base] + head->bias;
            token[at] = k >= r->prompt_len[i] ? (float)v : 0;
        }
}

static rlhf_status score_rows(const struct rlhf__reward_model *rm, uint32_t n, struct rows r,
                              const struct rlhf__reward_head *head, float *seq, float *token,
                              struct rlhf__error *err) {
    int32_t n_ctx = rm->model->info.n_ctx;
    uint32_t most = RLHF__MICROBATCH_TOKENS > n_ctx ? RLHF__MICROBATCH_TOKENS : (uint32_t)n_ctx;
    int32_t *offset = calloc((size_t)most + 1, sizeof *offset); // each row has at least one token
    float *raw = calloc(2 * (size_t)most, sizeof *raw);
    rlhf_status st = RLHF_OK;
    if (!offset || !raw) st = RLHF__NOMEM(err, "out of memory for the reward model");
    while (st == RLHF_OK && r.to < n) {
        int32_t tokens = length(&r, r.from = r.to++);
        while (r.to < n && tokens + length(&r, r.to) <= RLHF__MICROBATCH_TOKENS)
            tokens += length(&r, r.to++);
        for (uint32_t i = r.from; st == RLHF_OK && i < r.to; i++)
            if (length(&r, i) > n_ctx)
                st = rlhf__fail(err, RLHF_E_INVALID,
                                "a row of %d tokens is longer than the context of the reward model "
                                "'%s', %d",
                                length(&r, i), rm->model->dir, n_ctx);
        if (st == RLHF_OK) st = forward(rm, &r, head, offset, raw, raw + most, seq, err);
        if (st == RLHF_OK && token) put_tokens(&r, head, raw, token);
    }
    free(offset);
    free(raw);
    return st;
}

// Scores the caller's rows after adding a BOS or removing it where needed.
static rlhf_status score(const struct rlhf__reward_model *rm, uint32_t n, struct rows r,
                         const struct rlhf__reward_head *head, float *seq, float *token,
                         struct rlhf__error *err) {
    struct rlhf__fronted f;
    rlhf_status st = rlhf__reward_rows(rm->model->tok, n, r.ids, r.offset, r.prompt_len, &f, err);
    if (st != RLHF_OK) return st;
    struct rows own = {.ids = f.ids, .offset = f.offset, .prompt_len = f.prompt_len};
    float *apart = token; // the token rewards of the changed rows
    if (token && f.own) apart = calloc((size_t)f.offset[n] + 1, sizeof *apart);
    st = token && !apart ? RLHF__NOMEM(err, "out of memory for the reward model")
                         : score_rows(rm, n, own, head, seq, apart, err);
    if (st == RLHF_OK && apart != token) tokens_of(&f, n, r.offset, apart, token);
    if (apart != token) free(apart);
    rlhf__fronted_finish(&f);
    return st;
}

rlhf_status rlhf__reward_model_score(const struct rlhf__reward_model *rm, uint32_t n,
                                     const int32_t *ids, const int32_t *offset,
                                     const int32_t *prompt_len, int32_t pooling, float *seq,
                                     float *token, struct rlhf__error *err) {
    struct rlhf__reward_head head = rm->head;
    if (pooling) head.pooling = pooling;
    struct rows r = {.ids = ids, .offset = offset, .prompt_len = prompt_len};
    return score(rm, n, r, &head, seq, token, err);
}

rlhf_status rlhf__reward_model_calibrate(struct rlhf__reward_model *rm, uint32_t n,
                                         const int32_t *ids, const int32_t *offset,
                                         const int32_t *prompt_len, int *fitted,
                                         struct rlhf__error *err) {
    struct rlhf__reward_head plain = {rm->head.pooling, 1, 0};
    struct rows r = {.ids = ids, .offset = offset, .prompt_len = prompt_len};
    *fitted = 0;
    float *raw = calloc((size_t)n + 1, sizeof *raw);
    if (!raw) return RLHF__NOMEM(err, "out of memory for %u samples", n);
    rlhf_status st = score(rm, n, r, &plain, raw, NULL, err);
    if (st == RLHF_OK) *fitted = rlhf__reward_fit(&rm->head, raw, n);
    free(raw);
    return st;
}

// ---- its directory ----

rlhf_status rlhf__reward_model_config(struct rlhf__model *m, const struct rlhf__reward_head *h,
                                      struct rlhf__error *err) {
    char *name[] = {"REWARD"};
    struct rlhf__labels one = {.name = name, .n = 1};
    rlhf_status st = rlhf__classifier_config(m, &one, err);
    json_object_del(m->config, "rlhf_pooling"); // rlhf_reward has the pooling
    return st == RLHF_OK ? rlhf__reward_head_write(h, m->config, err) : st;
}

rlhf_status rlhf__reward_model_write(const struct rlhf__reward_model *rm,
                                     const struct rlhf__folder *dir, struct rlhf__error *err) {
    rlhf_status st = rlhf__reward_model_config(rm->model, &rm->head, err);
    if (st == RLHF_OK) st = rlhf__hf_set_dtype(rm->model->config, RLHF_F32, err);
    if (st == RLHF_OK) st = rlhf__hf_config_write(dir, rm->model->config, err);
    if (st == RLHF_OK) st = rlhf__model_copy_text(rm->model->text_dir, dir, err);
    if (st == RLHF_OK && rm->model->peft.rank > 0)
        st = rlhf__adapter_write(rm->model, RLHF_F32, 0, dir, err);
    else if (st == RLHF_OK)
        st = rlhf__params_write(rm->model, RLHF__PART_MODEL, RLHF_F32, dir, "model.safetensors",
                                err);
    return st == RLHF_OK ? rlhf__folder_sync(dir, ".", err) : st;
}
