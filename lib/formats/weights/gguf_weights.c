// gguf_weights.c: see gguf_weights.h.
#include "weights/gguf_weights.h"

#include "base/printable.h"
#include "base/size_text.h"
#include "weights/gguf_complete.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_divisors(const char *name) {
    return !strcmp(name, "rope_freqs.weight") || !strcmp(name, "rope_factors_long.weight") ||
           !strcmp(name, "rope_factors_short.weight");
}

// Refuses decays that are not below 0, because A_log is the logarithm of -decay.
static rlhf_status check_decays(const struct rlhf__tensor *t, struct rlhf__error *err) {
    for (int64_t i = 0; i < t->count; i++) {
        float x = 0;
        RLHF_TRY(rlhf__tensor_read_f32(t, i, 1, &x, err));
        if (!isfinite(x))
            return rlhf__fail(err, RLHF_E_INVALID, "%s: tensor %s has a number that is not below 0",
                              t->file, t->name);
    }
    return RLHF_OK;
}

static rlhf_status tile(struct rlhf__tensor *t, int32_t rows, const struct rlhf__gguf_shape *s,
                        struct rlhf__error *err) {
    int32_t head;
    rlhf__gguf_tile(rows, &s->mix, &t->first, &head);
    if (!head && rows != RLHF__GGUF_DECAYS) return RLHF_OK;
    t->head = head ? head : 1;
    t->groups = s->mix.key_heads;
    t->order = rows == RLHF__GGUF_DECAYS          ? RLHF__TENSOR_DECAYS
               : rows == RLHF__GGUF_TILED_COLUMNS ? RLHF__TENSOR_TILED_COLUMNS
                                                  : RLHF__TENSOR_TILED;
    return rows == RLHF__GGUF_DECAYS ? check_decays(t, err) : RLHF_OK;
}

// Sets the shape and the order of the rows of a tensor, whose shape in the file was checked.
static rlhf_status arrange(struct rlhf__tensor *t, int32_t rows, const struct rlhf__gguf_shape *s,
                           struct rlhf__error *err) {
    const int pairs = rows == RLHF__GGUF_PAIR_Q || rows == RLHF__GGUF_PAIR_K;
    if (pairs && s->head_dim % 2)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: heads have a width of %d; rotary positions need an even one",
                          t->file, (int)s->head_dim);
    if (pairs) {
        t->order = RLHF__TENSOR_PAIRED;
        t->head = s->head_dim;
    }
    if (rows == RLHF__GGUF_PLUS_ONE) t->order = RLHF__TENSOR_PLUS_ONE;
    if (rows == RLHF__GGUF_TRANSPOSED && t->ndim == 2) {
        const int64_t columns = t->shape[0];
        t->order = RLHF__TENSOR_TRANSPOSED;
        t->shape[0] = t->shape[1];
        t->shape[1] = columns;
    }
    if (rlhf__gguf_has_taps(rows)) {
        t->shape[2] = t->shape[1];
        t->shape[1] = 1;
        t->ndim = 3;
    }
    return tile(t, rows, s, err);
}

// 1 if the tensor belongs to a layer after those of the model.
static int predicts_more(const char *name, const struct rlhf__gguf_shape *s) {
    if (!s->more || strncmp(name, "blk.", 4) != 0) return 0;
    const long layer = strtol(name + 4, NULL, 10);
    return layer >= s->layers && layer < s->layers + s->more;
}

static rlhf_status add(struct rlhf__gguf_weights *w, const struct rlhf__tensor *from,
                       const struct rlhf__gguf_shape *s, struct rlhf__error *err) {
    struct rlhf__tensor *t = &w->tensor[w->n];
    char *name = w->names + w->n * RLHF__GGUF_NAME_CAP;
    struct rlhf__gguf_place p;
    if (is_divisors(from->name)) return RLHF_OK;
    if (predicts_more(from->name, s)) {
        w->left_out++;
        return RLHF_OK;
    }
    if (!rlhf__gguf_name_in(s->family, from->name, &p))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: tensor %s is not one of llama.cpp's architecture %s", from->file,
                          from->name, rlhf__gguf_arch(s->family));
    RLHF_TRY(rlhf__gguf_check_tensor(s, from, err));
    if (!rlhf__gguf_fits(&s->mix, &p))
        return rlhf__fail(err, RLHF_E_INVALID,
                          "%s: tensor %s is in a layer %s attention by the file's keys", from->file,
                          from->name, p.in == RLHF__GGUF_IN_ATTENTION ? "without" : "with");
    memcpy(name, p.name, RLHF__GGUF_NAME_CAP);
    *t = *from;
    t->name = name;
    w->n++;
    return arrange(t, p.rows, s, err);
}

// ---- Granite 4: gate and up projection are one tensor ----

static struct rlhf__tensor *find(struct rlhf__gguf_weights *w, const char *name) {
    for (size_t i = 0; i < w->n; i++)
        if (w->tensor[i].name && strcmp(w->tensor[i].name, name) == 0) return &w->tensor[i];
    return NULL;
}

static void join_layer(struct rlhf__gguf_weights *w, int32_t layer) {
    char name[RLHF__GGUF_NAME_CAP];
#define NAME(end) (snprintf(name, sizeof name, "model.layers.%d." end, (int)layer), name)
    struct rlhf__tensor *gate = find(w, NAME("mlp.gate_proj.weight"));
    struct rlhf__tensor *up = find(w, NAME("mlp.up_proj.weight"));
    struct rlhf__tensor *down = find(w, NAME("mlp.down_proj.weight"));
    if (!gate || !up || !down) return;
    struct rlhf__tensor *then = &w->part[layer];
    *then = *up;
    up->name = NULL;
    gate->then = then;
    gate->shape[0] += then->shape[0];
    gate->count += then->count;
    // The names have the same capacity.
    memcpy((char *)(uintptr_t)gate->name, NAME("shared_mlp.input_linear.weight"), sizeof name);
    memcpy((char *)(uintptr_t)down->name, NAME("shared_mlp.output_linear.weight"), sizeof name);
#undef NAME
}

static rlhf_status join(struct rlhf__gguf_weights *w, int32_t layers, struct rlhf__error *err) {
    w->part = calloc((size_t)layers + 1, sizeof *w->part);
    if (!w->part) return RLHF__NOMEM(err, "out of memory for the tensors");
    for (int32_t i = 0; i < layers; i++)
        join_layer(w, i);
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++)
        if (w->tensor[i].name) w->tensor[n++] = w->tensor[i];
    w->n = n;
    return RLHF_OK;
}

// ---- the file ----

rlhf_status rlhf__gguf_weights_open(const char *path, struct rlhf__gguf_weights *w,
                                    struct rlhf__error *err) {
    struct rlhf__gguf_shape shape;
    json_t *config = NULL;
    size_t n = 0;
    *w = (struct rlhf__gguf_weights){0};
    RLHF_TRY(rlhf__gguf_open(path, &w->file, err));
    RLHF_TRY(rlhf__gguf_config(w->file, &shape, &config, err));
    json_decref(config);
    const struct rlhf__tensor *t = rlhf__gguf_tensors(w->file, &n);
    w->tensor = calloc(n + 1, sizeof *w->tensor);
    w->names = calloc(n + 1, RLHF__GGUF_NAME_CAP);
    if (!w->tensor || !w->names) return RLHF__NOMEM(err, "out of memory for the tensors");
    for (size_t i = 0; i < n; i++)
        RLHF_TRY(add(w, &t[i], &shape, err));
    RLHF_TRY(rlhf__gguf_check_complete(w->file, &shape, err));
    return shape.hybrid ? join(w, shape.layers, err) : RLHF_OK;
}

void rlhf__gguf_weights_finish(struct rlhf__gguf_weights *w) {
    free(w->tensor);
    free(w->part);
    free(w->names);
    rlhf__gguf_close(w->file);
    *w = (struct rlhf__gguf_weights){0};
}

// ---- a description ----

// Appends the types of tensors. `seen` has the number of tensors of each type, and becomes 0.
static void put_types(struct rlhf__buf *out, size_t seen[RLHF__N_TENSOR_DTYPES]) {
    for (const char *between = "";; between = ", ") {
        int32_t most = 0;
        for (int32_t i = 1; i < RLHF__N_TENSOR_DTYPES; i++)
            if (seen[i] > seen[most]) most = i;
        if (seen[most] == 0) return;
        const char *noun = *between ? "" : seen[most] == 1 ? "tensor " : "tensors ";
        rlhf__buf_printf(out, "%s%zu %sin %s", between, seen[most], noun,
                         rlhf__tensor_dtype_name(most));
        seen[most] = 0;
    }
}

rlhf_status rlhf__gguf_describe(const char *path, struct rlhf__buf *out, struct rlhf__error *err) {
    struct rlhf__gguf_file *file = NULL;
    size_t seen[RLHF__N_TENSOR_DTYPES] = {0}, n = 0, len = 0;
    const char *arch = "";
    uint64_t bytes = 0;
    RLHF_TRY(rlhf__gguf_open(path, &file, err));
    const struct rlhf__tensor *t = rlhf__gguf_tensors(file, &n);
    for (size_t i = 0; i < n; i++) {
        seen[t[i].dtype]++;
        bytes += t[i].n_bytes;
    }
    const struct rlhf__gguf_value *v = rlhf__gguf_find(file, "general.architecture");
    if (v && rlhf__gguf_value_str(v, &arch, &len, NULL) == RLHF_OK)
        rlhf__put_printable(out, arch, len, "");
    rlhf__buf_puts(out, "; ");
    put_types(out, seen);
    rlhf__buf_printf(out, "; %s", rlhf__size_text(bytes).text);
    rlhf__gguf_close(file);
    return rlhf__buf_ok(out, err);
}
