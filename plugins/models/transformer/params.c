// transformer/params.c: storage of parameters and gradients, and the list param() reads.
//
// Values lie in one device allocation, gradients in a second of the same layout. Each slot starts
// at a multiple of 64 bytes; the pieces of a slot (q, k, v of one fused matrix) follow each other
// without a gap, so that the products see one matrix and the checkpoint sees three. A frozen model
// has no gradients and keeps the values that are only packed in an allocation of their own, which
// goes with the first refresh().
#include "internal.h"

#include <stdio.h>
#include <string.h>

static uint64_t elements(const struct rlhf__tf_shape *s) {
    return (uint64_t)s->rows * (uint64_t)(s->cols ? s->cols : 1);
}

static uint64_t round16(uint64_t n) { return (n + 15) & ~(uint64_t)15; }

// Calls visit for every name of the architecture whose slot exists, in the order of param().
typedef rlhf_status visit_fn(struct rlhf__tf *m, const struct rlhf__tf_name *name, int32_t layer,
                             void *arg);

static rlhf_status each_name(struct rlhf__tf *m, visit_fn *visit, void *arg) {
    const struct rlhf__tf_name *n;
    for (int32_t layer = 0; layer < m->arch.n_layer; layer++)
        for (n = m->arch.layers; n->name; n++)
            if (rlhf__tf_slot_shape(m, layer, n->slot).rows) RLHF_TRY(visit(m, n, layer, arg));
    for (n = m->arch.globals; n->name; n++)
        if (rlhf__tf_slot_shape(m, -1, n->slot).rows) RLHF_TRY(visit(m, n, -1, arg));
    return RLHF_OK;
}

// The name in full; returns its length without the NUL. out NULL: only the length.
static size_t full_name(const struct rlhf__tf *m, const struct rlhf__tf_name *n, int32_t layer,
                        char *out, size_t cap) {
    char prefix[64] = "";
    if (layer >= 0) {
        const char *mark = strstr(m->arch.layer_prefix, "%d");
        const int head = (int)(mark - m->arch.layer_prefix);
        snprintf(prefix, sizeof prefix, "%.*s%d%s", head, m->arch.layer_prefix, (int)layer,
                 mark + 2);
    }
    const int len = snprintf(out, out ? cap : 0, "%s%s", prefix, n->name);
    return (size_t)len;
}

struct totals {
    uint64_t chars;
    uint32_t count, reserved;
};

static rlhf_status count_name(struct rlhf__tf *m, const struct rlhf__tf_name *n, int32_t layer,
                              void *arg) {
    struct totals *t = arg;
    t->chars += full_name(m, n, layer, NULL, 0) + 1;
    t->count++;
    return RLHF_OK;
}

struct cursor {
    char *name, *end;
    uint32_t i, reserved;
};

static rlhf_status fill_param(struct rlhf__tf *m, const struct rlhf__tf_name *n, int32_t layer,
                              void *arg) {
    struct cursor *at = arg;
    const struct rlhf__tf_shape s = rlhf__tf_slot_shape(m, layer, n->slot);
    const struct rlhf__tf_tensor *t = rlhf__tf_tensor(m, layer, n->slot);
    const struct rlhf__tf_span rows = rlhf__tf_piece_rows(m, layer, n);
    const uint64_t skip = t->n / (uint64_t)s.rows * (uint64_t)rows.from * sizeof(float);
    rlhf_param *p = &m->params[at->i++];
    p->size = sizeof *p;
    p->name = at->name;
    at->name += full_name(m, n, layer, at->name, (size_t)(at->end - at->name)) + 1;
    p->shape[0] = rows.count;
    p->shape[1] = s.cols;
    p->ndim = s.cols ? 2 : 1;
    p->group = s.group;
    p->flags = s.flags;
    p->init = s.init;
    p->init_std = s.init_std;
    p->value = rlhf_dev_at(t->value, skip);
    p->grad = t->grad ? rlhf_dev_at(t->grad, skip) : NULL;
    return RLHF_OK;
}

// Sets the element counts and the sizes of both layouts, in elements: size[1] of what passes.
static void lay_out(struct rlhf__tf *m, uint64_t size[2]) {
    size[0] = size[1] = 0;
    for (int32_t layer = -1; layer < m->arch.n_layer; layer++) {
        const int32_t count = layer < 0 ? TF_N_GLOBAL : TF_N_LAYER;
        for (int32_t slot = 0; slot < count; slot++) {
            const struct rlhf__tf_shape s = rlhf__tf_slot_shape(m, layer, slot);
            struct rlhf__tf_tensor *t = rlhf__tf_tensor(m, layer, slot);
            t->n = elements(&s);
            t->passing = m->open.frozen && t->n && rlhf__tf_slot_only_packed(layer, slot);
            size[t->passing] += round16(t->n);
        }
    }
}

static void place(struct rlhf__tf *m) {
    uint64_t at[2] = {0, 0};
    for (uint32_t i = 0; i < m->n_all; i++) {
        struct rlhf__tf_tensor *t = &m->tensors[i];
        if (!t->n) continue;
        const uint64_t skip = at[t->passing] * sizeof(float);
        t->value = rlhf_dev_at(t->passing ? m->passing.p : m->values.p, skip);
        if (m->grads.p) t->grad = rlhf_dev_at(m->grads.p, skip);
        at[t->passing] += round16(t->n);
    }
}

rlhf_status rlhf__tf_params_create(struct rlhf__tf *m) {
    struct totals t = {0, 0, 0};
    m->n_all = (uint32_t)(TF_N_GLOBAL + m->arch.n_layer * TF_N_LAYER);
    m->tensors = m->host->alloc(m->host, m->n_all * sizeof *m->tensors);
    if (!m->tensors) return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for the tensor list");
    uint64_t size[2];
    lay_out(m, size);
    RLHF_TRY(rlhf__tf_reserve(m, &m->values, size[0] * sizeof(float)));
    if (size[1]) RLHF_TRY(rlhf__tf_reserve(m, &m->passing, size[1] * sizeof(float)));
    if (m->open.trainable) RLHF_TRY(rlhf__tf_reserve(m, &m->grads, size[0] * sizeof(float)));
    place(m);
    RLHF_TRY(each_name(m, count_name, &t));
    m->n_tensors = t.count;
    m->params = m->host->alloc(m->host, t.count * sizeof *m->params);
    m->names = m->host->alloc(m->host, t.chars);
    if (!m->params || !m->names)
        return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for the parameter list");
    struct cursor at = {m->names, m->names + t.chars, 0, 0};
    return each_name(m, fill_param, &at);
}

static rlhf_status forget_value(struct rlhf__tf *m, const struct rlhf__tf_name *n, int32_t layer,
                                void *arg) {
    struct cursor *at = arg;
    rlhf_param *p = &m->params[at->i++];
    if (rlhf__tf_tensor(m, layer, n->slot)->passing) p->value = NULL;
    return RLHF_OK;
}

rlhf_status rlhf__tf_params_release(struct rlhf__tf *m) {
    struct cursor at = {NULL, NULL, 0, 0};
    RLHF_TRY(each_name(m, forget_value, &at));
    for (uint32_t i = 0; i < m->n_all; i++)
        if (m->tensors[i].passing) m->tensors[i].value = NULL;
    rlhf__tf_buf_finish(m, &m->passing);
    return RLHF_OK;
}

void rlhf__tf_params_destroy(struct rlhf__tf *m) {
    if (m->c) {
        rlhf__tf_buf_finish(m, &m->values);
        rlhf__tf_buf_finish(m, &m->passing);
        rlhf__tf_buf_finish(m, &m->grads);
    }
    m->host->free(m->host, m->tensors);
    m->host->free(m->host, m->params);
    m->host->free(m->host, m->names);
}
