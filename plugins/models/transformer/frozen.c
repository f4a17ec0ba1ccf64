// transformer/frozen.c: receives the values of matrices of which the model keeps only a packed copy
// (fill_begin in rlhf/model.h).
#include "internal.h"

// The tensor of a parameter that has temporary values; NULL for other parameters.
static struct rlhf__tf_tensor *passing(struct rlhf__tf *m, uint32_t i) {
    const struct rlhf__tf_home *home = &m->homes[i];
    struct rlhf__tf_tensor *t =
        home->slot >= 0 ? rlhf__tf_tensor(m, home->layer, home->slot) : NULL;
    return t && t->place == TF_PASSES ? t : NULL;
}

rlhf_status rlhf__tf_fill_begin(void *self, uint32_t i, rlhf_dev *value) {
    struct rlhf__tf *m = self;
    if (i >= m->n_tensors)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "fill_begin: there is no parameter %u", i);
    if (m->filling)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "fill_begin: %s is being filled",
                             m->params[m->filling - 1].name);
    struct rlhf__tf_tensor *t = passing(m, i);
    if (!t || m->homes[i].filled)
        return rlhf__tf_fail(m, RLHF_E_INVALID, "fill_begin: %s %s", m->params[i].name,
                             t ? "was filled before" : "has values of its own");
    RLHF_TRY(rlhf__tf_storage_take(m, t));
    m->filling = i + 1;
    *value = rlhf_dev_at(t->value, m->homes[i].skip);
    return RLHF_OK;
}

rlhf_status rlhf__tf_fill_end(void *self, uint32_t i) {
    struct rlhf__tf *m = self;
    if (!m->filling || m->filling - 1 != i)
        return rlhf__tf_fail(m, RLHF_E_INVALID,
                             "fill_end: fill_begin of parameter %u did not come before", i);
    struct rlhf__tf_home *home = &m->homes[i];
    struct rlhf__tf_tensor *t = passing(m, i);
    m->filling = 0;
    home->filled = 1;
    t->filled += home->n;
    if (t->filled < t->n) return RLHF_OK;
    RLHF_TRY(rlhf__tf_weights_pack_slot(m, home->layer, home->slot));
    return rlhf__tf_storage_release(m, t);
}

rlhf_status rlhf__tf_frozen_check(struct rlhf__tf *m) {
    for (uint32_t i = 0; i < m->n_tensors; i++)
        if (passing(m, i) && !m->homes[i].filled)
            return rlhf__tf_fail(
                m, RLHF_E_INVALID,
                "refresh: %s has no values; fill_begin and fill_end must come before",
                m->params[i].name);
    return RLHF_OK;
}
