// row_columns.c: see row_columns.h.
#include "batch/row_columns.h"

#define IN_ROLLOUT(f) offsetof(rlhf_rollout, f)
#define IN_LOSS(f)    offsetof(rlhf_loss_in, f)
#define WIDTH(f)      offsetof(struct rlhf__rows, f)
#define NO            0
#define FOR_ROW       0
#define FOR_TOKEN     1
#define ALWAYS        1
#define MAYBE         0

// COLUMN: the member of struct rlhf__rows; rlhf_rollout, rlhf_loss_in; width; for a row or a token;
// in every batch or not; needs
#define COLUMN(member, rollout, loss, width, of, always, needs)                                    \
    {                                                                                              \
#member, offsetof(struct rlhf__rows, member), rollout, loss, width,                        \
            sizeof(*((struct rlhf__rows *)0)->member), of, always, 1, needs, 0                     \
    }

// clang-format off
const struct rlhf__row_column rlhf__row_columns[] = {
    COLUMN(ids, IN_ROLLOUT(ids), IN_LOSS(ids), 0, FOR_TOKEN, ALWAYS, 0),
    COLUMN(turn, IN_ROLLOUT(turn), IN_LOSS(turn), 0, FOR_TOKEN, MAYBE, 0),
    COLUMN(prompt_len, IN_ROLLOUT(prompt_len), IN_LOSS(prompt_len), 0, FOR_ROW, ALWAYS, 0),
    COLUMN(group, IN_ROLLOUT(group), IN_LOSS(group), 0, FOR_ROW, ALWAYS, 0),
    COLUMN(label, IN_ROLLOUT(label), IN_LOSS(label), 0, FOR_ROW, ALWAYS, 0),
    COLUMN(source, IN_ROLLOUT(source), IN_LOSS(source), 0, FOR_ROW, ALWAYS, 0),
    COLUMN(version, IN_ROLLOUT(version), IN_LOSS(version), 0, FOR_ROW, ALWAYS, RLHF__NEEDS_DRAWN),
    COLUMN(finished, IN_ROLLOUT(finished), NO, 0, FOR_ROW, ALWAYS, 0),
    COLUMN(use, IN_ROLLOUT(use), NO, 0, FOR_ROW, ALWAYS, 0),
    COLUMN(score, IN_ROLLOUT(score), NO, 0, FOR_ROW, ALWAYS, 0),
    COLUMN(reward, NO, NO, 0, FOR_ROW, ALWAYS, 0),
    COLUMN(margin, NO, IN_LOSS(margin), 0, FOR_ROW, MAYBE, 0),
    COLUMN(left_out, NO, IN_LOSS(left_out), 0, FOR_TOKEN, MAYBE, 0),
    COLUMN(token[RLHF__TOKEN_REWARD], IN_ROLLOUT(token_reward), NO, 0, FOR_TOKEN, ALWAYS, 0),
    COLUMN(token[RLHF__LOGP_OLD], IN_ROLLOUT(logp_old), IN_LOSS(logp_old), 0, FOR_TOKEN, ALWAYS, 0),
    COLUMN(token[RLHF__LOGP_REF], IN_ROLLOUT(logp_ref), IN_LOSS(logp_ref), 0, FOR_TOKEN, ALWAYS,
           RLHF__NEEDS_REFERENCE),
    COLUMN(token[RLHF__VALUE_OLD], IN_ROLLOUT(value_old), IN_LOSS(value_old), 0, FOR_TOKEN, ALWAYS,
           RLHF__NEEDS_VALUE),
    COLUMN(token[RLHF__ADVANTAGE], IN_ROLLOUT(advantage), IN_LOSS(advantage), 0, FOR_TOKEN, ALWAYS,
           0),
    COLUMN(token[RLHF__RETURNS], IN_ROLLOUT(returns), IN_LOSS(returns), 0, FOR_TOKEN, ALWAYS, 0),
    COLUMN(token[RLHF__LOGP_SAMPLED], IN_ROLLOUT(logp_sampled), IN_LOSS(logp_sampled), 0, FOR_TOKEN,
           ALWAYS, RLHF__NEEDS_DRAWN),
    COLUMN(end, NO, NO, 0, FOR_ROW, MAYBE, 0),
    COLUMN(verdict, NO, NO, 0, FOR_ROW, MAYBE, 0),
    COLUMN(paid, NO, NO, 0, FOR_TOKEN, MAYBE, 0),
    COLUMN(ref_hidden, NO, NO, WIDTH(d_hidden), FOR_TOKEN, MAYBE, 0),
    // passed as logp_named, an array of pointers
    {"named", offsetof(struct rlhf__rows, named), NO, NO, 0, sizeof(float), FOR_TOKEN, MAYBE,
     RLHF_NAMED_MAX, 0, 0},
};
// clang-format on
const size_t rlhf__n_row_columns = sizeof rlhf__row_columns / sizeof *rlhf__row_columns;

size_t rlhf__row_column_bytes(const struct rlhf__rows *e, const struct rlhf__row_column *c) {
    uint32_t width = 1;
    if (c->width_at) memcpy(&width, (const char *)e + c->width_at, sizeof width);
    return (size_t)width * c->size;
}

// Store the column, from row `from` onward, in the pointer at `to`.
static void pass(const struct rlhf__rows *e, const struct rlhf__row_column *c, uint32_t from,
                 void *to) {
    char *p = rlhf__row_column(e, c, 0);
    const size_t first = c->per_token ? (size_t)e->offset[from] : from;
    if (p) p += first * rlhf__row_column_bytes(e, c);
    memcpy(to, &p, sizeof p);
}

void rlhf__columns_to_rollout(const struct rlhf__rows *e, uint32_t has, rlhf_rollout *out) {
    for (size_t i = 0; i < rlhf__n_row_columns; i++) {
        const struct rlhf__row_column *c = &rlhf__row_columns[i];
        if (c->rollout_at && !(c->needs & ~(has | RLHF__NEEDS_DRAWN)))
            pass(e, c, 0, (char *)out + c->rollout_at);
    }
}

void rlhf__columns_to_loss(const struct rlhf__rows *e, uint32_t from, uint32_t has,
                           rlhf_loss_in *out) {
    if (e->flags & RLHF__DRAWN) has |= RLHF__NEEDS_DRAWN;
    for (size_t i = 0; i < rlhf__n_row_columns; i++) {
        const struct rlhf__row_column *c = &rlhf__row_columns[i];
        if (c->loss_at && !(c->needs & ~has)) pass(e, c, from, (char *)out + c->loss_at);
    }
}
