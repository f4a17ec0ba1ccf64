// checks.c: see checks.h.
#include "verify/checks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rlhf__check_limits rlhf__check_limits(int bf16, int exact) {
    if (exact) return (struct rlhf__check_limits){0};
    if (bf16)
        return (struct rlhf__check_limits){
            .number = 1e-2, .norm = 2e-2, .update = 0.2, .moments = 0.1, .rounding = 1e-6};
    return (struct rlhf__check_limits){
        .number = 1e-4, .norm = 1e-4, .update = 1e-3, .moments = 1e-3, .rounding = 1e-6};
}

void rlhf__checks_finish(struct rlhf__checks *c) {
    free(c->item);
    *c = (struct rlhf__checks){0};
}

rlhf_status rlhf__checks_add(struct rlhf__checks *c, const struct rlhf__recompute_check *check,
                             struct rlhf__error *err) {
    if (c->n == c->cap) {
        const size_t cap = c->cap ? 2 * c->cap : 32;
        struct rlhf__recompute_check *more = realloc(c->item, cap * sizeof *more);
        if (!more) return RLHF__NOMEM(err, "out of memory for the comparison");
        c->item = more;
        c->cap = cap;
    }
    struct rlhf__recompute_check *k = &c->item[c->n++];
    *k = *check;
    k->wrong |= !(k->relative <= k->limit);
    return RLHF_OK;
}

rlhf_status rlhf__checks_fail(struct rlhf__checks *c, const char *what, const char *why,
                              struct rlhf__error *err) {
    struct rlhf__recompute_check k = {.difference = INFINITY, .relative = INFINITY, .wrong = 1};
    snprintf(k.what, sizeof k.what, "%s", what);
    snprintf(k.where, sizeof k.where, "%s", why);
    return rlhf__checks_add(c, &k, err);
}

void rlhf__check_see(struct rlhf__recompute_check *worst, double run, double again, double scale,
                     const char *where) {
    const int same = run == again || (!isfinite(run) && !isfinite(again));
    const double d = same ? 0 : isfinite(run) && isfinite(again) ? fabs(run - again) : INFINITY;
    const double relative = d == 0 ? 0 : d / scale;
    if (worst->has_values && relative <= worst->relative) return;
    worst->has_values = 1;
    worst->run = run;
    worst->again = again;
    worst->difference = d;
    worst->relative = relative;
    snprintf(worst->where, sizeof worst->where, "%s", where);
}

size_t rlhf__checks_wrong(const struct rlhf__checks *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += c->item[i].wrong != 0;
    return n;
}

size_t rlhf__checks_raised(const struct rlhf__checks *c) {
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += c->item[i].raised != 0;
    return n;
}

int rlhf__checks_exact(const struct rlhf__checks *c) {
    for (size_t i = 0; i < c->n; i++)
        if (c->item[i].difference != 0) return 0;
    return 1;
}
