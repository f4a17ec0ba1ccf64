// sums.c: see sums.h.
#include "common/sums.h"

rlhf_status rlhf__sums_open(const rlhf_host *host, struct rlhf__sums *s, const rlhf_run_info *info,
                            uint32_t n) {
    const uint32_t shards = info->shards ? info->shards : 1;
    if (s->of && s->shards == shards && s->n == n) return RLHF_OK;
    rlhf__sums_finish(host, s);
    s->of = host->alloc(host, (uint64_t)shards * n * sizeof *s->of);
    if (!s->of) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->shards = shards;
    s->n = n;
    return RLHF_OK;
}

void rlhf__sums_finish(const rlhf_host *host, struct rlhf__sums *s) {
    host->free(host, s->of);
    *s = (struct rlhf__sums){0};
}

rlhf_status rlhf__sums_of(const rlhf_host *host, const struct rlhf__sums *s, uint32_t shard,
                          double **out) {
    if (shard >= s->shards)
        return host->fail(host, RLHF_E_INTERNAL, "a shard that the plan did not know");
    *out = rlhf_shard_sums(s->of, shard, s->n);
    return RLHF_OK;
}

rlhf_status rlhf__sums_total(const rlhf_host *host, struct rlhf__sums *s, double *total) {
    if (!s->of) return host->fail(host, RLHF_E_INTERNAL, "plan() was not called");
    RLHF_TRY(rlhf_shards_total(host, s->of, s->shards, s->n, total));
    memset(s->of, 0, (size_t)s->shards * s->n * sizeof *s->of);
    return RLHF_OK;
}
