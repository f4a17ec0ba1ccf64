// minibatches.c: see minibatches.h.
#include "batch/minibatches.h"

#include <stdlib.h>
#include <string.h>

void rlhf__minibatches_finish(struct rlhf__minibatches *m) {
    free(m->unit);
    free(m->begin);
    free(m->pick);
    memset(m, 0, sizeof *m);
}

rlhf_status rlhf__minibatches_init(struct rlhf__minibatches *m, const struct rlhf__rows *e,
                                   uint32_t want, int whole, int ascending,
                                   struct rlhf__error *err) {
    size_t n = e->n;
    uint32_t groups = 0;
    *m = (struct rlhf__minibatches){.unit = calloc(n + 1, sizeof *m->unit),
                                    .begin = calloc(n + 1, sizeof *m->begin),
                                    .pick = calloc(n + 1, sizeof *m->pick),
                                    .ascending = ascending};
    if (!m->unit || !m->begin || !m->pick) {
        rlhf__minibatches_finish(m);
        return RLHF__NOMEM(err, "out of memory for %u rows", e->n);
    }
    for (uint32_t i = 0; i < e->n; i = rlhf__rows_group_end(e, i))
        m->begin[groups++] = i;
    // The configured number of minibatches was checked before rows were dropped, so there may now
    // be fewer groups than minibatches. If so, and if groups must stay whole, each group becomes
    // one minibatch.
    int by_group = groups >= want || whole;
    m->units = by_group ? groups : e->n;
    for (uint32_t i = 0; !by_group && i < e->n; i++)
        m->begin[i] = i;
    m->begin[m->units] = e->n;
    m->parts = want < m->units ? want : m->units;
    for (uint32_t u = 0; u < m->units; u++)
        m->unit[u] = u;
    return RLHF_OK;
}

void rlhf__minibatches_shuffle(struct rlhf__minibatches *m, uint64_t seed, int64_t phase,
                               uint32_t epoch) {
    rlhf_rng r = {seed, rlhf_rng_stream("minibatch"), ((uint64_t)phase * 65536 + epoch) << 32};
    for (uint32_t i = 0; i < m->units; i++)
        m->unit[i] = i;
    for (uint32_t i = m->units; i > 1; i--) {
        uint32_t j = (uint32_t)rlhf_rng_below(&r, i), keep = m->unit[i - 1];
        m->unit[i - 1] = m->unit[j];
        m->unit[j] = keep;
    }
}

static int by_number(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

uint32_t rlhf__minibatches_pick(struct rlhf__minibatches *m, uint32_t k) {
    uint32_t n = 0;
    uint32_t from = (uint32_t)((uint64_t)k * m->units / m->parts);
    uint32_t to = (uint32_t)((uint64_t)(k + 1) * m->units / m->parts);
    for (uint32_t u = from; u < to; u++)
        for (uint32_t i = m->begin[m->unit[u]]; i < m->begin[m->unit[u] + 1]; i++)
            m->pick[n++] = i;
    if (m->ascending) qsort(m->pick, n, sizeof *m->pick, by_number);
    return n;
}
