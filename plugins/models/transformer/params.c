// transformer/params.c: the list of parameters that param() reads: names, shapes, and their
// locations from storage.c.
#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// `visit` is called with WHOLE for each parameter of the architecture. For a parameter that has an
// adapter, `visit` is also called with LORA_A and with LORA_B.
enum half { WHOLE, LORA_A, LORA_B };
typedef rlhf_status visit_fn(struct rlhf__tf *m, const struct rlhf_tf_name *name, int32_t layer,
                             enum half half, void *arg);

static const char *const ending[] = {
    [WHOLE] = "", [LORA_A] = "lora_A.weight", [LORA_B] = "lora_B.weight"};

// 1 if the slot exists in this instance.
static int32_t is_own(const struct rlhf__tf *m, int32_t layer, int32_t slot) {
    const struct rlhf__tf_shape s = rlhf__tf_slot_shape(m, layer, slot);
    return s.rows && !(m->base && s.group == RLHF_PARAM_TRUNK);
}

// The index of this parameter's block in the adapter of its matrix product, or -1 if there is no
// such block.
static int32_t block_of(const struct rlhf__tf *m, const struct rlhf_tf_name *n, int32_t layer) {
    const int32_t site = rlhf__tf_site_of(n->slot);
    const struct rlhf__tf_low *low = m->low && site >= 0 ? &m->low[layer].of[site] : NULL;
    if (!low || !low->n_blocks || n->piece == RLHF_TF_ALL) return low && low->n_blocks ? 0 : -1;
    for (int32_t b = 0; b < low->n_blocks; b++)
        if (low->block[b].from == rlhf__tf_piece_rows(m, layer, n).from) return b;
    return -1;
}

// The host knows these names as well; they are the same in all families.
static const struct rlhf_tf_name value_head[] = {{RLHF_TF_V1_W, RLHF_TF_ALL, "v_head.fc.weight"},
                                                 {RLHF_TF_V1_B, RLHF_TF_ALL, "v_head.fc.bias"},
                                                 {RLHF_TF_V2_W, RLHF_TF_ALL, "v_head.out.weight"},
                                                 {RLHF_TF_V2_B, RLHF_TF_ALL, "v_head.out.bias"},
                                                 {0, RLHF_TF_ALL, NULL}};

static rlhf_status each_global(struct rlhf__tf *m, const struct rlhf_tf_name *n, visit_fn *visit,
                               void *arg) {
    for (; n->name; n++)
        if (is_own(m, -1, n->slot)) RLHF_TRY(visit(m, n, -1, WHOLE, arg));
    return RLHF_OK;
}

// Calls `visit` for every parameter, in the order of param(): layers, globals, adapters.
static rlhf_status each_name(struct rlhf__tf *m, visit_fn *visit, void *arg) {
    const struct rlhf_tf_name *n;
    for (int32_t layer = 0; layer < m->arch.n_layer; layer++)
        for (n = rlhf__tf_names(&m->arch, layer); n->name; n++)
            if (is_own(m, layer, n->slot)) RLHF_TRY(visit(m, n, layer, WHOLE, arg));
    RLHF_TRY(each_global(m, m->arch.globals, visit, arg));
    RLHF_TRY(each_global(m, value_head, visit, arg));
    for (int32_t layer = 0; m->low && layer < m->arch.n_layer; layer++)
        for (n = rlhf__tf_names(&m->arch, layer); n->name; n++) {
            if (block_of(m, n, layer) < 0) continue;
            RLHF_TRY(visit(m, n, layer, LORA_A, arg));
            RLHF_TRY(visit(m, n, layer, LORA_B, arg));
        }
    return RLHF_OK;
}

struct totals {
    uint64_t chars;
    uint32_t count;
};

static rlhf_status count_name(struct rlhf__tf *m, const struct rlhf_tf_name *n, int32_t layer,
                              enum half half, void *arg) {
    struct totals *t = arg;
    t->chars += rlhf__tf_full_name(m, n, layer, NULL, 0) + strlen(ending[half]) + 1;
    t->count++;
    return RLHF_OK;
}

struct cursor {
    char *name, *end;
    uint32_t i;
};

static void put_name(struct rlhf__tf *m, const struct rlhf_tf_name *n, int32_t layer,
                     enum half half, struct cursor *at) {
    const size_t cap = (size_t)(at->end - at->name);
    size_t used = rlhf__tf_full_name(m, n, layer, at->name, cap);
    if (half != WHOLE) { // "weight" becomes "lora_A.weight"
        used -= strlen("weight");
        memcpy(at->name + used, ending[half], strlen(ending[half]) + 1);
        used += strlen(ending[half]);
    }
    at->name += used + 1;
}

static int32_t format_at(const struct rlhf__tf_parts *parts, int32_t from) {
    for (int32_t i = 0; parts && i < parts->n; i++)
        if (parts->from[i] == from) return parts->format[i];
    return RLHF_FORMAT_F32;
}

static void fill_whole(struct rlhf__tf *m, const struct rlhf_tf_name *n, int32_t layer,
                       struct rlhf__tf_home *home, rlhf_param *p) {
    const struct rlhf__tf_shape s = rlhf__tf_slot_shape(m, layer, n->slot);
    const struct rlhf__tf_tensor *t = rlhf__tf_tensor(m, layer, n->slot);
    const struct rlhf__tf_span rows = rlhf__tf_piece_rows(m, layer, n);
    const uint64_t skip = t->n / (uint64_t)s.rows * (uint64_t)rows.from * sizeof(float);
    p->shape[0] = rows.count;
    p->shape[1] = s.cols;
    p->ndim = s.cols ? 2 : 1;
    if (layer >= 0 && n->slot == RLHF_TF_CONV_W) { // one input channel for each output channel
        p->ndim = 3;
        p->shape[1] = 1;
        p->shape[2] = s.cols;
    }
    p->group = s.group;
    p->flags = s.flags;
    if (m->low && s.group == RLHF_PARAM_TRUNK) p->flags |= RLHF_PARAM_FROZEN;
    p->init = s.init;
    p->init_std = s.init_std;
    p->format = format_at(rlhf__tf_parts(m, layer, n->slot), rows.from);
    p->value = t->value ? rlhf_dev_at(t->value, skip) : NULL;
    p->grad = t->grad ? rlhf_dev_at(t->grad, skip) : NULL;
    *home = (struct rlhf__tf_home){.layer = layer,
                                   .slot = n->slot,
                                   .skip = skip,
                                   .n = t->n / (uint64_t)s.rows * (uint64_t)rows.count};
}

static void fill_half(struct rlhf__tf *m, const struct rlhf_tf_name *n, int32_t layer,
                      enum half half, rlhf_param *p) {
    const enum rlhf__tf_site site = (enum rlhf__tf_site)rlhf__tf_site_of(n->slot);
    const struct rlhf__tf_low *low = &m->low[layer].of[site];
    const int32_t block = block_of(m, n, layer), in = rlhf__tf_site_inputs(m, layer, site);
    const struct rlhf__tf_tensor *t = half == LORA_A ? &low->a : &low->b;
    const uint64_t before = half == LORA_A ? (uint64_t)block * (uint64_t)m->rank * (uint64_t)in
                                           : rlhf__tf_low_outputs(low, block) * (uint64_t)m->rank;
    const uint64_t skip = before * sizeof(float);
    p->shape[0] = half == LORA_A ? m->rank : low->block[block].count;
    p->shape[1] = half == LORA_A ? in : m->rank;
    p->ndim = 2;
    p->group = RLHF_PARAM_ADAPTER;
    p->flags = RLHF_PARAM_DECAY;
    p->init = half == LORA_A ? RLHF_INIT_UNIFORM : RLHF_INIT_ZERO;
    p->init_std = half == LORA_A ? 1.0 / sqrt((double)in) : 0.0;
    p->value = rlhf_dev_at(t->value, skip);
    p->grad = t->grad ? rlhf_dev_at(t->grad, skip) : NULL;
}

static rlhf_status fill_param(struct rlhf__tf *m, const struct rlhf_tf_name *n, int32_t layer,
                              enum half half, void *arg) {
    struct cursor *at = arg;
    struct rlhf__tf_home *home = &m->homes[at->i];
    rlhf_param *p = &m->params[at->i++];
    p->size = sizeof *p;
    home->slot = -1;
    p->name = at->name;
    put_name(m, n, layer, half, at);
    if (half == WHOLE)
        fill_whole(m, n, layer, home, p);
    else
        fill_half(m, n, layer, half, p);
    return RLHF_OK;
}

rlhf_status rlhf__tf_params_open(struct rlhf__tf *m) {
    struct totals t = {0, 0};
    RLHF_TRY(each_name(m, count_name, &t));
    m->n_tensors = t.count;
    m->params = m->host->alloc(m->host, t.count * sizeof *m->params);
    m->homes = m->host->alloc(m->host, t.count * sizeof *m->homes);
    m->names = m->host->alloc(m->host, t.chars);
    if (t.count && (!m->params || !m->homes || !m->names))
        return rlhf__tf_fail(m, RLHF_E_NOMEM, "out of memory for the parameter list");
    struct cursor at = {m->names, m->names + t.chars, 0};
    return each_name(m, fill_param, &at);
}

void rlhf__tf_params_close(struct rlhf__tf *m) {
    m->host->free(m->host, m->params);
    m->host->free(m->host, m->homes);
    m->host->free(m->host, m->names);
}
