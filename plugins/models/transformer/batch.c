// transformer/batch.c: checks of a ragged batch in host memory.
// What it is not: its way to the device (rows.c), or the slots of generation (gen_check.c).
#include "internal.h"

static rlhf_status check_row(struct rlhf__tf *m, const rlhf_batch *b, uint32_t i,
                             int32_t want_resp) {
    const int64_t len = (int64_t)b->offset[i + 1] - b->offset[i];
    if (len < 1 || b->offset[i + 1] > (int64_t)b->total)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "batch row %u: %lld tokens, at least 1 is needed",
                             i, (long long)len);
    if (len > m->arch.n_ctx)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "batch row %u: %lld tokens do not fit the model's context of %d", i,
                             (long long)len, m->arch.n_ctx);
    if (want_resp && (b->prompt_len[i] < 1 || b->prompt_len[i] > len))
        return rlhf__tf_fail(m, RLHF_E_INVALID, "batch row %u: prompt_len %d is outside 1 .. %lld",
                             i, b->prompt_len[i], (long long)len);
    for (int32_t t = b->offset[i]; t < b->offset[i + 1]; t++)
        if (b->ids[t] < 0 || b->ids[t] >= m->arch.n_vocab)
            return rlhf__tf_fail(m, RLHF_E_INVALID,
                                 "batch row %u: token id %d is outside the vocabulary of %d", i,
                                 b->ids[t], m->arch.n_vocab);
    return RLHF_OK;
}

// Row i continues row prefix[i]: an earlier row without a prefix that its sharers follow directly.
static rlhf_status check_prefix(struct rlhf__tf *m, const rlhf_batch *b, uint32_t i,
                                int32_t want_resp) {
    const int32_t p = b->prefix[i];
    if (p == -1) return RLHF_OK;
    if (p < 0 || (uint32_t)p >= i)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "batch row %u: its prefix must be an earlier row or -1, not %d", i, p);
    if (b->prefix[p] != -1)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "batch row %u: its prefix, row %d, has a prefix of its own", i, p);
    if ((uint32_t)p != i - 1 && b->prefix[i - 1] != p)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "batch row %u: the rows that share row %d must follow it directly", i,
                             p);
    const int64_t len = (int64_t)b->offset[p + 1] - b->offset[p];
    if (want_resp && b->prompt_len[p] != len)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "batch row %d: prompt_len %d of a prefix of %lld tokens, it must be "
                             "all of them",
                             p, b->prompt_len[p], (long long)len);
    const int64_t all = len + b->offset[i + 1] - b->offset[i];
    if (all > m->arch.n_ctx)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "batch row %u: %lld tokens with its prefix do not fit the model's "
                             "context of %d",
                             i, (long long)all, m->arch.n_ctx);
    return RLHF_OK;
}

int32_t rlhf__tf_has_prefix(const int32_t *prefix, uint32_t n) {
    for (uint32_t i = 0; prefix && i < n; i++)
        if (prefix[i] != -1) return 1;
    return 0;
}

rlhf_status rlhf__tf_batch_check(struct rlhf__tf *m, const rlhf_batch *b, int32_t want_resp) {
    if (!b || !b->n || !b->ids || !b->offset || (want_resp && !b->prompt_len))
        return rlhf__tf_fail(m, RLHF_E_INVALID, "batch: no rows");
    if (b->total > INT32_MAX || b->offset[0] != 0 || b->offset[b->n] != (int64_t)b->total)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "batch: offsets do not cover its %u tokens",
                             b->total);
    for (uint32_t i = 0; i < b->n; i++)
        RLHF_TRY(check_row(m, b, i, want_resp));
    if (!rlhf__tf_has_prefix(b->prefix, b->n)) return RLHF_OK;
    if (!m->arch.causal)
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED, "batch: an encoder's rows share no prefixes");
    for (uint32_t i = 0; i < b->n; i++)
        RLHF_TRY(check_prefix(m, b, i, want_resp));
    return RLHF_OK;
}
