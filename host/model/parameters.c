// parameters.c: see parameters.h. Drawing is in draw.c.
#include "model/parameters.h"

#include "base/file.h"
#include "model/compute.h"
#include "weights/safetensors.h"
#include "weights/safetensors_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 18 }; // floats that are read or written at once, 1 MiB

int64_t rlhf__param_count(const rlhf_param *p) {
    int64_t n = 1;
    for (int32_t d = 0; d < p->ndim; d++)
        n *= p->shape[d];
    return n;
}

rlhf_status rlhf__param_check(const struct rlhf__model *m, const rlhf_param *p,
                              struct rlhf__error *err) {
    if (p->value) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_INTERNAL,
        "the %s '%s' was opened as frozen: the values of %s were released once packed", m->role,
        m->dir, p->name);
}

// A tensor by the parameter's name, with and without the base prefix.
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

static rlhf_status check_shape(const struct rlhf__tensor *t, const rlhf_param *p,
                               struct rlhf__error *err) {
    int same = t->ndim == p->ndim;
    for (int32_t d = 0; same && d < p->ndim; d++)
        same = t->shape[d] == p->shape[d];
    if (same) return RLHF_OK;
    char found[128], wanted[128];
    return rlhf__fail(err, RLHF_E_INVALID, "%s: tensor %s has shape %s, the model needs %s",
                      t->file, t->name,
                      rlhf__tensor_shape_text(t->shape, t->ndim, found, sizeof found),
                      rlhf__tensor_shape_text(p->shape, p->ndim, wanted, sizeof wanted));
}

// Through a chunk of floats: of the file no more than that is in memory at a time.
static rlhf_status upload_chunks(const rlhf_compute *c, const struct rlhf__tensor *t, rlhf_dev to,
                                 float *chunk, struct rlhf__error *err) {
    for (int64_t at = 0; at < t->count; at += CHUNK) {
        const int64_t n = t->count - at < CHUNK ? t->count - at : CHUNK;
        RLHF_TRY(rlhf__tensor_read_f32(t, at, n, chunk, err));
        const rlhf_dev part = rlhf_dev_at(to, (uint64_t)at * sizeof *chunk);
        const rlhf_status st = c->upload(c->ctx, part, chunk, (uint64_t)n * sizeof *chunk);
        if (st != RLHF_OK) return rlhf__compute_fail(c, st, t->name, err);
    }
    return RLHF_OK;
}

static rlhf_status upload_tensor(const struct rlhf__model *m, const struct rlhf__tensor *t,
                                 const rlhf_param *p, struct rlhf__error *err) {
    rlhf_status st = check_shape(t, p, err);
    if (st == RLHF_OK) st = rlhf__param_check(m, p, err);
    if (st != RLHF_OK) return st;
    float *chunk = malloc((size_t)(t->count < CHUNK ? t->count : CHUNK) * sizeof *chunk + 1);
    if (!chunk) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory reading %s", t->name);
    st = upload_chunks(m->compute, t, p->value, chunk, err);
    free(chunk);
    return st;
}

static rlhf_status missing(const struct rlhf__model *m, const char *path, const char *name,
                           struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_INVALID, "%s has no tensor %s, which the %s '%s' needs", path,
                      name, m->role, m->dir);
}

rlhf_status rlhf__params_read_file(struct rlhf__model *m, const char *path, int32_t group,
                                   struct rlhf__error *err) {
    struct rlhf__weights *w = NULL;
    rlhf_status st = rlhf__weights_open(path, &w, err);
    for (uint32_t i = 0; st == RLHF_OK && i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        if (group >= 0 && p->group != group) continue;
        const struct rlhf__tensor *t = find(w, m, p->name);
        st = t ? upload_tensor(m, t, p, err) : missing(m, path, p->name, err);
    }
    rlhf__weights_close(w);
    return st;
}

// Whether a file holds a value head of the kind that this model has.
static int same_value_head(const struct rlhf__model *m, const char *path) {
    struct rlhf__weights *w = NULL;
    int same = rlhf__weights_open(path, &w, NULL) == RLHF_OK;
    for (uint32_t i = 0; same && i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        if (p->group != RLHF_PARAM_VALUE) continue;
        const struct rlhf__tensor *t = find(w, m, p->name);
        same = t && check_shape(t, p, NULL) == RLHF_OK;
    }
    rlhf__weights_close(w);
    return same;
}

static rlhf_status read_value_head(struct rlhf__model *m, struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/state/value_head.safetensors", m->dir);
    if (!rlhf__params_has(m, RLHF__PART_VALUE)) return RLHF_OK;
    if (!rlhf__is_file(path) || !same_value_head(m, path))
        return rlhf__params_draw(m, RLHF_PARAM_VALUE, err);
    return rlhf__params_read_file(m, path, RLHF_PARAM_VALUE, err);
}

rlhf_status rlhf__params_read(struct rlhf__model *m, int draw_score, struct rlhf__error *err) {
    struct rlhf__weights *w = NULL;
    rlhf_status st = rlhf__weights_open(m->dir, &w, err);
    int draw = 0;
    for (uint32_t i = 0; st == RLHF_OK && i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        if (p->group == RLHF_PARAM_VALUE) continue;
        const struct rlhf__tensor *t = find(w, m, p->name);
        if (t)
            st = upload_tensor(m, t, p, err);
        else if (p->group == RLHF_PARAM_SCORE && draw_score)
            draw = 1;
        else
            st = missing(m, m->dir, p->name, err);
    }
    rlhf__weights_close(w);
    if (st == RLHF_OK && draw) st = rlhf__params_draw(m, RLHF_PARAM_SCORE, err);
    return st == RLHF_OK ? read_value_head(m, err) : st;
}

rlhf_status rlhf__params_copy(struct rlhf__model *dst, const struct rlhf__model *src,
                              struct rlhf__error *err) {
    const rlhf_compute *c = dst->compute;
    for (uint32_t i = 0; i < dst->n_tensors; i++) {
        const rlhf_param *p = &dst->params[i], *q = NULL;
        for (uint32_t k = 0; k < src->n_tensors && !q; k++)
            if (strcmp(src->params[k].name, p->name) == 0) q = &src->params[k];
        if (!q && p->group != RLHF_PARAM_TRUNK) continue;
        if (!q || rlhf__param_count(q) != rlhf__param_count(p))
            return rlhf__fail(err, RLHF_E_INVALID, "the %s and the %s differ in parameter %s",
                              dst->role, src->role, p->name);
        rlhf_status st = rlhf__param_check(dst, p, err);
        if (st == RLHF_OK) st = rlhf__param_check(src, q, err);
        if (st != RLHF_OK) return st;
        st = c->copy(c->ctx, p->value, q->value, (uint64_t)rlhf__param_count(p) * 4);
        if (st != RLHF_OK) return rlhf__compute_fail(c, st, p->name, err);
    }
    return rlhf__model_refresh(dst, err);
}

static int in_part(const rlhf_param *p, int32_t part) {
    return (p->group == RLHF_PARAM_VALUE) == (part == RLHF__PART_VALUE);
}

int rlhf__params_has(const struct rlhf__model *m, int32_t part) {
    for (uint32_t i = 0; i < m->n_tensors; i++)
        if (in_part(&m->params[i], part)) return 1;
    return 0;
}

static rlhf_status write_chunks(const rlhf_compute *c, const rlhf_param *p, float *chunk,
                                struct rlhf__weights_writer *w, struct rlhf__error *err) {
    const int64_t count = rlhf__param_count(p);
    for (int64_t at = 0; at < count; at += CHUNK) {
        const size_t n = (size_t)(count - at < CHUNK ? count - at : CHUNK);
        const rlhf_dev part = rlhf_dev_at(p->value, (uint64_t)at * sizeof *chunk);
        const rlhf_status st = c->download(c->ctx, chunk, part, n * sizeof *chunk);
        if (st != RLHF_OK) return rlhf__compute_fail(c, st, p->name, err);
        RLHF_TRY(rlhf__weights_put_f32(w, chunk, n, err));
    }
    return RLHF_OK;
}

static rlhf_status write_data(const struct rlhf__model *m, int32_t part,
                              struct rlhf__weights_writer *w, struct rlhf__error *err) {
    float *chunk = malloc(CHUNK * sizeof *chunk);
    if (!chunk) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory writing parameters");
    rlhf_status st = RLHF_OK;
    for (uint32_t i = 0; st == RLHF_OK && i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        if (!in_part(p, part)) continue;
        st = rlhf__param_check(m, p, err);
        if (st == RLHF_OK) st = write_chunks(m->compute, p, chunk, w, err);
    }
    free(chunk);
    return st;
}

rlhf_status rlhf__params_write(const struct rlhf__model *m, int32_t part, int32_t dtype,
                               const struct rlhf__folder *in, const char *name,
                               struct rlhf__error *err) {
    struct rlhf__tensor_spec *specs = calloc(m->n_tensors ? m->n_tensors : 1, sizeof *specs);
    if (!specs) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory writing %s", name);
    size_t n = 0;
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        if (!in_part(p, part)) continue;
        specs[n].name = p->name;
        specs[n].dtype = dtype == RLHF_BF16 ? RLHF__TENSOR_BF16 : RLHF__TENSOR_F32;
        specs[n].ndim = p->ndim;
        memcpy(specs[n++].shape, p->shape, sizeof p->shape);
    }
    struct rlhf__weights_writer *w = NULL;
    rlhf_status st = rlhf__weights_create(in, name, specs, n, NULL, 0, &w, err);
    free(specs);
    if (st != RLHF_OK) return st;
    st = write_data(m, part, w, err);
    if (st == RLHF_OK) return rlhf__weights_commit(w, err);
    rlhf__weights_abort(w);
    return st;
}
