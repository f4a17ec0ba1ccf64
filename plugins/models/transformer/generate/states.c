// transformer/generate/states.c: the memory of layers with a state. A slot has, for each such
// layer, the last inputs of its convolution and, with the delta rule, the state. They belong to the
// slot's last token, so a row continues its own slot or, if it begins, that of its prefix.
//
// A row that fills a prefix comes before the other rows on the device, so that these begin with the
// state that it leaves.
#include "transformer/internal.h"

static uint64_t round64(uint64_t n) { return (n + 63) & ~(uint64_t)63; }

// Bytes of a slot in one layer: of the convolution, and of all.
static uint64_t slot_bytes(const struct rlhf__tf *m, int32_t layer, uint64_t *conv_bytes) {
    const rlhf_conv conv = rlhf__tf_conv_args(m, layer);
    const struct rlhf_tf_state *s = &m->arch.state;
    *conv_bytes = 0;
    if (rlhf__tf_mix_of(&m->arch, layer) == RLHF_TF_ATTENTION) return 0;
    *conv_bytes = round64((uint64_t)(conv.taps - 1) * (uint64_t)conv.channels * rlhf__tf_esz(m));
    if (rlhf__tf_mix_of(&m->arch, layer) == RLHF_TF_CONV) return *conv_bytes;
    return *conv_bytes +
           round64((uint64_t)rlhf__tf_delta_values(s) * (uint64_t)s->key_dim * sizeof(float));
}

rlhf_status rlhf__tf_kept_open(struct rlhf__tf *m, rlhf_gen *g) {
    if (m->n_attention == m->arch.n_layer) return RLHF_OK;
    struct rlhf__tf_kept *k = m->host->alloc(m->host, sizeof *k);
    if (!k) return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for a generation session");
    g->kept = k; // the session destroys it even if an allocation below fails
    k->order = m->host->alloc(m->host, g->n_slots * sizeof *k->order);
    if (!k->order) return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for %u slots", g->n_slots);
    uint64_t bytes = 0, conv;
    for (int32_t l = 0; l < m->arch.n_layer; l++)
        bytes += slot_bytes(m, l, &conv);
    return rlhf__tf_reserve(m, &k->states, bytes * g->n_slots);
}

void rlhf__tf_kept_close(struct rlhf__tf *m, struct rlhf__tf_kept *k) {
    if (!k) return;
    rlhf__tf_buf_finish(m, &k->states);
    m->host->free(m->host, k->order);
    m->host->free(m->host, k);
}

void rlhf__tf_kept_plan(rlhf_gen *g, const rlhf_gen_step *s) {
    struct rlhf__tf_kept *k = g->kept;
    uint32_t at = 0;
    for (int fills = 1; fills >= 0; fills--)
        for (uint32_t i = 0; i < s->n; i++)
            if ((g->slots[s->slot[i]].use == TF_FILLED) == fills) k->order[at++] = (int32_t)i;
    k->sorted = 1;
    for (uint32_t i = 0; i < s->n; i++) {
        if (k->order[i] != (int32_t)i) k->sorted = 0;
        g->slots[s->slot[i]].held = 0; // if the step fails, the tokens of the slot are lost
    }
}

void rlhf__tf_states_of(const struct rlhf__tf *m, const rlhf_gen *g,
                        const struct rlhf__tf_rows *rows, int32_t layer,
                        struct rlhf__tf_states *out) {
    uint64_t at = 0, conv;
    if (!g) return;
    for (int32_t l = 0; l < layer; l++)
        at += slot_bytes(m, l, &conv) * g->n_slots;
    const uint64_t bytes = slot_bytes(m, layer, &conv);
    out->conv = (rlhf_states){.size = sizeof out->conv,
                              .state = rlhf_dev_at(g->kept->states.p, at),
                              .stride = (int64_t)bytes,
                              .from = rows->from,
                              .to = rows->to};
    out->delta = out->conv;
    out->delta.state = rlhf_dev_at(g->kept->states.p, at + conv);
}
