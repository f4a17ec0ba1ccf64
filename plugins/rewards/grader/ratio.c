// ratio.c: see ratio.h.
#include "grader/ratio.h"

#include "grader/lcs.h"

#include <math.h>

#define MOST_WORK 0x1p34 // about 10 s

static rlhf_status no_memory(const rlhf_host *h) {
    return (h->fail)(h, RLHF_E_NOMEM, "out of memory");
}

double rlhf__ratio_of(uint32_t common, uint32_t n_a, uint32_t n_b) {
    const double all = (double)n_a + n_b;
    return all > 0 ? 1 - (all - 2.0 * common) / all : 1;
}

double rlhf__ratio_best(double a, double b) { return isnan(a) || a > b ? a : b; }

rlhf_status rlhf__ratio(const rlhf_host *h, const struct rlhf__letters *a,
                        const struct rlhf__letters *b, double *out) {
    uint32_t common;
    RLHF_TRY(rlhf__lcs_of(h, a->of, a->n, b->of, b->n, &common));
    *out = rlhf__ratio_of(common, a->n, b->n);
    return RLHF_OK;
}

// The best ratio of the pattern and a part of the text that has as many letters as the pattern, or
// that has fewer and is at one end of the text. Where a part begins one letter later, its LCS
// differs by at most 1; and a shorter one has no longer LCS. So parts that cannot be better than
// the best so far are left out.
static double best_part(struct rlhf__lcs *l, const int32_t *row, uint32_t n) {
    double best = 0;
    for (uint32_t from = 0; from + l->n <= n && best < 1;) {
        const uint32_t common = rlhf__lcs_length(l, row + from, l->n);
        best = fmax(best, rlhf__ratio_of(common, l->n, l->n));
        const uint32_t better = (uint32_t)(best * l->n) + 1;
        from += better > common ? better - common : 1;
    }
    for (int end = 0; end < 2; end++) { // parts at the end of the text, then those at its beginning
        uint32_t common = l->n;
        for (uint32_t most = l->n - 1; most > 0 && best < 1; most--) {
            const int32_t *part = end ? row : row + n - most;
            if (common > most) common = most;
            if (rlhf__ratio_of(common, l->n, most) <= best) continue;
            common = rlhf__lcs_length(l, part, most);
            best = fmax(best, rlhf__ratio_of(common, l->n, most));
        }
    }
    return best;
}

static rlhf_status partial_one_way(const rlhf_host *h, const struct rlhf__letters *shorter,
                                   const struct rlhf__letters *longer, double *out) {
    struct rlhf__lcs l;
    if (((double)longer->n + shorter->n) * shorter->n * ((double)shorter->n / 64 + 1) > MOST_WORK) {
        *out = (double)NAN;
        return RLHF_OK;
    }
    int32_t *row = h->alloc(h, ((uint64_t)longer->n + 1) * sizeof *row);
    rlhf_status st = rlhf__lcs_init(&l, h, shorter->of, shorter->n);
    if (st == RLHF_OK && !row)
        st = no_memory(h);
    else if (st == RLHF_OK) {
        rlhf__lcs_rows(&l, longer->of, longer->n, row);
        *out = best_part(&l, row, longer->n);
    }
    h->free(h, row);
    rlhf__lcs_finish(&l);
    return st;
}

rlhf_status rlhf__ratio_part(const rlhf_host *h, const struct rlhf__letters *a,
                             const struct rlhf__letters *b, double *out) {
    double other = 0;
    *out = a->n == b->n; // both empty
    if (a->n && b->n)
        RLHF_TRY(a->n <= b->n ? partial_one_way(h, a, b, out) : partial_one_way(h, b, a, out));
    else if (a->n != b->n)
        *out = 0;
    if (a->n && a->n == b->n) RLHF_TRY(partial_one_way(h, b, a, &other));
    *out = rlhf__ratio_best(*out, other);
    return RLHF_OK;
}
