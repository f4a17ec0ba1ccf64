// gguf.c: see gguf.h.
#include "gguf_write/gguf.h"

#include "gguf_write/gguf_item.h"
#include "gguf_write/gguf_origin.h"
#include "gguf_write/gguf_tokens.h"
#include "weights/hf_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct plan {
    struct rlhf__gguf_config config;
    struct rlhf__gguf_item *item; // [n]
    size_t n;
};

// ---- which tensors ----

static int by_name(const void *a, const void *b) {
    const struct rlhf__gguf_item *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int is_called(const void *name, const void *item) {
    const struct rlhf__gguf_item *const *i = item;
    return strcmp(name, (*i)->name);
}

// Checks that no required tensor is missing. `sorted` has the p->n items, sorted by name.
static rlhf_status check_all_there(const struct rlhf__gguf_model *m, const struct plan *p,
                                   const struct rlhf__gguf_item *const *sorted,
                                   struct rlhf__error *err) {
    char name[RLHF__GGUF_NAME_CAP];
    const struct rlhf__gguf_config *c = &p->config;
    const int tied = rlhf__hf_tied(m->config);
    for (size_t i = 0; rlhf__gguf_required(c->family, tied, &c->mix, c->layers, i, name); i++)
        if (!bsearch(name, sorted, p->n, sizeof *sorted, is_called))
            return rlhf__fail(err, RLHF_E_INVALID, "%s: the weights lack what is %s in a GGUF file",
                              m->dir, name);
    return RLHF_OK;
}

// Checks that each name occurs once and that none is missing.
static rlhf_status check_names(const struct rlhf__gguf_model *m, const struct plan *p,
                               struct rlhf__error *err) {
    const struct rlhf__gguf_item **sorted = calloc(p->n + 1, sizeof *sorted);
    if (!sorted) return RLHF__NOMEM(err, "out of memory for the names of tensors");
    for (size_t i = 0; i < p->n; i++)
        sorted[i] = &p->item[i];
    qsort(sorted, p->n, sizeof *sorted, by_name);
    rlhf_status st = RLHF_OK;
    for (size_t i = 1; i < p->n && st == RLHF_OK; i++)
        if (by_name(&sorted[i - 1], &sorted[i]) == 0)
            st = rlhf__fail(err, RLHF_E_INVALID,
                            "%s: the tensors %s and %s would both be %s in a GGUF file", m->dir,
                            sorted[i - 1]->from->name, sorted[i]->from->name, sorted[i]->name);
    if (st == RLHF_OK) st = check_all_there(m, p, sorted, err);
    free(sorted);
    return st;
}

static rlhf_status make_plan(const struct rlhf__gguf_model *m, struct plan *p,
                             struct rlhf__error *err) {
    RLHF_TRY(rlhf__gguf_config_read(m->config, m->dir, &p->config, err));
    p->item = calloc(2 * m->n + 1, sizeof *p->item); // a tensor becomes at most two
    if (!p->item) return RLHF__NOMEM(err, "out of memory for the list of tensors");
    for (size_t i = 0; i < m->n; i++) {
        size_t n;
        RLHF_TRY(
            rlhf__gguf_item_make(&p->config, m->tensor[i], m->dtype, 0, &p->item[p->n], &n, err));
        p->n += n;
    }
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->item[i].name, "token_embd.weight") == 0 &&
            p->item[i].n_rows != p->config.vocab)
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s: the embedding has %lld rows, vocab_size is %d", m->dir,
                              (long long)p->item[i].n_rows, (int)p->config.vocab);
    return check_names(m, p, err);
}

static rlhf_status put_rope(struct rlhf__gguf *g, const struct rlhf__gguf_model *m,
                            const struct rlhf__gguf_rope *rope, struct rlhf__error *err) {
    const size_t n = (size_t)rope->dim / 2;
    rlhf_status st = RLHF_OK;
    float *divisor = calloc(n, sizeof *divisor);
    if (!divisor) return RLHF__NOMEM(err, "out of memory for the rotary positions");
    for (int32_t i = 0; st == RLHF_OK && i < rope->n; i++) {
        rlhf__gguf_rope_divisors(m->config, rope, i, divisor);
        st = rlhf__gguf_put(g, divisor, n * sizeof *divisor, err);
    }
    free(divisor);
    return st;
}

// ---- the file ----

// Returns llama.cpp's number for the type of the file, i.e. the type of most of its tensors. The
// embedding has this type, so the function looks only at the embedding.
static uint32_t file_type(const struct plan *p) {
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->item[i].name, "token_embd.weight") == 0)
            return p->item[i].dtype == RLHF__TENSOR_F16    ? 1
                   : p->item[i].dtype == RLHF__TENSOR_Q8_0 ? 7
                   : p->item[i].dtype == RLHF__TENSOR_BF16 ? 32
                                                           : 0;
    return 0;
}

static rlhf_status put_head(struct rlhf__gguf *g, const struct rlhf__gguf_model *m,
                            const struct plan *p, struct rlhf__error *err) {
    rlhf__gguf_str(g, "general.architecture", p->config.arch);
    rlhf__gguf_str(g, "general.type", "model");
    RLHF_TRY(rlhf__gguf_origin_put(g, m->from, m->changed, m->name, err));
    rlhf__gguf_u32(g, "general.file_type", file_type(p));
    rlhf__gguf_u32(g, "general.quantization_version",
                   2); // version of ggml's quantized formats, none of which is used
    RLHF_TRY(rlhf__gguf_config_put(g, m->config, m->dir, &p->config, err));
    RLHF_TRY(rlhf__gguf_tokens_put(g, m->dir, m->config, p->config.vocab, err));
    for (size_t i = 0; i < p->n; i++)
        RLHF_TRY(rlhf__gguf_item_list(g, &p->item[i], err));
    const struct rlhf__gguf_rope *rope = &p->config.rope;
    const int64_t half = rope->dim / 2;
    for (int32_t i = 0; i < rope->n; i++)
        RLHF_TRY(rlhf__gguf_tensor(g, rope->divisors[i].name, RLHF__TENSOR_F32, 1, &half, err));
    return RLHF_OK;
}

static rlhf_status with_plan(const struct rlhf__gguf_model *m, const struct rlhf__folder *in,
                             const char *name, struct rlhf__error *err) {
    struct plan p = {0};
    struct rlhf__gguf *g = rlhf__gguf_writer_open();
    rlhf_status st = g ? make_plan(m, &p, err) : RLHF__NOMEM(err, "out of memory for a GGUF file");
    if (st == RLHF_OK) st = put_head(g, m, &p, err);
    if (st == RLHF_OK && name) st = rlhf__gguf_begin(g, in, name, err);
    for (size_t i = 0; st == RLHF_OK && name && i < p.n; i++)
        st = rlhf__gguf_item_put(g, &p.item[i], &p.config, m->cancelled, err);
    if (st == RLHF_OK && name) st = put_rope(g, m, &p.config.rope, err);
    free(p.item);
    if (st == RLHF_OK && name) return rlhf__gguf_commit(g, err);
    rlhf__gguf_abort(g);
    return st;
}

rlhf_status rlhf__gguf_check(const struct rlhf__gguf_model *m, struct rlhf__error *err) {
    return with_plan(m, NULL, NULL, err);
}

rlhf_status rlhf__gguf_write(const struct rlhf__gguf_model *m, const struct rlhf__folder *in,
                             const char *name, struct rlhf__error *err) {
    return with_plan(m, in, name, err);
}
