// ragged.c: reads and checks the rows of an attention call. See ragged.h.
#include "ragged.h"

struct rlhf__row rlhf__cpu_row(const rlhf_ragged *r, size_t i) {
    const int32_t *off = rlhf__cpu_i32(r->offset), *start = rlhf__cpu_i32(r->start);
    const int32_t *base = rlhf__cpu_i32(r->kv_base), *from = rlhf__cpu_i32(r->prefix_base);
    const int32_t *len = rlhf__cpu_i32(r->prefix_len);
    struct rlhf__row row = {.t0 = (size_t)off[i],
                            .p0 = from ? from[i] : 0,
                            .k0 = base[i],
                            .nq = (uint32_t)(off[i + 1] - off[i]),
                            .np = len ? (uint32_t)len[i] : 0,
                            .start = (uint32_t)start[i]};
    row.nk = row.start + row.nq;
    return row;
}

rlhf_status rlhf__cpu_read_ragged(struct rlhf__cpu *cpu, const char *op, rlhf_ragged *r,
                                  const rlhf_ragged *from_caller, int32_t window) {
    RLHF_TRY(rlhf__cpu_copy_in(cpu, op, r, sizeof *r, from_caller,
                               RLHF_SIZE_TO(rlhf_ragged, prefix_len)));
    const int32_t *off = rlhf__cpu_i32(r->offset), *start = rlhf__cpu_i32(r->start);
    const int32_t *base = rlhf__cpu_i32(r->kv_base), *from = rlhf__cpu_i32(r->prefix_base);
    const int32_t *len = rlhf__cpu_i32(r->prefix_len);
    if (!from != !len)
        return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                              "%s: prefix_base and prefix_len must both be NULL or none", op);
    for (uint32_t i = 0; i < r->n; i++) {
        int64_t q = (int64_t)off[i + 1] - off[i], k = (int64_t)start[i] + q;
        if (off[i] < 0 || q < 0 || start[i] < 0 || q > r->max_q || k > r->max_k ||
            (uint32_t)off[i + 1] > r->total)
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                                  "%s: row %u has %lld queries and %lld keys, declared are at most "
                                  "%u and %u (%u tokens in all)",
                                  op, i, (long long)q, (long long)k, r->max_q, r->max_k, r->total);
        const int64_t np = len ? len[i] : 0;
        const int64_t first = (int64_t)rlhf__cpu_first_key(window, (size_t)start[i]);
        if (np < 0 || np > start[i] || (first < np && from[i] + first < 0))
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID,
                                  "%s: row %u has a prefix of %d tokens at %d, but start is %d", op,
                                  i, len[i], from[i], start[i]);
        if (base[i] + (first > np ? first - np : 0) < 0)
            return rlhf__cpu_fail(cpu, RLHF_E_INVALID, "%s: row %u has kv_base %d", op, i, base[i]);
    }
    return RLHF_OK;
}

rlhf_status rlhf__cpu_read_training(struct rlhf__cpu *cpu, const char *op, rlhf_ragged *r,
                                    const rlhf_ragged *from) {
    RLHF_TRY(rlhf__cpu_read_ragged(cpu, op, r, from, 0));
    struct rlhf__row shared = {0};
    for (uint32_t i = 0; i < r->n; i++) {
        struct rlhf__row row = rlhf__cpu_row(r, i);
        if (row.start != row.np || row.k0 != (int64_t)row.t0)
            return rlhf__cpu_fail(
                cpu, RLHF_E_UNSUPPORTED,
                "%s: row %u has start %u and kv_base %lld, backward needs %u and %zu", op, i,
                row.start, (long long)row.k0, row.np, row.t0);
        if (!row.np)
            shared = row;
        else if (row.p0 != (int64_t)shared.t0 || row.np != shared.nq)
            return rlhf__cpu_fail(
                cpu, RLHF_E_UNSUPPORTED,
                "%s: row %u has a prefix of %u tokens at %lld, backward needs the "
                "row that it and its neighbors follow: %u at %zu",
                op, i, row.np, (long long)row.p0, shared.nq, shared.t0);
    }
    return RLHF_OK;
}
