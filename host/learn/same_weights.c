// same_weights.c: see same_weights.h.
#include "learn/same_weights.h"

#include "model/compute.h"
#include "model/parameters.h"
#include "team/agree.h"

#include <stdio.h>
#include <stdlib.h>

#define CHUNK ((uint64_t)1 << 18) // elements that are read at a time

// Returns a 64-bit hash, which depends on all bits and on their order.
static uint64_t hashed(uint64_t h, const uint32_t *x, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        h = (h ^ x[i]) * 0x9E3779B97F4A7C15U + (h >> 32);
    return h;
}

static rlhf_status hash_param(const struct rlhf__model *m, const rlhf_param *p, uint32_t *buffer,
                              uint64_t *h, struct rlhf__error *err) {
    const rlhf_compute *t = m->compute;
    const uint64_t all = (uint64_t)rlhf__param_count(p);
    for (uint64_t at = 0, n; at < all; at += n) {
        n = all - at < CHUNK ? all - at : CHUNK;
        const rlhf_status st = t->download(
            t->ctx, buffer, rlhf_dev_at(p->value, at * sizeof *buffer), n * sizeof *buffer);
        if (st != RLHF_OK) return rlhf__compute_fail(rlhf__model_kernels(m), st, p->name, err);
        *h = hashed(*h, buffer, n);
    }
    return RLHF_OK;
}

static rlhf_status hash_all(const struct rlhf__model *const *models, uint32_t n, uint64_t *h,
                            struct rlhf__error *err) {
    uint32_t *buffer = malloc(CHUNK * sizeof *buffer);
    rlhf_status st = buffer ? RLHF_OK : RLHF__NOMEM(err, "out of memory comparing weights");
    *h = 0;
    for (uint32_t k = 0; buffer && k < n; k++)
        for (uint32_t i = 0; models[k] && st == RLHF_OK && i < models[k]->n_tensors; i++) {
            const rlhf_param *p = &models[k]->params[i];
            if (p->flags & RLHF_PARAM_FROZEN || !p->value) continue;
            st = hash_param(models[k], p, buffer, h, err);
        }
    free(buffer);
    return st;
}

// Fail with one sentence, the same on all ranks.
static rlhf_status different(struct rlhf__team *t, int32_t rank, int32_t others, int64_t phase,
                             struct rlhf__error *err) {
    char more[64] = "";
    if (others > 0)
        snprintf(more, sizeof more, ", as do those of %d more rank%s", others,
                 others == 1 ? "" : "s");
    return rlhf__fail(err, RLHF_E_INTERNAL,
                      "after phase %lld the weights of rank %d on %s differ from those of rank 0 "
                      "on %s%s: a machine computes or sends wrong bits",
                      (long long)phase, rank, t->host[rank], t->host[0], more);
}

rlhf_status rlhf__same_weights(struct rlhf__team *team, const struct rlhf__model *const *models,
                               uint32_t n, int64_t phase, struct rlhf__error *err) {
    struct rlhf__wish wish = {.same = phase};
    int32_t first = 0, others = -1;
    if (!rlhf__team_shares(team)) return RLHF_OK;
    const rlhf_status st = hash_all(models, n, &wish.bytes, err);
    RLHF_TRY(rlhf__team_agree(team, RLHF__BARRIER_WEIGHTS, &wish, st, err));
    for (int32_t k = team->ranks - 1; k > 0; k--) {
        if (rlhf__team_bytes(team, k) == rlhf__team_bytes(team, 0)) continue;
        first = k;
        others++;
    }
    return first ? different(team, first, others, phase, err) : RLHF_OK;
}
