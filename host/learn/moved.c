// moved.c: see moved.h.
#include "learn/moved.h"

#include "model/compute.h"
#include "model/parameters.h"

#include <math.h>
#include <stdlib.h>

static size_t count_all(const struct rlhf__model *m, size_t *most) {
    size_t n = 0;
    *most = 0;
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        if (m->params[i].group != RLHF_PARAM_ADAPTER) continue;
        const size_t own = (size_t)rlhf__param_count(&m->params[i]);
        n += own;
        if (own > *most) *most = own;
    }
    return n;
}

static rlhf_status download(const struct rlhf__model *m, const rlhf_param *p, float *to,
                            struct rlhf__error *err) {
    const rlhf_compute *c = m->compute;
    RLHF_TRY(rlhf__param_check(m, p, err));
    const rlhf_status st =
        c->download(c->ctx, to, p->value, (uint64_t)rlhf__param_count(p) * sizeof *to);
    return st == RLHF_OK ? st : rlhf__compute_fail(c, st, p->name, err);
}

rlhf_status rlhf__moved_begin(struct rlhf__moved *w, const struct rlhf__model *m,
                              struct rlhf__error *err) {
    size_t most, n = count_all(m, &most);
    if (n == 0) return RLHF_OK;
    w->before = malloc((n + most) * sizeof *w->before);
    if (!w->before) return RLHF__NOMEM(err, "out of memory for a copy of the adapter");
    float *to = w->before;
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        if (p->group != RLHF_PARAM_ADAPTER) continue;
        RLHF_TRY(download(m, p, to, err));
        to += rlhf__param_count(p);
    }
    return RLHF_OK;
}

rlhf_status rlhf__moved_norm(const struct rlhf__moved *w, const struct rlhf__model *m, double *norm,
                             struct rlhf__error *err) {
    size_t most, n = count_all(m, &most);
    const float *was = w->before;
    float *now = w->before + n;
    double sum = 0;
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        if (p->group != RLHF_PARAM_ADAPTER) continue;
        const int64_t count = rlhf__param_count(p);
        RLHF_TRY(download(m, p, now, err));
        for (int64_t k = 0; k < count; k++) {
            const double d = (double)now[k] - (double)was[k];
            sum += d * d;
        }
        was += count;
    }
    *norm = sqrt(sum);
    return RLHF_OK;
}

void rlhf__moved_finish(struct rlhf__moved *w) {
    free(w->before);
    w->before = NULL;
}
