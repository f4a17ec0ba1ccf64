// draw.c: drawing fresh parameters, rlhf__params_draw of parameters.h.
//
// Every parameter has a stream of its own, "init:<name>", so its values do not depend on which
// other parameters exist.
#include "model/parameters.h"

#include "model/compute.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// x[n] of N(0, 1): Box and Muller's transform, two numbers a Philox block.
static void normals(float *x, size_t n, uint64_t seed, uint64_t stream) {
    rlhf_rng r = {seed, stream, 0};
    for (size_t i = 0; i < n; i += 2, r.counter++) {
        uint32_t w[4];
        rlhf_rng_block(&r, w);
        double u = 1 - rlhf_rng_f64(w[0], w[1]),
               angle = 6.283185307179586 * rlhf_rng_f64(w[2], w[3]);
        double radius = sqrt(-2 * log(u)); // u is in (0, 1]
        x[i] = (float)(radius * cos(angle));
        if (i + 1 < n) x[i + 1] = (float)(radius * sin(angle));
    }
}

// x[n] of U(-bound, bound), two numbers a Philox block.
static void uniforms(float *x, size_t n, double bound, uint64_t seed, uint64_t stream) {
    rlhf_rng r = {seed, stream, 0};
    for (size_t i = 0; i < n; i += 2, r.counter++) {
        uint32_t w[4];
        rlhf_rng_block(&r, w);
        x[i] = (float)(bound * (2 * rlhf_rng_f64(w[0], w[1]) - 1));
        if (i + 1 < n) x[i + 1] = (float)(bound * (2 * rlhf_rng_f64(w[2], w[3]) - 1));
    }
}

// Eight sums side by side, so that the compiler can use vectors without changing the result.
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

// Make the `count` rows of x[count, len] orthonormal: modified Gram-Schmidt. count <= len.
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

// Turn a random matrix into one with orthonormal rows or columns (whichever are fewer) times the
// gain. work has n elements.
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

static rlhf_status draw_one(const struct rlhf__model *m, const rlhf_param *p,
                            struct rlhf__error *err) {
    const rlhf_compute *c = m->compute;
    rlhf_status st = rlhf__param_check(m, p, err);
    if (st != RLHF_OK) return st;
    size_t n = (size_t)rlhf__param_count(p);
    float *x = calloc(n ? 2 * n : 1, sizeof *x); // the second half is orthogonal()'s
    if (!x) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory drawing %s", p->name);
    char stream[512];
    snprintf(stream, sizeof stream, "init:%s", p->name);
    if (p->init == RLHF_INIT_NORMAL || p->init == RLHF_INIT_ORTHOGONAL)
        normals(x, n, m->env->seed, rlhf_rng_stream(stream));
    if (p->init == RLHF_INIT_UNIFORM)
        uniforms(x, n, p->init_std, m->env->seed, rlhf_rng_stream(stream));
    if (p->init == RLHF_INIT_ORTHOGONAL) orthogonal(x, x + n, p, n);
    for (size_t i = 0; i < n; i++) {
        if (p->init == RLHF_INIT_ONE) x[i] = 1;
        if (p->init == RLHF_INIT_NORMAL) x[i] *= (float)p->init_std;
    }
    st = c->upload(c->ctx, p->value, x, n * sizeof *x);
    free(x);
    return st == RLHF_OK ? st : rlhf__compute_fail(c, st, p->name, err);
}

rlhf_status rlhf__params_draw(struct rlhf__model *m, int32_t group, struct rlhf__error *err) {
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        if (group >= 0 && m->params[i].group != group) continue;
        rlhf_status st = draw_one(m, &m->params[i], err);
        if (st != RLHF_OK) return st;
    }
    return RLHF_OK;
}
