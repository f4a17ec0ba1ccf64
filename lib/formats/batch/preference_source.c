// preference_source.c: see preference_source.h.
#include "batch/preference_source.h"

#include <stdlib.h>
#include <string.h>

// Returns the number of tokens of a preference, for batches that are limited by tokens.
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
    s->max_tokens = rows->max_tokens;
    RLHF_TRY(rlhf__preferences_open(rows, tok, &s->set, err));
    return rlhf__batches_init(&s->batches, rlhf__preferences_count(s->set), batches, row_length,
                              s->set, err);
}

void rlhf__preference_source_finish(struct rlhf__preference_source *s) {
    rlhf__batches_finish(&s->batches);
    rlhf__preferences_close(s->set);
    memset(s, 0, sizeof *s);
}

// Write row `at` of e: the prompt of p, then a response of `len` tokens.
static void put_row(const struct rlhf__preference *p, const int32_t *ids, int32_t len,
                    struct rlhf__rows *e, uint32_t at) {
    int32_t *to = e->ids + e->offset[at];
    memcpy(to, p->prompt, (size_t)p->n_prompt * sizeof *to);
    memcpy(to + p->n_prompt, ids, (size_t)len * sizeof *to);
    e->offset[at + 1] = e->offset[at] + p->n_prompt + len;
    e->prompt_len[at] = p->n_prompt;
}

// Write all responses of a preference to rows, from row *at onward.
static void put_group(const struct rlhf__preference *p, int32_t group, struct rlhf__rows *e,
                      uint32_t *at) {
    const int32_t *ids = p->ids;
    for (int32_t j = 0; j < p->n; j++, ++*at) {
        put_row(p, ids, p->len[j], e, *at);
        ids += p->len[j];
        e->source[*at] = p->row;
        e->group[*at] = group;
        e->label[*at] = j == p->best;
        if (e->margin) e->margin[*at] = p->margin;
    }
}

static rlhf_status batch_init(struct rlhf__rows *e, int64_t rows, int64_t total,
                              struct rlhf__error *err) {
    if (total > INT32_MAX)
        return rlhf__fail(err, RLHF_E_INVALID, "a batch of %lld tokens is too large",
                          (long long)total);
    RLHF_TRY(rlhf__rows_init(e, (uint32_t)rows, (uint32_t)total, err));
    e->flags = RLHF__SHARE_PROMPTS | RLHF__WHOLE_GROUPS;
    return RLHF_OK;
}

rlhf_status rlhf__preference_rows(const struct rlhf__preferences *set, const int64_t *pick,
                                  uint32_t n, struct rlhf__rows *e, struct rlhf__error *err) {
    int64_t rows = 0, total = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct rlhf__preference p = rlhf__preferences_get(set, pick[i]);
        rows += p.n;
        total += rlhf__preference_tokens(&p);
    }
    RLHF_TRY(batch_init(e, rows, total, err));
    if (rlhf__preferences_margins(set)) RLHF_TRY(RLHF__ROWS_ADD(e, margin, err));
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct rlhf__preference p = rlhf__preferences_get(set, pick[i]);
        put_group(&p, (int32_t)i, e, &at);
    }
    return RLHF_OK;
}

// Returns the preference whose completion is used in the mismatched row of pick i.
static struct rlhf__preference other(const struct rlhf__preferences *set, const int64_t *pick,
                                     uint32_t n, uint32_t i) {
    const int64_t all = rlhf__preferences_count(set);
    const int64_t row = n > 1 ? pick[(i + n - 1) % n] : (pick[0] + all - 1) % all;
    return rlhf__preferences_get(set, row);
}

static int32_t other_len(const struct rlhf__preference *p, const struct rlhf__preference *o,
                         int32_t max_tokens) {
    const int32_t room = max_tokens - p->n_prompt;
    return o->len[0] < room ? o->len[0] : room;
}

rlhf_status rlhf__mismatched_rows(const struct rlhf__preferences *set, const int64_t *pick,
                                  uint32_t n, int32_t max_tokens, struct rlhf__rows *e,
                                  struct rlhf__error *err) {
    int64_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct rlhf__preference p = rlhf__preferences_get(set, pick[i]);
        const struct rlhf__preference o = other(set, pick, n, i);
        total += rlhf__preference_tokens(&p) + p.n_prompt + other_len(&p, &o, max_tokens);
    }
    RLHF_TRY(batch_init(e, 2 * (int64_t)n, total, err));
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct rlhf__preference p = rlhf__preferences_get(set, pick[i]);
        const struct rlhf__preference o = other(set, pick, n, i);
        put_group(&p, (int32_t)i, e, &at);
        put_row(&p, o.ids, other_len(&p, &o, max_tokens), e, at);
        e->source[at] = p.row;
        e->group[at] = (int32_t)i;
        e->label[at++] = -1;
    }
    return RLHF_OK;
}

rlhf_status rlhf__preference_source_next(struct rlhf__preference_source *s, struct rlhf__rows *e,
                                         struct rlhf__error *err) {
    int64_t *pick = NULL;
    uint32_t n, total;
    rlhf_status st = rlhf__batches_next(&s->batches, &pick, &n, &total, err);
    if (st == RLHF_OK)
        st = s->mismatched && n ? rlhf__mismatched_rows(s->set, pick, n, s->max_tokens, e, err)
                                : rlhf__preference_rows(s->set, pick, n, e, err);
    free(pick);
    return st;
}
