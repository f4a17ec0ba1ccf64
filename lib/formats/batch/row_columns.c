// row_columns.c: see row_columns.h.
#include "batch/row_columns.h"

#define IN(f)     offsetof(rlhf_rollout, f), 0, 0
#define LOSS(f)   0, 0, offsetof(rlhf_loss_in, f)
#define BOTH(f)   offsetof(rlhf_rollout, f), 0, offsetof(rlhf_loss_in, f)
#define RESULT(f) 0, offsetof(rlhf_advantages, f), offsetof(rlhf_loss_in, f)
#define USE       0, offsetof(rlhf_advantages, use), 0
#define NOWHERE   0, 0, 0
#define ONE       0
#define WIDTH(f)  offsetof(struct rlhf__rows, f)
#define ROW       0
#define TOKEN     1
#define ALWAYS    1
#define MAYBE     0
#define BYTES(m)  sizeof(*((struct rlhf__rows *)0)->m)
#define ARRAYS(member, ...)                                                                        \
    { #member, offsetof(struct rlhf__rows, member), __VA_ARGS__ }
#define COLUMN(member, passed, width, of, always, needs)                                           \
    ARRAYS(member, passed, width, BYTES(member), of, always, 1, needs)

// clang-format off
const struct rlhf__row_column rlhf__row_columns[] = {
    // the member of struct rlhf__rows; where algorithms get it: in rlhf_rollout and in rlhf_loss_in
    // (BOTH), in one of them, or as a RESULT of advantages() and in rlhf_loss_in; the number of
    // elements; for each row or token; in every batch or not; what it needs
    COLUMN(ids, BOTH(ids), ONE, TOKEN, ALWAYS, 0),
    COLUMN(turn, BOTH(turn), ONE, TOKEN, MAYBE, 0),
    COLUMN(prompt_len, BOTH(prompt_len), ONE, ROW, ALWAYS, 0),
    COLUMN(group, BOTH(group), ONE, ROW, ALWAYS, 0),
    COLUMN(row, BOTH(row), ONE, ROW, ALWAYS, 0),
    COLUMN(label, BOTH(label), ONE, ROW, ALWAYS, 0),
    COLUMN(source, BOTH(source), ONE, ROW, ALWAYS, 0),
    COLUMN(version, BOTH(version), ONE, ROW, ALWAYS, RLHF__NEEDS_DRAWN),
    COLUMN(finished, IN(finished), ONE, ROW, ALWAYS, 0),
    COLUMN(margin, LOSS(margin), ONE, ROW, MAYBE, 0),
    COLUMN(left_out, LOSS(left_out), ONE, TOKEN, MAYBE, 0),
    COLUMN(score, IN(score), ONE, ROW, ALWAYS, 0),
    COLUMN(reward, NOWHERE, ONE, ROW, ALWAYS, 0),
    COLUMN(reward_score, IN(reward_score), WIDTH(n_rewards), ROW, MAYBE, 0),
    COLUMN(token[RLHF__TOKEN_REWARD], IN(token_reward), ONE, TOKEN, ALWAYS, 0),
    COLUMN(token[RLHF__LOGP_OLD], BOTH(logp_old), ONE, TOKEN, ALWAYS, 0),
    COLUMN(token[RLHF__LOGP_SAMPLED], BOTH(logp_sampled), ONE, TOKEN, ALWAYS, RLHF__NEEDS_DRAWN),
    COLUMN(token[RLHF__LOGP_REF], BOTH(logp_ref), ONE, TOKEN, ALWAYS, RLHF__NEEDS_REFERENCE),
    COLUMN(token[RLHF__VALUE_OLD], BOTH(value_old), ONE, TOKEN, ALWAYS, RLHF__NEEDS_VALUE),
    COLUMN(token[RLHF__ADVANTAGE], RESULT(advantage), ONE, TOKEN, ALWAYS, 0),
    COLUMN(token[RLHF__RETURNS], RESULT(returns), ONE, TOKEN, ALWAYS, 0),
    COLUMN(use, USE, ONE, ROW, ALWAYS, 0),
    COLUMN(carry_row, RESULT(carry_row), WIDTH(carry_rows), ROW, MAYBE, 0),
    COLUMN(carry_token, RESULT(carry_token), WIDTH(carry_tokens), TOKEN, MAYBE, 0),
    COLUMN(end, NOWHERE, ONE, ROW, MAYBE, 0),
    COLUMN(verdict, NOWHERE, ONE, ROW, MAYBE, 0),
    COLUMN(paid, NOWHERE, ONE, TOKEN, MAYBE, 0),
    COLUMN(ref_hidden, NOWHERE, WIDTH(d_hidden), TOKEN, MAYBE, 0),
    // algorithms get an array of pointers, logp_named
    ARRAYS(named, NOWHERE, ONE, sizeof(float), TOKEN, MAYBE, RLHF_NAMED_MAX, 0),
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

void rlhf__columns_to_results(struct rlhf__rows *e, rlhf_advantages *out) {
    for (size_t i = 0; i < rlhf__n_row_columns; i++) {
        const struct rlhf__row_column *c = &rlhf__row_columns[i];
        void *all = rlhf__row_column(e, c, 0);
        if (!c->result_at) continue;
        pass(e, c, 0, (char *)out + c->result_at);
        if (all) memset(all, 0, (c->per_token ? e->total : e->n) * rlhf__row_column_bytes(e, c));
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
