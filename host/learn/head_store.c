// head_store.c: see head_store.h.
#include "learn/head_store.h"

#include <stdlib.h>
#include <string.h>

static int grow(float **p, size_t n, int wanted) {
    if (!wanted) return 1;
    float *q = realloc(*p, (n ? n : 1) * sizeof *q);
    if (!q) return 0;
    *p = q;
    return 1;
}

rlhf_status rlhf__head_store_reserve(struct rlhf__head_store *s, uint32_t heads, size_t rows,
                                     size_t tokens, int32_t n_labels, struct rlhf__error *err) {
    s->heads.size = sizeof s->heads;
    if (s->tokens >= tokens && s->rows >= rows) return RLHF_OK;
    if (tokens < s->tokens) tokens = s->tokens;
    if (rows < s->rows) rows = s->rows;
    if (!grow(&s->heads.logp, tokens, heads & RLHF_HEAD_LOGP) ||
        !grow(&s->heads.entropy, tokens, heads & RLHF_HEAD_ENTROPY) ||
        !grow(&s->heads.kl, tokens, heads & RLHF_HEAD_KL) ||
        !grow(&s->heads.value, tokens, heads & RLHF_HEAD_VALUE) ||
        !grow(&s->heads.token_score, tokens, heads & RLHF_HEAD_TOKEN_SCORE) ||
        !grow(&s->heads.score, rows * (size_t)n_labels, heads & RLHF_HEAD_SCORE))
        return rlhf__fail(err, RLHF_E_NOMEM, "out of memory for %zu tokens", tokens);
    s->tokens = tokens;
    s->rows = rows;
    return RLHF_OK;
}

void rlhf__head_store_clear(struct rlhf__head_store *s, size_t rows, size_t tokens,
                            int32_t n_labels) {
    if (s->heads.logp) memset(s->heads.logp, 0, tokens * sizeof(float));
    if (s->heads.entropy) memset(s->heads.entropy, 0, tokens * sizeof(float));
    if (s->heads.kl) memset(s->heads.kl, 0, tokens * sizeof(float));
    if (s->heads.value) memset(s->heads.value, 0, tokens * sizeof(float));
    if (s->heads.token_score) memset(s->heads.token_score, 0, tokens * sizeof(float));
    if (s->heads.score) memset(s->heads.score, 0, rows * (size_t)n_labels * sizeof(float));
}

void rlhf__head_store_finish(struct rlhf__head_store *s) {
    free(s->heads.logp);
    free(s->heads.entropy);
    free(s->heads.kl);
    free(s->heads.value);
    free(s->heads.token_score);
    free(s->heads.score);
    memset(s, 0, sizeof *s);
}
