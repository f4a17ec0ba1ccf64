// transformer/storage.c: the memory of a model's tensors.
//
// All values are in one device allocation, and all gradients are in a second one, in the same
// order. Each slot starts at a multiple of 64 bytes. The checkpoint may have several pieces of a
// slot (q, k and v of one fused matrix). They are adjacent, so that a product can use them as one
// matrix. For the same reason, the A matrices of a product's adapters are adjacent, and so are the
// B matrices.
//
// If a model is frozen or has an adapter, some values are needed only for packing. Each tensor of
// such temporary values is allocated when the host fills the first of its pieces, and freed when it
// has been packed. The tensors of a base model are borrowed from that model.
#include "internal.h"

static uint64_t elements(const struct rlhf__tf_shape *s) {
    return (uint64_t)s->rows * (uint64_t)(s->cols ? s->cols : 1);
}

static uint64_t round16(uint64_t n) { return (n + 15) & ~(uint64_t)15; }

// The numbers of elements that have been placed so far: of permanent values and of gradients.
struct layout {
    uint64_t stays, grads;
};

typedef void tensor_fn(struct rlhf__tf *m, struct rlhf__tf_tensor *t, struct layout *at);

// Calls `visit` for the tensors of a layer (-1: the globals), and then for the layer's adapters.
static void each_tensor(struct rlhf__tf *m, int32_t layer, tensor_fn *visit, struct layout *at) {
    const int32_t count = layer < 0 ? RLHF_TF_N_GLOBAL : RLHF_TF_N_LAYER;
    for (int32_t slot = 0; slot < count; slot++)
        visit(m, rlhf__tf_tensor(m, layer, slot), at);
    for (int32_t s = 0; layer >= 0 && m->low && s < TF_N_SITE; s++) {
        visit(m, &m->low[layer].of[s].a, at);
        visit(m, &m->low[layer].of[s].b, at);
    }
}

// Sets the number of elements and the kind of storage of each tensor.
static void size_up(struct rlhf__tf *m, int32_t layer) {
    const int32_t count = layer < 0 ? RLHF_TF_N_GLOBAL : RLHF_TF_N_LAYER;
    for (int32_t slot = 0; slot < count; slot++) {
        const struct rlhf__tf_shape s = rlhf__tf_slot_shape(m, layer, slot);
        struct rlhf__tf_tensor *t = rlhf__tf_tensor(m, layer, slot);
        const int32_t trunk = s.group == RLHF_PARAM_TRUNK;
        t->n = elements(&s);
        t->trained = m->open.trainable && !(trunk && rlhf__tf_trunk_frozen(m));
        if (m->base && trunk)
            t->place = TF_BORROWED;
        else if (rlhf__tf_parts(m, layer, slot))
            t->place = TF_BLOCKS;
        else if (t->n && (m->open.frozen || (m->low && trunk)) &&
                 rlhf__tf_slot_only_packed(layer, slot))
            t->place = TF_PASSES;
    }
    for (int32_t s = 0; layer >= 0 && m->low && s < TF_N_SITE; s++) {
        struct rlhf__tf_low *low = &m->low[layer].of[s];
        const uint64_t rank = (uint64_t)m->rank;
        const int32_t in = rlhf__tf_site_inputs(m, layer, (enum rlhf__tf_site)s);
        low->a.n = (uint64_t)low->n_blocks * rank * (uint64_t)in;
        low->b.n = rlhf__tf_low_outputs(low, low->n_blocks) * rank;
        low->a.trained = low->b.trained = m->open.trainable;
    }
}

static void add_up(struct rlhf__tf *m, struct rlhf__tf_tensor *t, struct layout *at) {
    (void)m;
    if (t->place == TF_STAYS) at->stays += round16(t->n);
    if (t->trained && t->n) at->grads += round16(t->n);
}

static void place(struct rlhf__tf *m, struct rlhf__tf_tensor *t, struct layout *at) {
    if (!t->n) return;
    if (t->place == TF_STAYS) t->value = rlhf_dev_at(m->values.p, at->stays * sizeof(float));
    if (t->place == TF_BORROWED) t->value = m->base->tensors[t - m->tensors].value;
    if (t->trained) t->grad = rlhf_dev_at(m->grads.p, at->grads * sizeof(float));
    add_up(m, t, at);
}

static rlhf_status lists(struct rlhf__tf *m) {
    m->n_all = (uint32_t)(RLHF_TF_N_GLOBAL + m->arch.n_layer * RLHF_TF_N_LAYER);
    m->tensors = m->host->alloc(m->host, m->n_all * sizeof *m->tensors);
    return m->tensors ? RLHF_OK
                      : rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for the tensor list");
}

rlhf_status rlhf__tf_storage_open(struct rlhf__tf *m, const rlhf_model_open *o) {
    struct layout all = {0, 0};
    RLHF_TRY(lists(m));
    RLHF_TRY(rlhf__tf_parts_open(m, o));
    for (int32_t layer = -1; layer < m->arch.n_layer; layer++) {
        size_up(m, layer);
        each_tensor(m, layer, add_up, &all);
    }
    if (all.stays) RLHF_TRY(rlhf__tf_reserve(m, &m->values, all.stays * sizeof(float)));
    if (all.grads) RLHF_TRY(rlhf__tf_reserve(m, &m->grads, all.grads * sizeof(float)));
    all = (struct layout){0, 0};
    for (int32_t layer = -1; layer < m->arch.n_layer; layer++)
        each_tensor(m, layer, place, &all);
    return RLHF_OK;
}

// Returns the address of the first gradient from this slot of this layer onward, or the end of all
// gradients.
static rlhf_dev first_grad(struct rlhf__tf *m, int32_t layer, int32_t slot) {
    for (; layer < m->arch.n_layer; layer++, slot = 0) {
        for (; slot < RLHF_TF_N_LAYER; slot++)
            if (rlhf__tf_layer(m, layer, slot)->grad) return rlhf__tf_layer(m, layer, slot)->grad;
        for (int32_t s = 0; m->low && s < TF_N_SITE; s++)
            if (m->low[layer].of[s].a.grad) return m->low[layer].of[s].a.grad;
    }
    return rlhf_dev_at(m->grads.p, m->grads.bytes);
}

void rlhf__tf_storage_graded(struct rlhf__tf *m, int32_t layer, int32_t slot, int32_t end,
                             const rlhf_forward *f) {
    if (!f->graded) return;
    const rlhf_dev from = first_grad(m, layer, slot);
    const rlhf_dev to =
        end < RLHF_TF_N_LAYER ? first_grad(m, layer, end) : first_grad(m, layer + 1, 0);
    if (to != from) f->graded(f->graded_ctx, from, (uintptr_t)to - (uintptr_t)from);
}

// Returns the address of the values in a slot of a layer (-1: the globals) or, if the slot is
// empty, of the next slot that is not empty. If all later slots are empty too, returns the end of
// all values.
static rlhf_dev first_value(struct rlhf__tf *m, int32_t layer, int32_t slot) {
    for (; layer < m->arch.n_layer; layer++, slot = 0)
        for (; slot < (layer < 0 ? RLHF_TF_N_GLOBAL : RLHF_TF_N_LAYER); slot++)
            if (rlhf__tf_tensor(m, layer, slot)->n) return rlhf__tf_tensor(m, layer, slot)->value;
    return rlhf_dev_at(m->values.p, m->values.bytes);
}

void rlhf__tf_storage_wanted(struct rlhf__tf *m, int32_t layer, int32_t slot, int32_t end,
                             const rlhf_forward *f) {
    const rlhf_dev from = first_value(m, layer, slot), to = first_value(m, layer, end);
    if (to != from) f->wanted(f->wanted_ctx, from, (uintptr_t)to - (uintptr_t)from);
}

rlhf_status rlhf__tf_storage_take(struct rlhf__tf *m, struct rlhf__tf_tensor *t) {
    return t->value ? RLHF_OK : m->c->alloc(m->c->ctx, t->n * sizeof(float), &t->value);
}

rlhf_status rlhf__tf_storage_release(struct rlhf__tf *m, struct rlhf__tf_tensor *t) {
    RLHF_TRY(m->c->sync(m->c->ctx));
    m->c->release(m->c->ctx, t->value);
    t->value = NULL;
    return RLHF_OK;
}

void rlhf__tf_storage_close(struct rlhf__tf *m) {
    if (m->c) {
        rlhf__tf_buf_finish(m, &m->values);
        for (uint32_t i = 0; m->tensors && i < m->n_all; i++)
            if (m->tensors[i].place == TF_PASSES)
                m->c->release(m->c->ctx, m->tensors[i].value); // if it was not filled completely
        rlhf__tf_buf_finish(m, &m->grads);
    }
    m->host->free(m->host, m->tensors);
    m->host->free(m->host, m->parts);
}
