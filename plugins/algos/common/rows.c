// rows.c: see rows.h.
#include "common/rows.h"

#include <rlhf/log.h>

int64_t rlhf__response_tokens(const int32_t *offset, const int32_t *prompt_len, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        struct rlhf__span s = rlhf__response(offset, prompt_len, i);
        count += s.end - s.begin;
    }
    return count;
}

double rlhf__sum(const float *x, struct rlhf__span row) {
    double sum = 0;
    for (int64_t t = row.begin; t < row.end; t++)
        sum += (double)x[t];
    return sum;
}

double rlhf__row_reward(const rlhf_rollout *in, int64_t i) {
    struct rlhf__span row = rlhf__response(in->offset, in->prompt_len, i);
    double sum = (double)in->score[i];
    for (int64_t t = row.begin; t < row.end; t++)
        sum += (double)in->token_reward[t];
    return sum;
}

const char *rlhf__rows_check(const int32_t *offset, const int32_t *prompt_len, int64_t n,
                             int64_t total) {
    if (n == 0) return total == 0 ? NULL : "a batch without rows has tokens";
    if (!offset || !prompt_len) return "offset or prompt_len is missing";
    if (offset[0] != 0) return "offset does not start at 0";
    for (int64_t i = 0; i < n; i++) {
        if (offset[i + 1] < offset[i]) return "offset descends";
        if (prompt_len[i] < 0 || prompt_len[i] > offset[i + 1] - offset[i])
            return "prompt_len is outside its row";
    }
    return offset[n] == total ? NULL : "the last offset is not the number of tokens";
}

rlhf_status rlhf__logp_check(const rlhf_host *h, const rlhf_loss_in *in, const rlhf_loss_out *out) {
    const char *wrong = rlhf__rows_check(in->offset, in->prompt_len, in->n, in->total);
    if (wrong) return h->fail(h, RLHF_E_INTERNAL, wrong);
    if (!in->heads || !in->heads->logp || !out->d_heads || !out->d_heads->logp)
        return h->fail(h, RLHF_E_INTERNAL, "the logp head is missing");
    if (in->batch_sequences < 1)
        return h->fail(h, RLHF_E_INTERNAL, "batch_sequences is not positive");
    return RLHF_OK;
}

rlhf_status rlhf__preferred(const rlhf_host *h, const rlhf_loss_in *in, int64_t begin, int64_t *end,
                            int64_t *best) {
    if (!in->label || !in->group) return h->fail(h, RLHF_E_INTERNAL, "label or group is missing");
    int64_t marked = 0, i = begin;
    for (; i < in->n && in->group[i] == in->group[begin]; i++) {
        if (in->label[i] == 0) continue;
        marked += in->label[i] == 1 ? 1 : 2; // 1 marks the best; other labels are invalid
        *best = i;
    }
    *end = i;
    if (marked == 1 && i - begin > 1) return RLHF_OK;
    return rlhf_failf(h, RLHF_E_INTERNAL,
                      "group %d has %lld responses here and not exactly one of two or more is "
                      "preferred",
                      (int)in->group[begin], (long long)(i - begin));
}
