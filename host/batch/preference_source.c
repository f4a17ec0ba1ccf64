// preference_source.c: see preference_source.h.
#include "batch/preference_source.h"

#include <stdlib.h>
#include <string.h>

static int64_t row_length(const void *set, int64_t i) {
    struct rlhf__preference p = rlhf__preferences_get(set, i);
    return rlhf__preference_tokens(&p);
}

rlhf_status rlhf__preference_source_open(struct rlhf__preference_source *s,
                                         const struct rlhf__preference_opts *rows,
                                         const struct rlhf__batch_opts *batches,
                                         const struct rlhf__tokenizer *tok,
                                         struct rlhf__error *err) {
    memset(s, 0, sizeof *s);
    rlhf_status st = rlhf__preferences_open(rows, tok, &s->set, err);
    if (st != RLHF_OK) return st;
    return rlhf__batches_init(&s->batches, rlhf__preferences_count(s->set), batches, row_length,
                              s->set, err);
}

void rlhf__preference_source_finish(struct rlhf__preference_source *s) {
    rlhf__batches_finish(&s->batches);
    rlhf__preferences_close(s->set);
    memset(s, 0, sizeof *s);
}

// Rows *at.. of e: the responses of one preference.
static void put_group(const struct rlhf__preference *p, int64_t source, int32_t group,
                      struct rlhf__rows *e, uint32_t *at) {
    const int32_t *ids = p->ids;
    for (int32_t j = 0; j < p->n; j++, ++*at) {
        int32_t *to = e->ids + e->offset[*at];
        memcpy(to, p->prompt, (size_t)p->n_prompt * sizeof *to);
        memcpy(to + p->n_prompt, ids, (size_t)p->len[j] * sizeof *to);
        ids += p->len[j];
        e->offset[*at + 1] = e->offset[*at] + p->n_prompt + p->len[j];
        e->prompt_len[*at] = p->n_prompt;
        e->source[*at] = source;
        e->group[*at] = group;
        e->label[*at] = j == p->best;
    }
}

rlhf_status rlhf__preference_rows(const struct rlhf__preferences *set, const int64_t *pick,
                                  uint32_t n, struct rlhf__rows *e, struct rlhf__error *err) {
    int64_t rows = 0, total = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct rlhf__preference p = rlhf__preferences_get(set, pick[i]);
        rows += p.n;
        total += rlhf__preference_tokens(&p);
    }
    if (total > INT32_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "a batch of %lld tokens is too large",
                          (long long)total);
    rlhf_status st = rlhf__rows_init(e, (uint32_t)rows, (uint32_t)total, err);
    if (st != RLHF_OK) return st;
    e->flags = RLHF__SHARE_PROMPTS | RLHF__WHOLE_GROUPS;
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct rlhf__preference p = rlhf__preferences_get(set, pick[i]);
        put_group(&p, pick[i], (int32_t)i, e, &at);
    }
    return RLHF_OK;
}

rlhf_status rlhf__preference_source_next(struct rlhf__preference_source *s, struct rlhf__rows *e,
                                         struct rlhf__error *err) {
    int64_t *pick = NULL;
    uint32_t n, total;
    rlhf_status st = rlhf__batches_next(&s->batches, &pick, &n, &total, err);
    if (st == RLHF_OK) st = rlhf__preference_rows(s->set, pick, n, e, err);
    free(pick);
    return st;
}
