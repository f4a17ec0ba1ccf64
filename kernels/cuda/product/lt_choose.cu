// lt_choose.cu: chooses an algorithm of the library for a shape. It takes the first algorithm that
// passes the canary. For an exact shape, it then takes the fastest of all algorithms that give the
// same bits as the first one.
#include "product/lt_plan.h"

// The first exact algorithm, and the algorithms that give the same bits.
struct equals {
    int n;
    const rlhf__lt_algo *algo[RLHF__LT_CANDIDATES];
    float ms[RLHF__LT_CANDIDATES][2];
};

// Finds the fastest algorithm for few rows and for many. If two are equally fast, takes the earlier
// one.
static rlhf_status fastest(struct rlhf__cuda *cu, struct rlhf__lt_plan *p, struct equals *e) {
    struct rlhf__cuda_lt *lt = rlhf__lt_of(cu);
    int best[2] = {0, 0};
    if (e->n > 1) {
        const unsigned tall = (unsigned)p->proved;
        const rlhf_status st = rlhf__lt_canary_time(cu, p, e->algo, e->n, tall, e->ms);
        if (st < 0 && st != RLHF_E_NOMEM) return st;
        for (int i = 1; i < e->n && st == RLHF_OK; i++)
            for (int many = 0; many < 2; many++)
                if (e->ms[i][many] < e->ms[best[many]][many]) best[many] = i;
    }
    for (int i = 0; i < e->n; i++)
        rlhf__lt_log(lt, &p->shape, e->algo[i], "rows exact, %.4f ms at 256 rows, %.4f at %u%s%s",
                     (double)e->ms[i][0], (double)e->ms[i][1], (unsigned)p->proved,
                     i == best[0] ? ", used for few" : "", i == best[1] ? ", used for many" : "");
    for (int many = 0; many < 2; many++)
        p->algo[many] = *e->algo[best[many]];
    return RLHF_OK;
}

static rlhf_status choose_exact(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                                const struct rlhf__lt_candidates *from) {
    struct rlhf__cuda_lt *lt = rlhf__lt_of(cu);
    const unsigned tall = rlhf__lt_canary_tall(cu, &p->shape);
    struct equals e = {};
    for (int i = 0; i < from->n; i++) {
        const rlhf__lt_algo *a = &from->algo[i];
        int same = 0;
        const rlhf_status st = rlhf__lt_canary_rows(cu, p, e.n ? e.algo[0] : a, a, tall, &same);
        if (st == RLHF_E_NOMEM && !e.n) {
            lt->no_room++;
            rlhf__lt_log(lt, &p->shape, NULL, "own product: no memory to prove another");
            return RLHF_OK;
        }
        if (st == RLHF_E_NOMEM) break;
        if (st < 0) return st;
        if (same)
            e.algo[e.n++] = a;
        else
            rlhf__lt_log(lt, &p->shape, a, "refused: %s",
                         e.n ? "other bits than the one used" : "a row's bits depend on others");
    }
    if (!e.n) {
        lt->not_exact++;
        return RLHF_OK;
    }
    p->own = 0;
    p->proved = tall;
    return fastest(cu, p, &e);
}

rlhf_status rlhf__lt_choose(struct rlhf__cuda *cu, struct rlhf__lt_plan *p,
                            const struct rlhf__lt_candidates *from) {
    struct rlhf__cuda_lt *lt = rlhf__lt_of(cu);
    if (p->shape.exact) return choose_exact(cu, p, from);
    for (int i = 0; i < from->n && p->own; i++) {
        int same = 0;
        const rlhf_status st = rlhf__lt_canary_sums(cu, p, &from->algo[i], &same);
        if (st == RLHF_E_NOMEM) {
            lt->no_room++;
            rlhf__lt_log(lt, &p->shape, NULL, "own product: no memory to prove another");
            return RLHF_OK;
        }
        if (st < 0) return st;
        rlhf__lt_log(lt, &p->shape, &from->algo[i], "%s",
                     same ? "repeats itself, used" : "refused: it does not repeat itself");
        p->own = !same;
        p->algo[0] = p->algo[1] = from->algo[i];
    }
    lt->not_same += p->own != 0;
    return RLHF_OK;
}

static unsigned power_of_two(unsigned n) { // the smallest one that is at least n
    unsigned p = 1;
    while (p < n && p < 1u << 30)
        p *= 2;
    return p;
}

rlhf_status rlhf__lt_prove_more(struct rlhf__cuda *cu, struct rlhf__lt_plan *p, uint32_t rows) {
    struct rlhf__cuda_lt *lt = rlhf__lt_of(cu);
    const unsigned most = rlhf__lt_canary_most(&p->shape), wanted = power_of_two(rows);
    const unsigned next = wanted < most ? wanted : most;
    int same = 0;
    if (rows <= p->proved || p->proved_all || cu->recordings.now) return RLHF_OK;
    rlhf_status st = RLHF_E_NOMEM;
    if (next > p->proved) st = rlhf__lt_canary_rows(cu, p, &p->algo[0], &p->algo[1], next, &same);
    if (st < 0 && st != RLHF_E_NOMEM) return st;
    if (st == RLHF_OK && same) p->proved = next;
    p->proved_all = rows > p->proved;
    rlhf__lt_log(lt, &p->shape, &p->algo[1], "%s %u rows at once%s",
                 p->proved_all ? "not more than" : "proved for", (unsigned)p->proved,
                 st == RLHF_OK && !same ? ": above, a row's bits depend on others" : "");
    return RLHF_OK;
}
