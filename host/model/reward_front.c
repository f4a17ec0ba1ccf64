// reward_front.c: see reward_front.h.
#include "model/reward_front.h"

#include <stdlib.h>
#include <string.h>

int32_t rlhf__reward_front(const struct rlhf__tokenizer *tok, const int32_t *row,
                           int32_t prompt_len) {
    int32_t bos = rlhf__tokenizer_info(tok)->bos;
    int has = prompt_len > 0 && row[0] == bos, wants = rlhf__tokenizer_has_bos(tok);
    if (bos < 0 || has == wants) return 0;
    return wants ? 1 : -(prompt_len > 1);
}

rlhf_status rlhf__reward_rows(const struct rlhf__tokenizer *tok, uint32_t n, const int32_t *ids,
                              const int32_t *offset, const int32_t *prompt_len,
                              struct rlhf__fronted *out, struct rlhf__error *err) {
    int64_t total = 0;
    int changed = 0;
    *out = (struct rlhf__fronted){ids, offset, prompt_len, NULL};
    for (uint32_t i = 0; i < n; i++) {
        int32_t more = rlhf__reward_front(tok, ids + offset[i], prompt_len[i]);
        changed |= more != 0;
        total += (int64_t)(offset[i + 1] - offset[i]) + more;
    }
    if (!changed) return RLHF_OK;
    if (total > INT32_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "%lld tokens are too many for one batch",
                          (long long)total);
    int32_t *own = malloc(((size_t)total + 2 * (size_t)n + 1) * sizeof *own);
    if (!own) return RLHF__NOMEM(err, "out of memory for the rows of a reward model");
    int32_t *to = own, *end = own + total, *len = end + n + 1;
    out->own = own;
    out->ids = own;
    out->offset = end;
    out->prompt_len = len;
    for (uint32_t i = 0; i < n; i++) {
        const int32_t *row = ids + offset[i];
        int32_t more = rlhf__reward_front(tok, row, prompt_len[i]);
        int32_t kept = offset[i + 1] - offset[i] - (more < 0);
        end[i] = (int32_t)(to - own);
        len[i] = prompt_len[i] + more;
        if (more > 0) *to++ = rlhf__tokenizer_info(tok)->bos;
        memcpy(to, row + (more < 0), (size_t)kept * sizeof *to);
        to += kept;
    }
    end[n] = (int32_t)total;
    return RLHF_OK;
}

void rlhf__fronted_finish(struct rlhf__fronted *f) {
    free(f->own);
    *f = (struct rlhf__fronted){0};
}

void rlhf__fronted_tokens(const struct rlhf__fronted *f, uint32_t n, const int32_t *offset,
                          const float *fronted, float *token) {
    for (uint32_t i = 0; i < n; i++) {
        int32_t len = offset[i + 1] - offset[i], own = f->offset[i + 1] - f->offset[i];
        int32_t shared = len < own ? len : own; // the rows end alike
        for (int32_t k = 0; k < len - shared; k++)
            token[offset[i] + k] = 0;
        memcpy(token + offset[i + 1] - shared, fronted + f->offset[i + 1] - shared,
               (size_t)shared * sizeof *token);
    }
}
