// transformer/frozen.c: fills matrices of which the model keeps only a packed copy or the quantised
// rows of a file (fill_begin and fill_blocks in rlhf/model.h).
#include "internal.h"

// The tensor of a parameter without values of its own; NULL for other parameters. `place` is
// TF_PASSES or TF_BLOCKS.
static struct rlhf__tf_tensor *valueless(struct rlhf__tf *m, uint32_t i, int32_t place) {
    const struct rlhf__tf_home *home = &m->homes[i];
    struct rlhf__tf_tensor *t =
        home->slot >= 0 ? rlhf__tf_tensor(m, home->layer, home->slot) : NULL;
    return t && t->place == place ? t : NULL;
}

rlhf_status rlhf__tf_fill_begin(void *self, uint32_t i, rlhf_dev *value) {
    struct rlhf__tf *m = self;
    if (i >= m->n_tensors)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "fill_begin: there is no parameter %u", i);
    if (m->filling)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "fill_begin: %s is being filled",
                             m->params[m->filling - 1].name);
    struct rlhf__tf_tensor *t = valueless(m, i, TF_PASSES);
    if (!t || m->homes[i].filled)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "fill_begin: %s %s", m->params[i].name,
                             t ? "was filled before" : "takes no values here");
    RLHF_TRY(rlhf__tf_storage_take(m, t));
    m->filling = i + 1;
    *value = rlhf_dev_at(t->value, m->homes[i].skip);
    return RLHF_OK;
}

static rlhf_weight *weight_of(const struct rlhf__tf *m, const struct rlhf__tf_home *home) {
    if (home->layer >= 0) return m->w[home->layer].of[rlhf__tf_site_of(home->slot)];
    return home->slot == RLHF_TF_WTE ? m->table : m->lm;
}

// Puts rows of parameter i. Leaves out those that the weight does not have (cut).
static rlhf_status put(struct rlhf__tf *m, uint32_t i, int32_t from, int32_t rows,
                       const void *blocks) {
    const struct rlhf__tf_home *home = &m->homes[i];
    const struct rlhf__tf_parts *p = rlhf__tf_parts(m, home->layer, home->slot);
    const int32_t first = (int32_t)(home->skip / sizeof(float) / (uint64_t)m->params[i].shape[1]);
    int32_t at = 0;
    while (p->from[at] != first)
        at++;
    if (from >= p->count[at]) return RLHF_OK;
    if (rows > p->count[at] - from) rows = p->count[at] - from;
    return m->c->weight_put(m->c->ctx, weight_of(m, home), first + from, rows, blocks);
}

rlhf_status rlhf__tf_fill_blocks(void *self, uint32_t i, int64_t from, int64_t rows,
                                 const void *blocks) {
    struct rlhf__tf *m = self;
    if (i >= m->n_tensors || !valueless(m, i, TF_BLOCKS) || m->homes[i].filled)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "fill_blocks: parameter %u takes no blocks", i);
    if (m->filling && m->filling - 1 != i)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "fill_blocks: %s is being filled",
                             m->params[m->filling - 1].name);
    struct rlhf__tf_home *home = &m->homes[i];
    if (from != home->put || rows < 1 || rows > m->params[i].shape[0] - from)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "fill_blocks: %lld rows from row %lld of %s, of which %d are filled",
                             (long long)rows, (long long)from, m->params[i].name, home->put);
    m->filling = i + 1;
    RLHF_TRY(put(m, i, (int32_t)from, (int32_t)rows, blocks));
    home->put += (int32_t)rows;
    return RLHF_OK;
}

rlhf_status rlhf__tf_fill_end(void *self, uint32_t i) {
    struct rlhf__tf *m = self;
    if (!m->filling || m->filling - 1 != i)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "fill_end: fill_begin of parameter %u did not come before", i);
    struct rlhf__tf_home *home = &m->homes[i];
    struct rlhf__tf_tensor *t = valueless(m, i, TF_PASSES);
    if (!t && home->put < m->params[i].shape[0])
        return rlhf__tf_fail(m, RLHF_E_INVALID, "fill_end: only %d rows of %s are filled",
                             home->put, m->params[i].name);
    m->filling = 0;
    home->filled = 1;
    if (!t) return RLHF_OK; // its blocks are in the weight
    t->filled += home->n;
    if (t->filled < t->n) return RLHF_OK;
    RLHF_TRY(rlhf__tf_weights_pack_slot(m, home->layer, home->slot));
    return rlhf__tf_storage_release(m, t);
}

rlhf_status rlhf__tf_frozen_check(struct rlhf__tf *m) {
    for (uint32_t i = 0; i < m->n_tensors; i++)
        if ((valueless(m, i, TF_PASSES) || valueless(m, i, TF_BLOCKS)) && !m->homes[i].filled)
            return rlhf__tf_fail(m, RLHF_E_INVALID,
                                 "refresh: %s has not been filled (fill_begin, fill_blocks)",
                                 m->params[i].name);
    return RLHF_OK;
}
