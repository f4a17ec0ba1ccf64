// tap.c: see tap.h.
#include "inspect/tap.h"

#include <math.h>
#include <rlhf/exact.h>
#include <stdlib.h>
#include <string.h>

enum { WIDEST = 64 }; // maximum width of all heads together, as a multiple of the stream's width

static const char *plugin_name(const struct rlhf__model *m) {
    return rlhf__plugin_name(m->instance->plugin);
}

// Checks the sizes from the plugin, because the host allocates and divides by them.
static int is_sound(const struct rlhf__model *m, const rlhf_tap_info *i) {
    return i->n_layer == m->info.n_layer && i->d_model == m->info.d_model &&
           i->n_vocab == m->info.n_vocab && i->n_head > 0 && i->n_kv_head > 0 &&
           i->n_head % i->n_kv_head == 0 && i->head_dim > 0 && i->head_dim <= 1 << 15 &&
           i->n_head <= 1 << 15 && i->n_kv_head <= i->n_head &&
           (int64_t)i->n_head * i->head_dim <= (int64_t)WIDEST * i->d_model &&
           i->value_hidden >= 0 && i->value_hidden <= 1 << 20 && i->norm_eps >= 0 &&
           i->norm_eps < 1 && i->norm >= RLHF_TAP_NORM_LAYER && i->norm <= RLHF_TAP_NORM_RMS &&
           i->logit_softcap >= 0 && isfinite(i->logit_softcap);
}

// A faulty plugin is bad input for this command, not an error of the program.
static rlhf_status end_call(const struct rlhf__call *call, rlhf_status said,
                            struct rlhf__error *err) {
    const rlhf_status st = rlhf__call_end(call, said, err);
    return st == RLHF_E_INTERNAL ? RLHF_E_INVALID : st;
}

rlhf_status rlhf__tap_open(const struct rlhf__model *m, struct rlhf__tap *out,
                           struct rlhf__error *err) {
    const rlhf_tap_ops *ops = rlhf__plugin_extension(m->instance->plugin, m->self, RLHF_EXT_TAP);
    memset(out, 0, sizeof *out);
    out->model = m;
    if (!ops)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "the %s '%s' cannot be inspected: its model plugin %s has no %s here "
                          "(this program's plugins have none for encoders and for layers with a "
                          "state, as LFM2 and Qwen3.5 have)",
                          m->role, m->dir, plugin_name(m), RLHF_EXT_TAP);
    if (rlhf_copy_in(&out->ops, sizeof out->ops, ops, RLHF_SIZE_TO(rlhf_tap_ops, logits)) < 0)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED,
                          "%s, extension(): its %s is of another version than this program's",
                          plugin_name(m), RLHF_EXT_TAP);
    const rlhf_tap_ops *o = &out->ops;
    if (!o->info || !o->run || !o->read || !o->project || !o->head || !o->logits)
        return rlhf__fail(err, RLHF_E_UNSUPPORTED, "%s, extension(): its %s lacks a function",
                          plugin_name(m), RLHF_EXT_TAP);
    struct rlhf__filled filled;
    rlhf_tap_info *info = RLHF__FILLED(rlhf_tap_info, &filled, m->instance->plugin->abi_minor);
    struct rlhf__call call = rlhf__call_begin(m->instance, "info() of the tap");
    RLHF_TRY(end_call(&call, o->info(m->self, info), err));
    if (rlhf__filled_end(&filled, &out->info, err) < 0)
        return rlhf__error_context(err, "%s, info() of its tap", plugin_name(m));
    if (is_sound(m, &out->info)) return RLHF_OK;
    return rlhf__fail(
        err, RLHF_E_UNSUPPORTED,
        "%s, info() of its tap: %d layers of %d heads and %d of keys, of width %d, with eps %g, do "
        "not fit its model",
        plugin_name(m), out->info.n_layer, out->info.n_head, out->info.n_kv_head,
        out->info.head_dim, out->info.norm_eps);
}

// ---- calls that write numbers ----

static void blank(float *out, uint64_t n) {
    for (uint64_t i = 0; out && i < n; i++)
        out[i] = NAN;
}

// A function that reported success must have written n finite numbers.
static rlhf_status check_finite(const struct rlhf__tap *t, const char *function, const float *x,
                                uint64_t n, struct rlhf__error *err) {
    for (uint64_t i = 0; x && i < n; i++)
        if (!isfinite(x[i]))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "%s, %s of its tap: number %llu of %llu is missing, NaN or infinite, "
                              "so '%s' cannot be explained: its weights hold such numbers, or the "
                              "plugin is wrong",
                              plugin_name(t->model), function, (unsigned long long)i + 1,
                              (unsigned long long)n, t->model->dir);
    return RLHF_OK;
}

rlhf_status rlhf__tap_read(const struct rlhf__tap *t, int32_t point, int32_t layer, float *out,
                           uint64_t count, struct rlhf__error *err) {
    blank(out, count);
    struct rlhf__call call = rlhf__call_begin(t->model->instance, "read() of the tap");
    RLHF_TRY(end_call(&call, t->ops.read(t->model->self, point, layer, out, count), err));
    return check_finite(t, "read()", out, count, err);
}

rlhf_status rlhf__tap_project(const struct rlhf__tap *t, int32_t layer, const float *x,
                              uint32_t rows, float *out, struct rlhf__error *err) {
    const uint64_t n = (uint64_t)rows * (uint64_t)t->info.d_model;
    blank(out, n);
    struct rlhf__call call = rlhf__call_begin(t->model->instance, "project() of the tap");
    RLHF_TRY(end_call(&call, t->ops.project(t->model->self, layer, x, rows, out), err));
    return check_finite(t, "project()", out, n, err);
}

rlhf_status rlhf__tap_head(const struct rlhf__tap *t, int32_t head, const int32_t *row, uint32_t n,
                           float *out, float *bias, struct rlhf__error *err) {
    const int hidden = head == RLHF_TAP_VALUE && t->info.value_hidden > 0;
    const uint64_t all = (uint64_t)n * (uint64_t)(hidden ? t->info.value_hidden : t->info.d_model);
    blank(out, all);
    blank(bias, n);
    struct rlhf__call call = rlhf__call_begin(t->model->instance, "head() of the tap");
    RLHF_TRY(end_call(&call, t->ops.head(t->model->self, head, row, n, out, bias), err));
    RLHF_TRY(check_finite(t, "head()", out, all, err));
    return check_finite(t, "head()", bias, n, err);
}

rlhf_status rlhf__tap_logits(const struct rlhf__tap *t, uint32_t first, uint32_t n, float *out,
                             struct rlhf__error *err) {
    const uint64_t all = (uint64_t)n * (uint64_t)t->info.n_vocab;
    blank(out, all);
    struct rlhf__call call = rlhf__call_begin(t->model->instance, "logits() of the tap");
    RLHF_TRY(end_call(&call, t->ops.logits(t->model->self, first, n, out), err));
    return check_finite(t, "logits()", out, all, err);
}

static rlhf_status run(const struct rlhf__tap *t, const rlhf_batch *b, const rlhf_tap_run *r,
                       struct rlhf__error *err) {
    rlhf_tap_run passed = *r;
    RLHF__PASS(rlhf_tap_run, &passed, t->model->instance->plugin->abi_minor);
    struct rlhf__call call = rlhf__call_begin(t->model->instance, "run() of the tap");
    return end_call(&call, t->ops.run(t->model->self, b, &passed), err);
}

rlhf_status rlhf__tap_run(const struct rlhf__tap *t, const int32_t *ids, uint32_t n,
                          struct rlhf__error *err) {
    const int32_t offset[] = {0, (int32_t)n}, prompt_len[] = {(int32_t)n};
    const rlhf_batch b = {.size = sizeof b,
                          .n = 1,
                          .total = n,
                          .ids = ids,
                          .offset = offset,
                          .prompt_len = prompt_len};
    const rlhf_tap_run r = {.keep = 1};
    return run(t, &b, &r, err);
}

rlhf_status rlhf__tap_run_from(const struct rlhf__tap *t, const int32_t *ids, uint32_t n,
                               uint32_t rows, int32_t point, int32_t layer, const float *stream,
                               float *end, struct rlhf__error *err) {
    const uint32_t total = n * rows;
    int32_t *ints = malloc(((size_t)total + 2 * (size_t)rows + 1) * sizeof *ints);
    if (!ints) return RLHF__NOMEM(err, "out of memory for %u rows of the prompt", rows);
    int32_t *offset = ints + total, *prompt_len = offset + rows + 1;
    offset[0] = 0;
    for (uint32_t i = 0; i < rows; i++) {
        memcpy(ints + (size_t)i * n, ids, n * sizeof *ints);
        offset[i + 1] = (int32_t)((i + 1) * n);
        prompt_len[i] = (int32_t)n;
    }
    const rlhf_batch b = {.size = sizeof b,
                          .n = rows,
                          .total = total,
                          .ids = ints,
                          .offset = offset,
                          .prompt_len = prompt_len};
    const rlhf_tap_run r = {.point = point, .layer = layer, .stream = stream};
    rlhf_status st = run(t, &b, &r, err);
    free(ints);
    if (st != RLHF_OK) return st;
    return rlhf__tap_read(t, RLHF_TAP_END, 0, end, (uint64_t)total * (uint64_t)t->info.d_model,
                          err);
}

rlhf_status rlhf__tap_matrix(const struct rlhf__tap *t, int32_t layer, float *out,
                             struct rlhf__error *err) {
    enum { ROWS = 256 };
    const uint64_t q = rlhf__tap_width(t), d = (uint64_t)t->info.d_model;
    float *x = malloc(ROWS * q * sizeof *x);
    if (!x) return RLHF__NOMEM(err, "out of memory for a matrix of the model");
    rlhf_status st = RLHF_OK;
    for (uint64_t from = 0; st == RLHF_OK && from < q; from += ROWS) {
        const uint32_t rows = (uint32_t)(q - from < ROWS ? q - from : ROWS);
        memset(x, 0, rows * q * sizeof *x);
        for (uint32_t i = 0; i < rows; i++)
            x[i * q + from + i] = 1;
        st = rlhf__tap_project(t, layer, x, rows, out + from * d, err);
    }
    free(x);
    return st;
}

// tanh y = (e^2y - 1) / (e^2y + 1).
double rlhf__capped(double x, double cap) {
    if (cap == 0) return x;
    if (!(fabs(x) < 40.0 * cap)) return copysign(cap, x);
    const double e = rlhf_expm1(2.0 * x / cap);
    return cap * (e / (e + 2.0));
}
