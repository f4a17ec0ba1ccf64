// parameters.c: see parameters.h. Reading is in parameters_read.c.
#include "model/parameters.h"

#include "model/compute.h"
#include "model/draw.h"
#include "model/quantised.h"
#include "weights/safetensors_writer.h"

#include <math.h>
#include <rlhf/exact.h>
#include <rlhf/rng.h>
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

rlhf_status rlhf__param_begin(const struct rlhf__model *m, const rlhf_param *p, rlhf_dev *to,
                              struct rlhf__error *err) {
    *to = p->value;
    if (p->value) return RLHF_OK;
    struct rlhf__call call = rlhf__call_begin(m->instance, "fill_begin()");
    rlhf_status st = m->ops->fill_begin(m->self, (uint32_t)(p - m->params), to);
    st = rlhf__call_end(&call, st, err);
    return st == RLHF_E_INVALID ? rlhf__param_check(m, p, err) : st; // a second time
}

rlhf_status rlhf__param_end(const struct rlhf__model *m, const rlhf_param *p,
                            struct rlhf__error *err) {
    if (p->value) return RLHF_OK;
    struct rlhf__call call = rlhf__call_begin(m->instance, "fill_end()");
    return rlhf__call_end(&call, m->ops->fill_end(m->self, (uint32_t)(p - m->params)), err);
}

rlhf_status rlhf__params_pass(const struct rlhf__model *m, struct rlhf__error *err) {
    rlhf_dev to;
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        if (p->format != RLHF_FORMAT_F32)
            RLHF_TRY(rlhf__quantised_pass(m, p, err));
        else
            RLHF_TRY(rlhf__param_begin(m, p, &to, err));
        RLHF_TRY(rlhf__param_end(m, p, err));
    }
    return RLHF_OK;
}

// Copy a parameter to `to` through host memory, between models that are on different tables.
static rlhf_status copy_across(const struct rlhf__model *dst, rlhf_dev to,
                               const struct rlhf__model *src, const rlhf_param *q, float *chunk,
                               struct rlhf__error *err) {
    const int64_t count = rlhf__param_count(q);
    for (int64_t at = 0; at < count; at += RLHF__PARAM_CHUNK) {
        const int64_t left = count - at;
        const uint64_t bytes =
            (uint64_t)(left < RLHF__PARAM_CHUNK ? left : RLHF__PARAM_CHUNK) * sizeof *chunk;
        const uint64_t from = (uint64_t)at * sizeof *chunk;
        const rlhf_compute *a = src->compute, *b = dst->compute;
        rlhf_status st = a->download(a->ctx, chunk, rlhf_dev_at(q->value, from), bytes);
        if (st != RLHF_OK) return rlhf__compute_fail(rlhf__model_kernels(src), st, q->name, err);
        st = b->upload(b->ctx, rlhf_dev_at(to, from), chunk, bytes);
        if (st != RLHF_OK) return rlhf__compute_fail(rlhf__model_kernels(dst), st, q->name, err);
    }
    return RLHF_OK;
}

// Copy the values of q, a parameter of src, to p. `chunk` is NULL if both models are on the same
// table.
static rlhf_status copy_values(const struct rlhf__model *dst, const rlhf_param *p,
                               const struct rlhf__model *src, const rlhf_param *q, float *chunk,
                               struct rlhf__error *err) {
    const rlhf_compute *c = dst->compute;
    rlhf_dev to;
    RLHF_TRY(rlhf__param_check(src, q, err));
    RLHF_TRY(rlhf__param_begin(dst, p, &to, err));
    if (chunk) RLHF_TRY(copy_across(dst, to, src, q, chunk, err));
    const rlhf_status st =
        chunk ? RLHF_OK
              : c->copy(c->ctx, to, q->value, (uint64_t)rlhf__param_count(p) * sizeof(float));
    if (st != RLHF_OK) return rlhf__compute_fail(rlhf__model_kernels(dst), st, p->name, err);
    return rlhf__param_end(dst, p, err);
}

static rlhf_status copy_all(struct rlhf__model *dst, const struct rlhf__model *src, float *chunk,
                            struct rlhf__error *err) {
    for (uint32_t i = 0; i < dst->n_tensors; i++) {
        const rlhf_param *p = &dst->params[i], *q = NULL;
        if (dst->peft.rank > 0 && p->group == RLHF_PARAM_TRUNK)
            continue; // training does not change this parameter
        for (uint32_t k = 0; k < src->n_tensors && !q; k++)
            if (strcmp(src->params[k].name, p->name) == 0) q = &src->params[k];
        if (!q && (p->group == RLHF_PARAM_VALUE || p->group == RLHF_PARAM_SCORE)) continue;
        if (!q || rlhf__param_count(q) != rlhf__param_count(p))
            return rlhf__fail(err, RLHF_E_INVALID, "the %s and the %s differ in parameter %s",
                              dst->role, src->role, p->name);
        RLHF_TRY(copy_values(dst, p, src, q, chunk, err));
    }
    return RLHF_OK;
}

rlhf_status rlhf__params_copy(struct rlhf__model *dst, const struct rlhf__model *src,
                              struct rlhf__error *err) {
    float *chunk = NULL;
    if (dst->compute != src->compute) chunk = malloc(RLHF__PARAM_CHUNK * sizeof *chunk);
    if (dst->compute != src->compute && !chunk)
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory copying parameters");
    const rlhf_status st = copy_all(dst, src, chunk, err);
    free(chunk);
    return st == RLHF_OK ? rlhf__model_refresh(dst, err) : st;
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

int64_t rlhf__params_elements(const struct rlhf__model *m, int32_t part) {
    int64_t n = 0;
    for (uint32_t i = 0; i < m->n_tensors; i++)
        if (in_part(m, &m->params[i], part)) n += rlhf__param_count(&m->params[i]);
    return n;
}

static rlhf_status write_chunks(const struct rlhf__model *m, const rlhf_param *p, float *chunk,
                                struct rlhf__weights_writer *w, struct rlhf__error *err) {
    const rlhf_compute *c = m->compute;
    const int64_t count = rlhf__param_count(p);
    for (int64_t at = 0; at < count; at += RLHF__PARAM_CHUNK) {
        const size_t n = (size_t)(count - at < RLHF__PARAM_CHUNK ? count - at : RLHF__PARAM_CHUNK);
        const rlhf_dev part = rlhf_dev_at(p->value, (uint64_t)at * sizeof *chunk);
        const rlhf_status st = c->download(c->ctx, chunk, part, n * sizeof *chunk);
        if (st != RLHF_OK) return rlhf__compute_fail(rlhf__model_kernels(m), st, p->name, err);
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
        if (st == RLHF_OK) st = write_chunks(m, p, chunk, w, err);
    }
    free(chunk);
    return st;
}

// Fill `specs` for the header of a file that contains this part's parameters. The names of the
// specs are stored in `names`. Returns the number of specs.
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
    if (st == RLHF_OK) st = rlhf__weights_writer_open(in, name, specs, n, NULL, 0, &w, err);
    free(specs);
    free(names);
    if (st != RLHF_OK) return st;
    st = write_data(m, part, w, err);
    if (st == RLHF_OK) return rlhf__weights_commit(w, err);
    rlhf__weights_abort(w);
    return st;
}

// ---- drawing ----

// Uses eight interleaved sums, so that the compiler can vectorize without changing the result.
static double dot(const float *a, const float *b, size_t n) {
    float part[8] = {0};
    double sum = 0;
    size_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (size_t j = 0; j < 8; j++)
            part[j] += a[k + j] * b[k + j];
    for (; k < n; k++)
        sum += (double)a[k] * (double)b[k];
    for (size_t j = 0; j < 8; j++)
        sum += (double)part[j];
    return sum;
}

// Makes the rows of x[count, len] orthonormal by modified Gram-Schmidt. count <= len.
static void orthonormalise(float *x, size_t count, size_t len) {
    for (size_t i = 0; i < count; i++) {
        float *a = x + i * len;
        for (size_t j = 0; j < i; j++) {
            const float *b = x + j * len;
            float d = (float)dot(a, b, len);
            for (size_t k = 0; k < len; k++)
                a[k] -= d * b[k];
        }
        double norm = dot(a, a, len);
        float scale = norm > 0 ? (float)(1 / sqrt(norm)) : 0;
        for (size_t k = 0; k < len; k++)
            a[k] *= scale;
    }
}

// Makes the rows of the random matrix orthonormal if there are at most as many rows as columns, and
// its columns otherwise. Then multiplies the matrix by the gain. `work` has n elements.
static void orthogonal(float *x, float *work, const rlhf_param *p, size_t n) {
    size_t rows = p->ndim > 0 ? (size_t)p->shape[0] : 1, cols = rows ? n / rows : 0;
    int wide = rows <= cols;
    size_t count = wide ? rows : cols, len = wide ? cols : rows;
    for (size_t i = 0; i < n; i++)
        work[i] = x[i];
    orthonormalise(work, count, len);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++)
            x[r * cols + c] = (float)p->init_std * (wide ? work[r * len + c] : work[c * len + r]);
}

#define DRAWN ((size_t)1 << 21) // floats drawn at a time: 8 MiB, which many threads can share

// Draws the values [at, at + n) of p into x. For an orthogonal matrix these are all values, and x
// has room for twice as many.
static void draw_piece(const struct rlhf__draw *how, const rlhf_param *p, float *x, size_t at,
                       size_t n) {
    if (how->uniform || p->init == RLHF_INIT_NORMAL || p->init == RLHF_INIT_ORTHOGONAL)
        rlhf__draw(how, x, at, n);
    if (p->init == RLHF_INIT_ORTHOGONAL) orthogonal(x, x + n, p, n);
    const double low = 0.01; // of RLHF_INIT_LOG_UNIFORM
    for (size_t i = 0; i < n; i++) {
        if (p->init == RLHF_INIT_LOG_UNIFORM)
            x[i] = (float)rlhf_log(low + (p->init_std - low) * ((double)x[i] + 1) / 2);
        if (p->init == RLHF_INIT_ONE) x[i] = 1;
        if (p->init == RLHF_INIT_NORMAL) x[i] *= (float)p->init_std;
    }
}

static rlhf_status draw_all(const struct rlhf__model *m, const rlhf_param *p, rlhf_dev to, float *x,
                            size_t most, struct rlhf__error *err) {
    char stream[512];
    snprintf(stream, sizeof stream, "init:%s", p->name);
    const int logs = p->init == RLHF_INIT_LOG_UNIFORM;
    const struct rlhf__draw how = {.seed = m->env->seed,
                                   .stream = rlhf_rng_stream(stream),
                                   .uniform = logs || p->init == RLHF_INIT_UNIFORM,
                                   .threads = m->env->threads,
                                   .bound = logs ? 1 : p->init_std};
    const size_t all = (size_t)rlhf__param_count(p);
    for (size_t at = 0; at < all; at += most) {
        const size_t n = all - at < most ? all - at : most;
        draw_piece(&how, p, x, at, n);
        const rlhf_compute *c = m->compute;
        const rlhf_status st = c->upload(c->ctx, rlhf_dev_at(to, at * sizeof *x), x, n * sizeof *x);
        if (st != RLHF_OK) return rlhf__compute_fail(rlhf__model_kernels(m), st, p->name, err);
    }
    return RLHF_OK;
}

static rlhf_status draw_one(const struct rlhf__model *m, const rlhf_param *p,
                            struct rlhf__error *err) {
    const size_t all = (size_t)rlhf__param_count(p);
    const int whole = p->init == RLHF_INIT_ORTHOGONAL;
    const size_t most = whole || all < DRAWN ? all : DRAWN;
    rlhf_dev to;
    RLHF_TRY(rlhf__param_begin(m, p, &to, err));
    float *x = calloc(whole ? 2 * most : most, sizeof *x);
    if (!x) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory drawing %s", p->name);
    const rlhf_status st = draw_all(m, p, to, x, most, err);
    free(x);
    return st == RLHF_OK ? rlhf__param_end(m, p, err) : st;
}

rlhf_status rlhf__params_draw(struct rlhf__model *m, int32_t group, struct rlhf__error *err) {
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        if (group >= 0 && m->params[i].group != group) continue;
        rlhf_status st = draw_one(m, &m->params[i], err);
        if (st != RLHF_OK) return st;
    }
    return RLHF_OK;
}
