// reduce.c: see reduce.h.
#include "team/reduce.h"

#include "team/agree.h"

#include <math.h>
#include <stdlib.h>

static int is_plus_zero(double x) { return x == 0 && !signbit(x); }

rlhf_status rlhf__team_reduce(void *ctx, double *sums, uint32_t n, struct rlhf__error *err) {
    struct rlhf__team *t = ctx;
    const struct rlhf__wish wish = {.same = n};
    if (!rlhf__team_shares(t)) return RLHF_OK;
    double *all = calloc((size_t)t->ranks * n + 1, sizeof *all);
    rlhf_status st = all ? RLHF_OK : RLHF__NOMEM(err, "out of memory for %u sums", n);
    st = rlhf__team_agree(t, RLHF__BARRIER_REDUCE, &wish, st, err);
    if (st == RLHF_OK && all) st = rlhf__team_gather(t, sums, n * sizeof *sums, all, err);
    for (uint32_t i = 0; st == RLHF_OK && all && i < n; i++) {
        sums[i] = all[i];
        for (int32_t k = 1; k < t->ranks; k++) {
            const double more = all[(size_t)k * n + i];
            if (is_plus_zero(sums[i]))
                sums[i] = more;
            else if (!is_plus_zero(more))
                sums[i] += more;
        }
    }
    free(all);
    return st;
}
