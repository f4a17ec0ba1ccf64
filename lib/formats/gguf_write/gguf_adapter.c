// gguf_adapter.c: see gguf_adapter.h. The keys and names are those of llama.cpp's
// convert_lora_to_gguf.py; its loader refuses a file that has others.
#include "gguf_write/gguf_adapter.h"

#include "gguf_write/gguf_item.h"
#include "weights/hf_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A matrix B, under the name of its weight.
struct up {
    char name[512];
    struct rlhf__tensor tensor;
};

struct plan {
    struct rlhf__gguf_config config;
    struct up *up;                // [n_up]
    struct rlhf__gguf_item *item; // [n]
    size_t n_up, n;
};

#define LOW ".lora_A.weight"
#define UP  ".lora_B.weight"

static int ends(const char *text, const char *tail) {
    const size_t n = strlen(text), m = strlen(tail);
    return n > m && strcmp(text + n - m, tail) == 0;
}

// The matrix A that belongs to B; NULL if it is missing.
static const struct rlhf__tensor *low_of(const struct rlhf__weights *w,
                                         const struct rlhf__tensor *up) {
    char name[1024];
    const size_t n = strlen(up->name) - strlen(UP);
    if (n + sizeof LOW > sizeof name) return NULL;
    snprintf(name, sizeof name, "%.*s" LOW, (int)n, up->name);
    return rlhf__weights_find(w, name);
}

// Writes the name of the weight that B changes: PEFT's name without its prefix, which the exact
// weights of a checkpoint lack. Returns 0 if it is too long.
static int weight_of(const char *up, char *out, size_t cap) {
    const size_t prefix = strlen(RLHF__PEFT_PREFIX);
    if (strncmp(up, RLHF__PEFT_PREFIX, prefix) == 0) up += prefix;
    const int n = (int)(strlen(up) - strlen(UP));
    return (size_t)snprintf(out, cap, "%.*s.weight", n, up) < cap;
}

static void set_tail(struct rlhf__gguf_item *i, const char *tail) {
    const size_t n = strlen(i->name);
    snprintf(i->name + n, sizeof i->name - n, "%s", tail);
}

// Adds the pairs of a weight `up->name`: two if the weight becomes two tensors.
static rlhf_status add_pairs(const struct rlhf__gguf_adapter *a, struct plan *p,
                             const struct rlhf__tensor *up, const struct rlhf__tensor *low,
                             struct rlhf__error *err) {
    struct rlhf__gguf_item both[2];
    size_t n;
    RLHF_TRY(rlhf__gguf_item_make(&p->config, up, a->dtype, 1, both, &n, err));
    for (size_t k = 0; k < n; k++) {
        if (rlhf__hf_tied(a->config) && strcmp(both[k].name, "output.weight") == 0)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: the adapter changes the LM head, which is the embedding in this "
                              "model; llama.cpp has no such adapter (--merge writes the model)",
                              a->dir);
        struct rlhf__gguf_item *first = &p->item[p->n++], *second = &p->item[p->n++];
        *first = *second = both[k];
        set_tail(first, ".lora_a");
        set_tail(second, ".lora_b");
        first->from = low;
        first->first = 0;
        first->n_rows = low->shape[0];
        first->n_columns = low->shape[1];
        RLHF_TRY(rlhf__gguf_item_low(&p->config, first, err));
    }
    return RLHF_OK;
}

// Adds what belongs to a tensor of the adapter's file. Matrices A are found by their B.
static rlhf_status add(const struct rlhf__gguf_adapter *a, struct plan *p,
                       const struct rlhf__tensor *t, struct rlhf__error *err) {
    if (ends(t->name, LOW)) return RLHF_OK;
    if (!ends(t->name, UP))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: the adapter has the score head %s, which a GGUF file cannot hold",
                          a->dir, t->name);
    const struct rlhf__tensor *low = low_of(a->weights, t);
    const int64_t rank = a->peft->rank;
    if (!low || low->ndim != 2 || t->ndim != 2 || low->shape[0] != rank || t->shape[1] != rank)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: the layer of %s has no pair of matrices of rank %lld", a->dir,
                          t->name, (long long)rank);
    struct up *up = &p->up[p->n_up++];
    if (!weight_of(t->name, up->name, sizeof up->name))
        return rlhf__fail(err, RLHF_E_INVALID, "%s: the name %.60s... is too long", a->dir,
                          t->name);
    up->tensor = *t;
    up->tensor.name = up->name;
    return add_pairs(a, p, &up->tensor, low, err);
}

static rlhf_status make_plan(const struct rlhf__gguf_adapter *a, struct plan *p,
                             struct rlhf__error *err) {
    const size_t n = rlhf__weights_count(a->weights);
    RLHF_TRY(
        rlhf__gguf_config_read(a->config, a->peft->base ? a->peft->base : a->dir, &p->config, err));
    p->up = calloc(n + 1, sizeof *p->up);
    p->item = calloc(4 * n + 1, sizeof *p->item); // a B becomes at most two pairs
    if (!p->up || !p->item) return RLHF__NOMEM(err, "out of memory for the list of tensors");
    for (size_t i = 0; i < n; i++)
        RLHF_TRY(add(a, p, rlhf__weights_at(a->weights, i), err));
    return RLHF_OK;
}

static rlhf_status put_head(struct rlhf__gguf *g, const struct rlhf__gguf_adapter *a,
                            const struct plan *p, struct rlhf__error *err) {
    const struct rlhf__peft *peft = a->peft;
    const double alpha = peft->rslora ? rlhf__peft_scale(peft) * peft->rank : peft->alpha;
    rlhf__gguf_str(g, "general.architecture", p->config.arch);
    rlhf__gguf_str(g, "general.type", "adapter");
    rlhf__gguf_str(g, "general.name", a->name);
    rlhf__gguf_str(g, "adapter.type", "lora");
    rlhf__gguf_f32(g, "adapter.lora.alpha", alpha);
    for (size_t i = 0; i < p->n; i++)
        RLHF_TRY(rlhf__gguf_item_list(g, &p->item[i], err));
    return RLHF_OK;
}

rlhf_status rlhf__gguf_adapter_write(const struct rlhf__gguf_adapter *a,
                                     const struct rlhf__folder *in, const char *name,
                                     struct rlhf__error *err) {
    struct plan p = {.n = 0};
    struct rlhf__gguf *g = rlhf__gguf_writer_open();
    rlhf_status st = g ? make_plan(a, &p, err) : RLHF__NOMEM(err, "out of memory for a GGUF file");
    if (st == RLHF_OK) st = put_head(g, a, &p, err);
    if (st == RLHF_OK && name) st = rlhf__gguf_begin(g, in, name, err);
    for (size_t i = 0; st == RLHF_OK && name && i < p.n; i++)
        st = rlhf__gguf_item_put(g, &p.item[i], &p.config, a->cancelled, err);
    free(p.up);
    free(p.item);
    if (st == RLHF_OK && name) return rlhf__gguf_commit(g, err);
    rlhf__gguf_abort(g);
    return st;
}
