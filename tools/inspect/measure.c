// measure.c: see measure.h.
#include "inspect/measure.h"

#include <stdlib.h>
#include <string.h>

static const rlhf_dist whole = RLHF_DIST_WHOLE;

// One row, whose prompt is its first token.
static rlhf_status forward(const struct rlhf__model *m, const int32_t *ids, uint32_t n,
                           uint32_t heads, const rlhf_heads *out, struct rlhf__error *err) {
    const int32_t offset[] = {0, (int32_t)n}, prompt_len[] = {1};
    const rlhf_batch b = {.size = sizeof b,
                          .n = 1,
                          .total = n,
                          .ids = ids,
                          .offset = offset,
                          .prompt_len = prompt_len};
    const rlhf_forward f = {.size = sizeof f, .heads = heads, .dist = &whole};
    return rlhf__model_forward(m, &b, &f, out, err);
}

// forward() scores response tokens only, so the first token is scored in a separate row.
rlhf_status rlhf__measure_score(const struct rlhf__model *m, const int32_t *ids, uint32_t n,
                                float *out, struct rlhf__error *err) {
    float first = 0;
    const rlhf_heads one = {.size = sizeof one, .score = &first};
    const rlhf_heads all = {.size = sizeof all, .token_score = out};
    RLHF_TRY(forward(m, ids, 1, RLHF_HEAD_SCORE, &one, err));
    if (n > 1) RLHF_TRY(forward(m, ids, n, RLHF_HEAD_TOKEN_SCORE, &all, err));
    out[0] = first;
    return RLHF_OK;
}

// The row gets one more token at its end, because value[t] is the value of the state before token
// t, and the value after the last token is needed too.
rlhf_status rlhf__measure_value(const struct rlhf__model *m, const int32_t *ids, uint32_t n,
                                float *out, struct rlhf__error *err) {
    int32_t *longer = malloc(((size_t)n + 1) * sizeof *longer);
    float *value = malloc(((size_t)n + 1) * sizeof *value);
    rlhf_status st = RLHF_OK;
    if (!longer || !value) st = RLHF__NOMEM(err, "out of memory for values");
    if (st == RLHF_OK) {
        const rlhf_heads all = {.size = sizeof all, .value = value};
        memcpy(longer, ids, n * sizeof *longer);
        longer[n] = ids[0];
        st = forward(m, longer, n + 1, RLHF_HEAD_VALUE, &all, err);
    }
    if (st == RLHF_OK) memcpy(out, value + 1, n * sizeof *out);
    free(longer);
    free(value);
    return st;
}
