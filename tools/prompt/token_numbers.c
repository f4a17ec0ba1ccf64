// token_numbers.c: see token_numbers.h.
#include "prompt/token_numbers.h"

#include <stdlib.h>
#include <string.h>

static rlhf_status forward(const struct rlhf__model *m, const int32_t *ids,
                           const struct rlhf__token_row *row, uint32_t heads, const rlhf_heads *out,
                           struct rlhf__error *err) {
    static const rlhf_dist whole = RLHF_DIST_WHOLE;
    const int32_t total = (int32_t)(row->n_prompt + row->n);
    const int32_t offset[] = {0, total}, prompt_len[] = {(int32_t)row->n_prompt};
    const rlhf_batch b = {.size = sizeof b,
                          .n = 1,
                          .total = (uint32_t)total,
                          .ids = ids,
                          .offset = offset,
                          .prompt_len = prompt_len};
    const rlhf_forward f = {.size = sizeof f, .heads = heads, .dist = &whole};
    return rlhf__model_forward(m, &b, &f, out, err);
}

// Drop the numbers of the prompt's tokens, which come first, by moving those of the text to the
// front.
static void drop_prompt(float *x, const struct rlhf__token_row *row) {
    if (x) memmove(x, x + row->n_prompt, row->n * sizeof *x);
}

rlhf_status rlhf__token_numbers_take(const struct rlhf__model *m, const struct rlhf__model *critic,
                                     const struct rlhf__token_row *row,
                                     struct rlhf__token_numbers *out, struct rlhf__error *err) {
    const size_t total = row->n_prompt + row->n;
    const int has_entropy = (m->info.heads & RLHF_HEAD_ENTROPY) != 0;
    int32_t *ids = malloc(total * sizeof *ids);
    *out = (struct rlhf__token_numbers){.logp = calloc(total, sizeof *out->logp)};
    if (has_entropy) out->entropy = calloc(total, sizeof *out->entropy);
    if (critic) out->value = calloc(total, sizeof *out->value);
    rlhf_status st = RLHF_OK;
    if (!ids || !out->logp || (has_entropy && !out->entropy) || (critic && !out->value))
        st = RLHF__NOMEM(err, "out of memory for the numbers of %zu tokens", total);
    if (st == RLHF_OK && row->n) {
        const rlhf_heads policy = {
            .size = sizeof policy, .logp = out->logp, .entropy = out->entropy};
        const rlhf_heads values = {.size = sizeof values, .value = out->value};
        memcpy(ids, row->prompt, row->n_prompt * sizeof *ids);
        memcpy(ids + row->n_prompt, row->ids, row->n * sizeof *ids);
        st = forward(m, ids, row, RLHF_HEAD_LOGP | (has_entropy ? RLHF_HEAD_ENTROPY : 0u), &policy,
                     err);
        if (st == RLHF_OK && critic) st = forward(critic, ids, row, RLHF_HEAD_VALUE, &values, err);
    }
    if (st == RLHF_OK) {
        drop_prompt(out->logp, row);
        drop_prompt(out->entropy, row);
        drop_prompt(out->value, row);
    }
    free(ids);
    return st;
}

void rlhf__token_numbers_finish(struct rlhf__token_numbers *x) {
    free(x->logp);
    free(x->entropy);
    free(x->value);
    *x = (struct rlhf__token_numbers){0};
}
