// quantised.c: see quantised.h.
#include "model/quantised.h"

#include "base/buf.h"
#include "base/size_text.h"
#include "model/parameters.h"
#include "tensors/gguf_file.h"

#include <rlhf/compute.h>
#include <stdlib.h>

// ---- formats ----

// The format of a tensor's blocks; RLHF_FORMAT_F32 if backends lack weights of this format.
static int32_t format_of(const struct rlhf__tensor *t) {
    if (!rlhf__tensor_has_blocks(t)) return RLHF_FORMAT_F32;
    switch (t->dtype) {
    case RLHF__TENSOR_Q8_0:
        return RLHF_FORMAT_Q8_0;
    case RLHF__TENSOR_Q4_0:
        return RLHF_FORMAT_Q4_0;
    case RLHF__TENSOR_Q4_1:
        return RLHF_FORMAT_Q4_1;
    case RLHF__TENSOR_Q5_0:
        return RLHF_FORMAT_Q5_0;
    case RLHF__TENSOR_Q5_1:
        return RLHF_FORMAT_Q5_1;
    case RLHF__TENSOR_Q4_K:
        return RLHF_FORMAT_Q4_K;
    case RLHF__TENSOR_Q6_K:
        return RLHF_FORMAT_Q6_K;
    default:
        return RLHF_FORMAT_F32;
    }
}

// 1 if m's trunk is read from the model's file.
static int reads_trunk(const struct rlhf__model *m) {
    const int32_t start = m->spec.start;
    return !m->base && (start == RLHF__START_WEIGHTS || start == RLHF__START_HEADS) &&
           rlhf__gguf_is(m->dir);
}

rlhf_status rlhf__quantised_open(const struct rlhf__model *m, struct rlhf__weights **out,
                                 struct rlhf__error *err) {
    *out = NULL;
    const int still = m->frozen || m->peft.rank > 0;
    if (!still || m->env->dequantize || !reads_trunk(m)) return RLHF_OK;
    return rlhf__weights_open(m->dir, out, err);
}

int32_t rlhf__quantised_format(void *weights, const char *name) {
    const struct rlhf__tensor *t = rlhf__weights_find(weights, name);
    return t ? format_of(t) : RLHF_FORMAT_F32;
}

// ---- refusal ----

rlhf_status rlhf__quantised_check(const struct rlhf__model *m, struct rlhf__error *err) {
    struct rlhf__weights *w = NULL;
    size_t n = 0;
    if (!m->trainable || m->peft.rank > 0 || m->env->dequantize || !reads_trunk(m)) return RLHF_OK;
    RLHF_TRY(rlhf__weights_open(m->dir, &w, err));
    for (size_t i = 0; i < rlhf__weights_count(w); i++)
        n += rlhf__tensor_dtype_block(rlhf__weights_at(w, i)->dtype) > 1;
    rlhf__weights_close(w);
    if (n == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID,
                      "the %s '%s' has %zu quantised tensors, which cannot be trained: train "
                      "an adapter (--set policy.adapter.rank=16, or --adapter DIR), or set "
                      "policy.dequantize=true to train all weights as f32",
                      m->role, m->dir, n);
}

// ---- filling ----

static rlhf_status put(const struct rlhf__model *m, uint32_t i, int64_t row, int64_t rows,
                       const void *blocks, struct rlhf__error *err) {
    struct rlhf__call call = rlhf__call_begin(m->instance, "fill_blocks()");
    return rlhf__call_end(&call, m->ops->fill_blocks(m->self, i, row, rows, blocks), err);
}

rlhf_status rlhf__quantised_pass(const struct rlhf__model *m, const rlhf_param *p,
                                 struct rlhf__error *err) {
    enum { ROWS = 256 };
    const uint64_t bytes = ROWS * rlhf_format_row_bytes(p->format, (int32_t)p->shape[1]);
    uint8_t *blocks = calloc(1, bytes + 1);
    if (!blocks) return RLHF__NOMEM(err, "out of memory for the blocks of %s", p->name);
    rlhf_status st = RLHF_OK;
    for (int64_t at = 0; st == RLHF_OK && at < p->shape[0]; at += ROWS) {
        const int64_t rows = p->shape[0] - at < ROWS ? p->shape[0] - at : ROWS;
        st = put(m, (uint32_t)(p - m->params), at, rows, blocks, err);
    }
    free(blocks);
    return st;
}

rlhf_status rlhf__quantised_fill(const struct rlhf__model *m, const rlhf_param *p,
                                 const struct rlhf__tensor *t, struct rlhf__error *err) {
    if (format_of(t) != p->format)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: tensor %s is %s, but %s took another format",
                          t->file, t->name, rlhf__tensor_dtype_name(t->dtype),
                          rlhf__plugin_name(m->instance->plugin));
    const uint64_t one = rlhf_format_row_bytes(p->format, (int32_t)p->shape[1]);
    const int64_t all = p->shape[0], most = (1 << 20) / (int64_t)one + 1;
    void *chunk = malloc((size_t)one * (size_t)(most < all ? most : all));
    rlhf_status st = chunk ? RLHF_OK : RLHF__NOMEM(err, "out of memory reading %s", t->name);
    for (int64_t at = 0; st == RLHF_OK && at < all; at += most) {
        const int64_t n = all - at < most ? all - at : most;
        st = rlhf__tensor_read_blocks(t, at, n, chunk, err);
        if (st == RLHF_OK) st = put(m, (uint32_t)(p - m->params), at, n, chunk, err);
    }
    free(chunk);
    return st == RLHF_OK ? rlhf__param_end(m, p, err) : st;
}

// ---- for the user ----

// Tensors by dtype.
struct tally {
    size_t n, of[RLHF__N_TENSOR_DTYPES];
    uint64_t bytes;
};

// Appends "Q4_K 140, Q6_K 28".
static void put_tally(struct rlhf__buf *out, const struct tally *t) {
    const char *comma = "";
    for (int32_t d = 0; d < RLHF__N_TENSOR_DTYPES; d++) {
        if (!t->of[d]) continue;
        rlhf__buf_printf(out, "%s%s %zu", comma, rlhf__tensor_dtype_name(d), t->of[d]);
        comma = ", ";
    }
}

void rlhf__quantised_note(const struct rlhf__model *m, const struct rlhf__tensor *const *from) {
    struct tally kept = {0}, others = {0};
    size_t quantised = 0;
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        const struct rlhf__tensor *t = from[i];
        if (!t || t->dtype == RLHF__TENSOR_F32) continue;
        struct tally *to = m->params[i].format != RLHF_FORMAT_F32 ? &kept : &others;
        to->n++;
        to->of[t->dtype]++;
        to->bytes += t->n_bytes;
        quantised += rlhf__tensor_dtype_block(t->dtype) > 1;
    }
    if (!quantised) return;
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (kept.n) put_tally(&text, &kept);
    if (kept.n)
        rlhf__buf_printf(&text, " tensors stay quantised in memory (%s)",
                         rlhf__size_text(kept.bytes).text);
    if (kept.n && others.n) rlhf__buf_puts(&text, "; ");
    if (others.n) put_tally(&text, &others);
    if (others.n) rlhf__buf_puts(&text, " tensors are dequantised when they are read");
    rlhf__logf(m->env->services->log, RLHF_LOG_INFO, "%s: %s", m->role, rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
}
