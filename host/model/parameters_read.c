// parameters_read.c: parameters from weight files; see parameters.h.
#include "model/parameters.h"

#include "base/file.h"
#include "model/compute.h"
#include "model/quantised.h"
#include "model/surplus.h"
#include "weights/hf_dir.h"
#include "weights/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- matching and reading ----

// Finds a tensor by the parameter's name, with or without the base prefix.
static const struct rlhf__tensor *find(const struct rlhf__weights *w, const struct rlhf__model *m,
                                       const char *name) {
    const struct rlhf__tensor *t = rlhf__weights_find(w, name);
    const char *prefix = m->info.base_prefix;
    size_t n = prefix ? strlen(prefix) : 0;
    if (t || n == 0) return t;
    if (strncmp(name, prefix, n) == 0) return rlhf__weights_find(w, name + n);
    char longer[512];
    snprintf(longer, sizeof longer, "%s%s", prefix, name);
    return rlhf__weights_find(w, longer);
}

// Like find(), but in an adapter's file, where names have PEFT's prefix.
static const struct rlhf__tensor *find_peft(const struct rlhf__weights *w,
                                            const struct rlhf__model *m, const char *name) {
    char longer[512];
    const char *prefix = m->info.base_prefix;
    const size_t n = prefix ? strlen(prefix) : 0;
    snprintf(longer, sizeof longer, RLHF__PEFT_PREFIX "%s", name);
    const struct rlhf__tensor *t = rlhf__weights_find(w, longer);
    if (t || n == 0 || strncmp(name, prefix, n) != 0) return t;
    snprintf(longer, sizeof longer, RLHF__PEFT_PREFIX "%s", name + n);
    return rlhf__weights_find(w, longer);
}

// Checks that t has the shape of p, and numbers that can be read.
static rlhf_status check_tensor(const struct rlhf__tensor *t, const rlhf_param *p,
                                struct rlhf__error *err) {
    int same = t->ndim == p->ndim;
    for (int32_t d = 0; same && d < p->ndim; d++)
        same = t->shape[d] == p->shape[d];
    if (same) return rlhf__tensor_check_float(t, err);
    char found[128], wanted[128];
    return rlhf__fail(err, RLHF_E_INVALID, "%s: tensor %s has shape %s, the model needs %s",
                      t->file, t->name,
                      rlhf__tensor_shape_text(t->shape, t->ndim, found, sizeof found),
                      rlhf__tensor_shape_text(p->shape, p->ndim, wanted, sizeof wanted));
}

// Reads in chunks, so that only one chunk of the file is in memory.
static rlhf_status upload_chunks(const struct rlhf__model *m, const struct rlhf__tensor *t,
                                 rlhf_dev to, float *chunk, struct rlhf__error *err) {
    const rlhf_compute *c = m->compute;
    for (int64_t at = 0; at < t->count; at += RLHF__PARAM_CHUNK) {
        const int64_t n = t->count - at < RLHF__PARAM_CHUNK ? t->count - at : RLHF__PARAM_CHUNK;
        RLHF_TRY(rlhf__tensor_read_f32(t, at, n, chunk, err));
        const rlhf_dev part = rlhf_dev_at(to, (uint64_t)at * sizeof *chunk);
        const rlhf_status st = c->upload(c->ctx, part, chunk, (uint64_t)n * sizeof *chunk);
        if (st != RLHF_OK) return rlhf__compute_fail(rlhf__model_kernels(m), st, t->name, err);
    }
    return RLHF_OK;
}

// t has the shape of p.
static rlhf_status upload_tensor(const struct rlhf__model *m, const struct rlhf__tensor *t,
                                 const rlhf_param *p, struct rlhf__error *err) {
    rlhf_dev to;
    RLHF_TRY(rlhf__tensor_check_scales(t, err));
    if (p->format != RLHF_FORMAT_F32) return rlhf__quantised_fill(m, p, t, err);
    RLHF_TRY(rlhf__param_begin(m, p, &to, err));
    float *chunk = malloc(
        (size_t)(t->count < RLHF__PARAM_CHUNK ? t->count : RLHF__PARAM_CHUNK) * sizeof *chunk + 1);
    if (!chunk) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory reading %s", t->name);
    const rlhf_status st = upload_chunks(m, t, to, chunk, err);
    free(chunk);
    return st == RLHF_OK ? rlhf__param_end(m, p, err) : st;
}

static rlhf_status missing(const struct rlhf__model *m, const char *path, const char *name,
                           struct rlhf__error *err) {
    const char *why = strcmp(name, "lm_head.weight") == 0
                          ? ", since its config.json does not tie the LM head to the embedding"
                          : "";
    return rlhf__fail(err, RLHF_E_INVALID, "%s has no tensor %s, which the %s '%s' needs%s", path,
                      name, m->role, m->dir, why);
}

rlhf_status rlhf__params_read_file(struct rlhf__model *m, const char *path, int32_t group,
                                   struct rlhf__error *err) {
    struct rlhf__weights *w = NULL;
    rlhf_status st = rlhf__weights_open(path, &w, err);
    for (uint32_t i = 0; st == RLHF_OK && i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        if (group >= 0 && p->group != group) continue;
        const struct rlhf__tensor *t = find(w, m, p->name);
        if (!t && m->peft.rank > 0) t = find_peft(w, m, p->name);
        st = t ? check_tensor(t, p, err) : missing(m, path, p->name, err);
        if (t && st == RLHF_OK) st = upload_tensor(m, t, p, err);
    }
    rlhf__weights_close(w);
    return st;
}

rlhf_status rlhf__params_read_back(struct rlhf__model *m, const char *path,
                                   struct rlhf__error *err) {
    const int32_t own = m->peft.rank > 0 ? RLHF_PARAM_ADAPTER : RLHF_PARAM_TRUNK;
    RLHF_TRY(rlhf__params_read_file(m, path, own, err));
    return rlhf__params_read_file(m, path, RLHF_PARAM_SCORE, err);
}

// Returns 1 if a file contains a value head of this model's kind.
static int same_value_head(const struct rlhf__model *m, const char *path) {
    struct rlhf__weights *w = NULL;
    int same = rlhf__weights_open(path, &w, NULL) == RLHF_OK;
    for (uint32_t i = 0; same && i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        if (p->group != RLHF_PARAM_VALUE) continue;
        const struct rlhf__tensor *t = find(w, m, p->name);
        same = t && check_tensor(t, p, NULL) == RLHF_OK;
    }
    rlhf__weights_close(w);
    return same;
}

static rlhf_status read_value_head(struct rlhf__model *m, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/state/value_head.safetensors", m->peft.dir ? m->peft.dir : m->dir);
    if (!rlhf__params_has(m, RLHF__PART_VALUE)) return RLHF_OK;
    if (!rlhf__is_file(path) || !same_value_head(m, path))
        return rlhf__params_draw(m, RLHF_PARAM_VALUE, err);
    return rlhf__params_read_file(m, path, RLHF_PARAM_VALUE, err);
}

// ---- a model directory ----

// The tensor that each parameter is read from.
struct matches {
    const struct rlhf__weights *w;
    const struct rlhf__tensor **of; // [n_tensors]; NULL: drawn, or read from another file
    uint8_t *taken;                 // [tensors of w]
    const struct rlhf__tensor *embedding;
    const struct rlhf__weights *adapter; // NULL: no adapter, or a new one
    uint8_t *taken_there;                // [tensors of adapter]
    int32_t draw;                        // a score head is missing and may be drawn
};

static rlhf_status matches_init(struct matches *k, const struct rlhf__weights *w,
                                const struct rlhf__weights *adapter, const struct rlhf__model *m,
                                struct rlhf__error *err) {
    *k = (struct matches){.w = w, .adapter = adapter};
    k->of = calloc((size_t)m->n_tensors + 1, sizeof *k->of);
    k->taken = calloc(rlhf__weights_count(w) + 1, 1);
    k->taken_there = calloc((adapter ? rlhf__weights_count(adapter) : 0) + 1, 1);
    return k->of && k->taken && k->taken_there
               ? RLHF_OK
               : RLHF__NOMEM(err, "out of memory reading '%s'", m->dir);
}

static void matches_finish(struct matches *k) {
    free(k->of);
    free(k->taken);
    free(k->taken_there);
}

// Match parameter i with a tensor of the adapter's file, which has the matrices A and B and perhaps
// a score head. That score head takes precedence over the base's. *done is 1 if no other file needs
// to be searched for the parameter.
static rlhf_status match_adapter(struct matches *k, const struct rlhf__model *m, uint32_t i,
                                 int *done, struct rlhf__error *err) {
    const rlhf_param *p = &m->params[i];
    const struct rlhf__tensor *t = k->adapter ? find_peft(k->adapter, m, p->name) : NULL;
    *done = p->group == RLHF_PARAM_ADAPTER;
    if (!t && *done && k->adapter)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s/" RLHF__PEFT_WEIGHTS " has no tensor " RLHF__PEFT_PREFIX "%s",
                          m->peft.dir, p->name);
    if (!t) return RLHF_OK;
    *done = 1;
    if (check_tensor(t, p, err) != RLHF_OK)
        return rlhf__error_context(err, "the adapter '%s' is of another base than '%s'",
                                   m->peft.dir, m->dir);
    k->of[i] = t;
    k->taken_there[t - rlhf__weights_at(k->adapter, 0)] = 1;
    const struct rlhf__tensor *bases = k->w ? find(k->w, m, p->name) : NULL;
    if (bases) k->taken[bases - rlhf__weights_at(k->w, 0)] = 1;
    return RLHF_OK;
}

// Every tensor of an adapter must belong to a parameter.
static rlhf_status check_adapter(const struct matches *k, const struct rlhf__model *m,
                                 struct rlhf__error *err) {
    for (size_t i = 0; k->adapter && i < rlhf__weights_count(k->adapter); i++)
        if (!k->taken_there[i])
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s/" RLHF__PEFT_WEIGHTS
                              " holds the tensor %s, for which the %s '%s' "
                              "has no place",
                              m->peft.dir, rlhf__weights_at(k->adapter, i)->name, m->role, m->dir);
    return RLHF_OK;
}

// If the token embedding is missing, look for the LM head that is tied to it.
static const struct rlhf__tensor *find_tied(const struct matches *k, const struct rlhf__model *m,
                                            const rlhf_param *p) {
    if (!(p->flags & RLHF_PARAM_EMBED) || k->embedding) return NULL;
    for (uint32_t i = 0; i < m->n_tensors; i++)
        if (!strcmp(m->params[i].name, "lm_head.weight")) return NULL;
    return m->info.causal ? rlhf__weights_find(k->w, "lm_head.weight") : NULL;
}

static rlhf_status match(struct matches *k, const struct rlhf__model *m, uint32_t i, int draw_score,
                         struct rlhf__error *err) {
    const rlhf_param *p = &m->params[i];
    int done;
    RLHF_TRY(match_adapter(k, m, i, &done, err));
    if (done) return RLHF_OK;
    const struct rlhf__tensor *t = find(k->w, m, p->name);
    if (!t) t = find_tied(k, m, p);
    if (!t && p->group == RLHF_PARAM_SCORE && draw_score) {
        k->draw = 1;
        return RLHF_OK;
    }
    if (!t) return missing(m, m->dir, p->name, err);
    RLHF_TRY(check_tensor(t, p, err));
    // The first embedding is for tokens; a second one may be for positions.
    if ((p->flags & RLHF_PARAM_EMBED) && !k->embedding) k->embedding = t;
    k->of[i] = t;
    k->taken[t - rlhf__weights_at(k->w, 0)] = 1;
    return RLHF_OK;
}

static rlhf_status match_all(struct rlhf__model *m, struct matches *k, int draw_score,
                             struct rlhf__error *err) {
    for (uint32_t i = 0; i < m->n_tensors; i++)
        if (m->params[i].group != RLHF_PARAM_VALUE) RLHF_TRY(match(k, m, i, draw_score, err));
    // The tensors of a shared trunk were checked with the model that owns it.
    if (!m->base) RLHF_TRY(rlhf__surplus_check(m, k->w, k->taken, k->embedding, err));
    return check_adapter(k, m, err);
}

// Checks all names and shapes before reading any values.
static rlhf_status read_model(struct rlhf__model *m, struct matches *k, int draw_score,
                              struct rlhf__error *err) {
    RLHF_TRY(match_all(m, k, draw_score, err));
    for (uint32_t i = 0; i < m->n_tensors; i++)
        if (k->of[i]) RLHF_TRY(upload_tensor(m, k->of[i], &m->params[i], err));
    rlhf__quantised_note(m, k->of);
    return RLHF_OK;
}

// Opens the files that contain m's tensors and assigns the tensors to parameters.
static rlhf_status open_files(struct rlhf__model *m, struct rlhf__weights *w[2], struct matches *k,
                              struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/" RLHF__PEFT_WEIGHTS, m->peft.dir ? m->peft.dir : "");
    RLHF_TRY(rlhf__weights_open(m->dir, &w[0], err));
    if (m->peft.dir) RLHF_TRY(rlhf__weights_open(path, &w[1], err));
    return matches_init(k, w[0], w[1], m, err);
}

// If all parameters were read in bf16 or in f16, keep that dtype in the config, so that an export
// of a run's checkpoint has the dtype of the model from which the run began.
static rlhf_status note_dtype(struct rlhf__model *m, const struct matches *k,
                              struct rlhf__error *err) {
    int32_t dtype = -1;
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        if (!k->of[i]) continue;
        if (dtype >= 0 && k->of[i]->dtype != dtype) return RLHF_OK;
        dtype = k->of[i]->dtype;
    }
    if (dtype != RLHF__TENSOR_BF16 && dtype != RLHF__TENSOR_F16) return RLHF_OK;
    json_t *name = json_string(dtype == RLHF__TENSOR_BF16 ? "bfloat16" : "float16");
    return json_object_set_new(m->config, RLHF__HF_FIRST_DTYPE, name) == 0
               ? RLHF_OK
               : RLHF__NOMEM(err, "out of memory for config.json");
}

rlhf_status rlhf__params_check(struct rlhf__model *m, int draw_score, struct rlhf__error *err) {
    struct rlhf__weights *w[2] = {NULL, NULL};
    struct matches k = {0};
    rlhf_status st = open_files(m, w, &k, err);
    if (st == RLHF_OK) st = match_all(m, &k, draw_score, err);
    if (st == RLHF_OK) rlhf__quantised_note(m, k.of);
    rlhf__weights_close(w[1]);
    rlhf__weights_close(w[0]);
    matches_finish(&k);
    return st;
}

rlhf_status rlhf__params_read(struct rlhf__model *m, int draw_score, struct rlhf__error *err) {
    struct rlhf__weights *w[2] = {NULL, NULL};
    struct matches k = {0};
    rlhf_status st = open_files(m, w, &k, err);
    if (st == RLHF_OK) st = read_model(m, &k, draw_score, err);
    if (st == RLHF_OK && m->peft.rank == 0) st = note_dtype(m, &k, err);
    rlhf__weights_close(w[1]);
    rlhf__weights_close(w[0]);
    if (st == RLHF_OK && k.draw) st = rlhf__params_draw(m, RLHF_PARAM_SCORE, err);
    if (st == RLHF_OK && !m->peft.dir) st = rlhf__params_draw(m, RLHF_PARAM_ADAPTER, err);
    matches_finish(&k);
    return st == RLHF_OK ? read_value_head(m, err) : st;
}
