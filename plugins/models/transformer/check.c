// transformer/check.c: validates the caller's input, which is a batch of rows or a generation step.
// For a step it also tracks the slots. rows.c copies the input to the device, and gen.c runs the
// step.
#include "internal.h"

static rlhf_status check_row(struct rlhf__tf *m, const rlhf_batch *b, uint32_t i,
                             int32_t want_resp) {
    const int64_t len = (int64_t)b->offset[i + 1] - b->offset[i];
    if (len < 1 || b->offset[i + 1] > (int64_t)b->total)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "batch row %u: %lld tokens, at least 1 is needed",
                             i, (long long)len);
    if (len > m->arch.n_ctx)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "batch row %u: %lld tokens do not fit the model's context of %d", i,
                             (long long)len, m->arch.n_ctx);
    if (want_resp && (b->prompt_len[i] < 1 || b->prompt_len[i] > len))
        return rlhf__tf_fail(m, RLHF_E_INVALID, "batch row %u: prompt_len %d is outside 1 .. %lld",
                             i, b->prompt_len[i], (long long)len);
    for (int32_t t = b->offset[i]; t < b->offset[i + 1]; t++)
        if (b->ids[t] < 0 || b->ids[t] >= rlhf__tf_embedded(m))
            return rlhf__tf_fail(m, RLHF_E_INVALID,
                                 "batch row %u: token id %d is outside the vocabulary of %d", i,
                                 b->ids[t], rlhf__tf_embedded(m));
    return RLHF_OK;
}

// Checks the turns of row i's tokens. The prompt has turn -1, and the first token after it has turn
// 0. A later token has turn -1 if it was not sampled. Otherwise its turn is that of the last
// sampled token before it, or one more.
static rlhf_status check_row_turns(struct rlhf__tf *m, const rlhf_batch *b, uint32_t i) {
    const int32_t first = b->offset[i] + b->prompt_len[i];
    int32_t last = -1;
    for (int32_t t = b->offset[i]; t < b->offset[i + 1]; t++) {
        const int32_t turn = b->turn[t];
        const int bad = t < first    ? turn != -1
                        : t == first ? turn != 0
                                     : turn != -1 && turn != last && turn != last + 1;
        if (bad)
            return rlhf__tf_fail(m, RLHF_E_INVALID,
                                 "batch row %u: token %d has turn %d; -1 up to prompt_len, then 0, "
                                 "and from there -1 or a turn that ascends by one",
                                 i, t - b->offset[i], turn);
        if (turn >= 0) last = turn;
    }
    return RLHF_OK;
}

// Checks that row i may continue row prefix[i]. That row must come earlier and must not have a
// prefix. The rows that continue it must directly follow it.
static rlhf_status check_row_prefix(struct rlhf__tf *m, const rlhf_batch *b, uint32_t i,
                                    int32_t want_resp) {
    const int32_t p = b->prefix[i];
    if (p == -1) return RLHF_OK;
    if (p < 0 || (uint32_t)p >= i)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "batch row %u: its prefix must be an earlier row or -1, not %d", i, p);
    if (b->prefix[p] != -1)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "batch row %u: its prefix, row %d, has a prefix of its own", i, p);
    if ((uint32_t)p != i - 1 && b->prefix[i - 1] != p)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "batch row %u: the rows that share row %d must follow it directly", i,
                             p);
    const int64_t len = (int64_t)b->offset[p + 1] - b->offset[p];
    if (want_resp && b->prompt_len[p] != len)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "batch row %d: prompt_len %d of a prefix of %lld tokens, it must be "
                             "all of them",
                             p, b->prompt_len[p], (long long)len);
    const int64_t all = len + b->offset[i + 1] - b->offset[i];
    if (all > m->arch.n_ctx)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "batch row %u: %lld tokens with its prefix do not fit the model's "
                             "context of %d",
                             i, (long long)all, m->arch.n_ctx);
    return RLHF_OK;
}

int32_t rlhf__tf_has_prefix(const int32_t *prefix, uint32_t n) {
    for (uint32_t i = 0; prefix && i < n; i++)
        if (prefix[i] != -1) return 1;
    return 0;
}

rlhf_status rlhf__tf_batch_check(struct rlhf__tf *m, const rlhf_batch *b, int32_t want_resp) {
    if (!b || !b->n || !b->ids || !b->offset || (want_resp && !b->prompt_len))
        return rlhf__tf_fail(m, RLHF_E_INVALID, "batch: no rows");
    if (b->total > INT32_MAX || b->offset[0] != 0 || b->offset[b->n] != (int64_t)b->total)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "batch: offsets do not cover its %u tokens",
                             b->total);
    for (uint32_t i = 0; i < b->n; i++)
        RLHF_TRY(check_row(m, b, i, want_resp));
    for (uint32_t i = 0; want_resp && b->turn && i < b->n; i++)
        RLHF_TRY(check_row_turns(m, b, i));
    if (!rlhf__tf_has_prefix(b->prefix, b->n)) return RLHF_OK;
    if (!m->arch.causal)
        return rlhf__tf_fail(m, RLHF_E_UNSUPPORTED, "batch: an encoder's rows share no prefixes");
    for (uint32_t i = 0; i < b->n; i++)
        RLHF_TRY(check_row_prefix(m, b, i, want_resp));
    return RLHF_OK;
}

// ---- generation ----

// Checks that row i fits in its slot and starts at the slot's end, and that no other row of the
// step writes to the slot.
static rlhf_status check_slot(struct rlhf__tf *m, rlhf_gen *g, const rlhf_gen_step *s, uint32_t i) {
    const int32_t slot = s->slot[i], start = s->start[i];
    const int64_t len = (int64_t)s->offset[i + 1] - s->offset[i];
    if (slot < 0 || (uint32_t)slot >= g->n_slots)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "generation row %u: slot %d is out of range", i,
                             slot);
    struct rlhf__gen_slot *to = &g->slots[slot];
    if (to->use)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "generation row %u: slot %d is used twice", i,
                             slot);
    if (start && start != to->held)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "generation row %u: start %d, but slot %d holds %d tokens", i, start,
                             slot, to->held);
    if (start + len > g->max_len)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "generation row %u: %lld tokens do not fit a slot of %u", i,
                             (long long)start + (long long)len, g->max_len);
    to->use =
        s->silent && s->silent[i] && (!s->prefix || s->prefix[i] == -1) ? TF_FILLED : TF_WRITTEN;
    to->after = start + (int32_t)len;
    return RLHF_OK;
}

// Row i continues a slot. Checks that this slot was begun with the prefix in slot p (-1: none), and
// that slot p has not changed since then.
static rlhf_status check_same_prefix(struct rlhf__tf *m, const rlhf_gen *g, const rlhf_gen_step *s,
                                     uint32_t i, int32_t p) {
    const struct rlhf__gen_slot *slot = &g->slots[s->slot[i]];
    if (slot->prefix != p)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "generation row %u: prefix %d, but slot %d was begun with prefix %d",
                             i, p, s->slot[i], slot->prefix);
    if (p >= 0 && (g->slots[p].use || g->slots[p].stamp != slot->prefix_stamp))
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "generation row %u: slot %d was written to after slot %d was begun "
                             "with it as its prefix",
                             i, p, s->slot[i]);
    return RLHF_OK;
}

// Checks that row i may use slot p as the prefix of its own slot.
static rlhf_status check_slot_prefix(struct rlhf__tf *m, const rlhf_gen *g, const rlhf_gen_step *s,
                                     uint32_t i) {
    const int32_t p = s->prefix ? s->prefix[i] : -1;
    if (p < -1 || p >= (int64_t)g->n_slots)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "generation row %u: prefix slot %d is out of range",
                             i, p);
    if (s->start[i]) RLHF_TRY(check_same_prefix(m, g, s, i, p));
    if (p == -1) return RLHF_OK;
    const struct rlhf__gen_slot *from = &g->slots[p];
    if (from->use == TF_WRITTEN)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "generation row %u: prefix slot %d is written to in this step by a "
                             "row that draws or has a prefix",
                             i, p);
    if (!from->use && from->prefix != -1)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "generation row %u: prefix slot %d has a prefix of its own", i, p);
    if (!from->after)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "generation row %u: prefix slot %d is empty", i, p);
    const int64_t all = (int64_t)from->after + g->slots[s->slot[i]].after;
    if (all > m->arch.n_ctx)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "generation row %u: %lld tokens with its prefix do not fit the "
                             "model's context of %d",
                             i, (long long)all, m->arch.n_ctx);
    return RLHF_OK;
}

rlhf_status rlhf__tf_step_check(struct rlhf__tf *m, rlhf_gen *g, const rlhf_gen_step *s) {
    const rlhf_batch b = {.size = sizeof b,
                          .n = s->n,
                          .total = s->n ? (uint32_t)s->offset[s->n] : 0,
                          .ids = s->ids,
                          .offset = s->offset};
    RLHF_TRY(rlhf__tf_batch_check(m, &b, 0));
    for (uint32_t i = 0; i < g->n_slots; i++) {
        g->slots[i].use = TF_UNUSED;
        g->slots[i].after = g->slots[i].held;
    }
    for (uint32_t i = 0; i < s->n; i++)
        RLHF_TRY(check_slot(m, g, s, i));
    for (uint32_t i = 0; i < s->n; i++)
        RLHF_TRY(check_slot_prefix(m, g, s, i));
    return RLHF_OK;
}

void rlhf__tf_step_commit(rlhf_gen *g, const rlhf_gen_step *s) {
    for (uint32_t i = 0; i < s->n; i++) {
        struct rlhf__gen_slot *slot = &g->slots[s->slot[i]];
        slot->held = slot->after;
        slot->origin = slot->next_origin;
        slot->stamp++;
    }
    for (uint32_t i = 0; i < s->n; i++) { // prefixes that this step fills get new stamps
        struct rlhf__gen_slot *slot = &g->slots[s->slot[i]];
        slot->prefix = s->prefix ? s->prefix[i] : -1;
        slot->prefix_stamp = slot->prefix < 0 ? 0 : g->slots[slot->prefix].stamp;
    }
}
