// transformer/parts.c: which matrices of a frozen model stay quantised, in which formats.
#include "internal.h"

const struct rlhf__tf_parts *rlhf__tf_parts(const struct rlhf__tf *m, int32_t layer, int32_t slot) {
    const int32_t at = layer < 0 ? slot : RLHF_TF_N_GLOBAL + layer * RLHF_TF_N_LAYER + slot;
    return m->parts && m->parts[at].n ? &m->parts[at] : NULL;
}

static struct rlhf__tf_parts *parts_of(struct rlhf__tf *m, int32_t layer, int32_t slot) {
    return &m->parts[rlhf__tf_tensor(m, layer, slot) - m->tensors];
}

// Adds a piece to the parts of its slot, which are in the order of rows.
static void add_part(struct rlhf__tf *m, const struct rlhf_tf_name *n, int32_t layer,
                     const rlhf_model_open *o) {
    char name[RLHF_PARAM_NAME_MAX + 1];
    struct rlhf__tf_parts *p = parts_of(m, layer, n->slot);
    const struct rlhf__tf_span rows = rlhf__tf_piece_rows(m, layer, n);
    rlhf__tf_full_name(m, n, layer, name, sizeof name);
    int32_t at = p->n++;
    for (; at > 0 && p->from[at - 1] > rows.from; at--) {
        p->from[at] = p->from[at - 1];
        p->count[at] = p->count[at - 1];
        p->format[at] = p->format[at - 1];
    }
    p->from[at] = rows.from;
    p->count[at] = rows.count;
    p->format[at] = o->format_of(o->format_ctx, name);
}

// A matrix stays quantised as a whole or not at all.
static void decide(struct rlhf__tf_parts *p, int32_t k) {
    for (int32_t i = 0; i < p->n; i++) {
        const int32_t elements = rlhf_format_elements(p->format[i]);
        if (elements < 2 || k % elements) p->n = 0;
    }
}

// Rows of the table without a logit are left out if the LM head is the table.
static void cut(struct rlhf__tf *m, int32_t slot) {
    struct rlhf__tf_parts *p = parts_of(m, -1, slot);
    if (p->n && (slot == RLHF_TF_LM || (m->arch.tied && rlhf__tf_has_lm(m))))
        p->count[0] = rlhf__tf_outputs(m);
}

static int32_t is_table(int32_t slot) { return slot == RLHF_TF_WTE || slot == RLHF_TF_LM; }

rlhf_status rlhf__tf_parts_open(struct rlhf__tf *m, const rlhf_model_open *o) {
    const rlhf_compute *c = m->c;
    const int32_t still = m->open.frozen || m->low;
    if (!o->format_of || m->base || !still || !RLHF_COMPUTE_HAS(c, weight_create_quantised))
        return RLHF_OK;
    m->parts = m->host->alloc(m->host, m->n_all * sizeof *m->parts);
    if (!m->parts) return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for the list of formats");
    // Positions that are added to the embedding, and matrices [inputs, outputs], are not quantised.
    for (const struct rlhf_tf_name *n = m->arch.globals; n->name && m->arch.rotary.frequency; n++)
        if (is_table(n->slot) && rlhf__tf_slot_shape(m, -1, n->slot).rows) {
            add_part(m, n, -1, o);
            decide(parts_of(m, -1, n->slot), m->arch.d);
            cut(m, n->slot);
        }
    for (int32_t layer = 0; layer < m->arch.n_layer && m->arch.out_in; layer++) {
        for (const struct rlhf_tf_name *n = rlhf__tf_names(&m->arch, layer); n->name; n++)
            if (rlhf__tf_site_of(n->slot) >= 0) add_part(m, n, layer, o);
        for (int32_t s = 0; s < TF_N_SITE; s++)
            decide(parts_of(m, layer, rlhf__tf_site_slot((enum rlhf__tf_site)s)),
                   rlhf__tf_site_inputs(m, layer, (enum rlhf__tf_site)s));
    }
    return RLHF_OK;
}
