// diversity.c: see diversity.h.
#include "batch/diversity.h"

#include <stdlib.h>

struct gram {
    const int32_t *ids;
    int32_t n;
};

static int compare_grams(const void *a, const void *b) {
    const struct gram *x = a, *y = b;
    for (int32_t k = 0; k < x->n; k++)
        if (x->ids[k] != y->ids[k]) return x->ids[k] < y->ids[k] ? -1 : 1;
    return 0;
}

rlhf_status rlhf__distinct_n(const int32_t *ids, const int32_t *begin, const int32_t *end,
                             uint32_t rows, int32_t n, double *out, struct rlhf__error *err) {
    size_t count = 0, distinct = 0;
    for (uint32_t i = 0; i < rows; i++)
        if (end[i] - begin[i] >= n) count += (size_t)(end[i] - begin[i] - n + 1);
    *out = 1;
    if (count == 0) return RLHF_OK;
    struct gram *g = calloc(count, sizeof *g);
    if (!g) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %zu n-grams", count);
    size_t at = 0;
    for (uint32_t i = 0; i < rows; i++)
        for (int32_t k = begin[i]; k + n <= end[i]; k++)
            g[at++] = (struct gram){ids + k, n};
    qsort(g, count, sizeof *g, compare_grams);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || compare_grams(&g[i - 1], &g[i]) != 0) distinct++;
    free(g);
    *out = (double)distinct / (double)count;
    return RLHF_OK;
}

// Find the turns of the policy in row i. Returns their number. `begin` and `end` may be NULL.
static uint32_t turns_of(const struct rlhf__rows *e, uint32_t i, int32_t *begin, int32_t *end) {
    uint32_t n = 0;
    int32_t t = e->offset[i] + e->prompt_len[i];
    while (t < e->offset[i + 1]) {
        const int32_t from = t++;
        while (e->turn && t < e->offset[i + 1] && e->turn[t] == e->turn[from])
            t++;
        if (!e->turn) t = e->offset[i + 1];
        if (!rlhf__rows_is_response(e, from)) continue;
        if (begin) begin[n] = from;
        if (end) end[n] = t;
        n++;
    }
    return n;
}

rlhf_status rlhf__rows_distinct3(const struct rlhf__rows *e, double *out, struct rlhf__error *err) {
    uint32_t all = 0, n = 0;
    for (uint32_t i = 0; i < e->n; i++)
        all += turns_of(e, i, NULL, NULL);
    int32_t *begin = calloc(2 * (size_t)all + 1, sizeof *begin), *end = begin + all;
    if (!begin) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for n-grams");
    for (uint32_t i = 0; i < e->n; i++)
        n += turns_of(e, i, begin + n, end + n);
    rlhf_status st = rlhf__distinct_n(e->ids, begin, end, n, 3, out, err);
    free(begin);
    return st;
}
