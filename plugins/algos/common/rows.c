// rows.c: see rows.h.
#include "common/rows.h"

int64_t rlhf__response_tokens(const int32_t *offset, const int32_t *prompt_len, int64_t n) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        struct rlhf__span s = rlhf__response(offset, prompt_len, i);
        count += s.end - s.begin;
    }
    return count;
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
