// parameters.c: see parameters.h. Reading is in parameters_read.c, drawing in draw.c.
#include "model/parameters.h"

#include "model/compute.h"
#include "weights/safetensors_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = RLHF_PARAM_NAME_MAX + 64 }; // with PEFT's prefix

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

rlhf_status rlhf__params_copy(struct rlhf__model *dst, const struct rlhf__model *src,
                              struct rlhf__error *err) {
    const rlhf_compute *c = dst->compute;
    for (uint32_t i = 0; i < dst->n_tensors; i++) {
        const rlhf_param *p = &dst->params[i], *q = NULL;
        if (dst->peft.rank > 0 && p->group == RLHF_PARAM_TRUNK) continue; // nothing changes it
        for (uint32_t k = 0; k < src->n_tensors && !q; k++)
            if (strcmp(src->params[k].name, p->name) == 0) q = &src->params[k];
        if (!q && (p->group == RLHF_PARAM_VALUE || p->group == RLHF_PARAM_SCORE)) continue;
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

static int in_part(const struct rlhf__model *m, const rlhf_param *p, int32_t part) {
    if (p->group == RLHF_PARAM_VALUE || part == RLHF__PART_VALUE)
        return p->group == RLHF_PARAM_VALUE && part == RLHF__PART_VALUE;
    return m->peft.rank == 0 || p->group != RLHF_PARAM_TRUNK;
}

int rlhf__params_has(const struct rlhf__model *m, int32_t part) {
    for (uint32_t i = 0; i < m->n_tensors; i++)
        if (in_part(m, &m->params[i], part)) return 1;
    return 0;
}

static rlhf_status write_chunks(const rlhf_compute *c, const rlhf_param *p, float *chunk,
                                struct rlhf__weights_writer *w, struct rlhf__error *err) {
    const int64_t count = rlhf__param_count(p);
    for (int64_t at = 0; at < count; at += RLHF__PARAM_CHUNK) {
        const size_t n = (size_t)(count - at < RLHF__PARAM_CHUNK ? count - at : RLHF__PARAM_CHUNK);
        const rlhf_dev part = rlhf_dev_at(p->value, (uint64_t)at * sizeof *chunk);
        const rlhf_status st = c->download(c->ctx, chunk, part, n * sizeof *chunk);
        if (st != RLHF_OK) return rlhf__compute_fail(c, st, p->name, err);
        RLHF_TRY(rlhf__weights_put_f32(w, chunk, n, err));
    }
    return RLHF_OK;
}

static rlhf_status write_data(const struct rlhf__model *m, int32_t part,
                              struct rlhf__weights_writer *w, struct rlhf__error *err) {
    float *chunk = malloc(RLHF__PARAM_CHUNK * sizeof *chunk);
    if (!chunk) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory writing parameters");
    rlhf_status st = RLHF_OK;
    for (uint32_t i = 0; st == RLHF_OK && i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        if (!in_part(m, p, part)) continue;
        st = rlhf__param_check(m, p, err);
        if (st == RLHF_OK) st = write_chunks(m->compute, p, chunk, w, err);
    }
    free(chunk);
    return st;
}

// A file's header: the specs of a part's parameters, and room for their names.
static size_t list_specs(const struct rlhf__model *m, int32_t part, int32_t dtype,
                         struct rlhf__tensor_spec *specs, char (*names)[NAME_BYTES]) {
    size_t n = 0;
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        if (!in_part(m, p, part)) continue;
        snprintf(names[n], NAME_BYTES, "%s%s", part == RLHF__PART_PEFT ? RLHF__PEFT_PREFIX : "",
                 p->name);
        specs[n].name = names[n];
        specs[n].dtype = dtype == RLHF_BF16 ? RLHF__TENSOR_BF16 : RLHF__TENSOR_F32;
        specs[n].ndim = p->ndim;
        memcpy(specs[n++].shape, p->shape, sizeof p->shape);
    }
    return n;
}

rlhf_status rlhf__params_write(const struct rlhf__model *m, int32_t part, int32_t dtype,
                               const struct rlhf__folder *in, const char *name,
                               struct rlhf__error *err) {
    struct rlhf__tensor_spec *specs = calloc((size_t)m->n_tensors + 1, sizeof *specs);
    char(*names)[NAME_BYTES] = calloc((size_t)m->n_tensors + 1, sizeof *names);
    struct rlhf__weights_writer *w = NULL;
    rlhf_status st = RLHF_OK;
    if (!specs || !names) st = RLHF__NOMEM(err, "out of memory writing %s", name);
    const size_t n = st == RLHF_OK ? list_specs(m, part, dtype, specs, names) : 0;
    if (st == RLHF_OK) st = rlhf__weights_create(in, name, specs, n, NULL, 0, &w, err);
    free(specs);
    free(names);
    if (st != RLHF_OK) return st;
    st = write_data(m, part, w, err);
    if (st == RLHF_OK) return rlhf__weights_commit(w, err);
    rlhf__weights_abort(w);
    return st;
}
