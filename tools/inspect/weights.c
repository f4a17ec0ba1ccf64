// weights.c: see weights.h.
#include "inspect/weights.h"

#include "base/decimal.h"
#include "base/json.h"
#include "base/printable.h"
#include "cmd/program.h"
#include "export/export_adapter.h"
#include "inspect/inspect_models.h"
#include "inspect/spectrum.h"
#include "model/session.h"
#include "weights/run_checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// A model's tensors. If the model is an adapter, these are the tensors of its base with the adapter
// added.
struct side {
    struct rlhf__export_source source;
    struct rlhf__export_tensors tensors;
    struct rlhf__export_adapter adapter;
};

struct change {
    int64_t count, changed;
    double norm, base_norm; // Frobenius norms: of the difference; of the base
    double tuned_norm;
    double largest, effective; // singular value; effective rank. NAN: not computed
    int64_t rank, full;        // -1: not computed
};

// ---- opening ----

static rlhf_status open_side(struct side *s, const struct rlhf__env *env, const char *flag,
                             const char *given, const char *adapter, struct rlhf__error *err) {
    char room[RLHF__PATH_CAP];
    const char *from = rlhf__dirs_shared(env->dirs, given, room);
    rlhf_status st = rlhf__run_model(flag, &from, room, env->log, err);
    if (st != RLHF_OK) return st;
    st = rlhf__export_source_open(&s->source, from, adapter, NULL, env->log, err);
    // Open the exact weights of a checkpoint, because rounding is not a change that training made.
    if (st == RLHF_OK) st = rlhf__export_tensors_open(&s->tensors, &s->source, 1, env->log, err);
    if (st == RLHF_OK && s->source.peft.dir)
        st = rlhf__export_adapter_merge(&s->adapter, &s->tensors, &s->source, 1, err);
    return st == RLHF_E_INVALID ? rlhf__error_context(err, "%s", flag) : st;
}

static void close_side(struct side *s) {
    rlhf__export_adapter_finish(&s->adapter);
    rlhf__export_tensors_finish(&s->tensors);
    rlhf__export_source_finish(&s->source);
}

// Find the directory of the base. It is the directory that the flag names, or the directory of the
// model from which the tuned model was made.
static rlhf_status base_of(const struct side *tuned, const struct rlhf__env *env,
                           const struct rlhf__weights_request *q, char room[RLHF__PATH_CAP],
                           struct rlhf__error *err) {
    const struct rlhf__export_source *s = &tuned->source;
    if (!q->base)
        return rlhf__inspect_find_base(env->dirs, q->tuned, s->peft.dir ? s->base : NULL,
                                       s->settings, room, err);
    rlhf__path_put(room, "%s", q->base);
    return RLHF_OK;
}

// ---- one tensor ----

static const struct rlhf__tensor *find(const struct side *s, const char *name) {
    for (size_t i = 0; i < s->tensors.n; i++)
        if (strcmp(s->tensors.tensor[i]->name, name) == 0) return s->tensors.tensor[i];
    return NULL;
}

static int same_shape(const struct rlhf__tensor *a, const struct rlhf__tensor *b) {
    return a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

// Unit roundoff of a stored dtype.
static double roundoff(int32_t dtype) {
    return dtype == RLHF__TENSOR_BF16 ? 0x1p-8 : dtype == RLHF__TENSOR_F16 ? 0x1p-11 : 0x1p-24;
}

static uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

// Subtract the base's tensor from `d`, which holds the tuned tensor.
static void subtract(float *d, const float *base, int64_t n, struct change *c) {
    double square = 0, before = 0, after = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = (double)d[i], y = (double)base[i];
        c->changed += bits_of(d[i]) != bits_of(base[i]);
        after += x * x;
        before += y * y;
        square += (x - y) * (x - y);
        d[i] = (float)(x - y);
    }
    c->count = n;
    c->norm = sqrt(square);
    c->base_norm = sqrt(before);
    c->tuned_norm = sqrt(after);
}

// The dtype that rounded a tensor. A merged adapter is added in f32 to the base's stored values.
static int32_t rounded_to(const struct rlhf__tensor *t) {
    return t->plus ? RLHF__TENSOR_F32 : t->dtype;
}

// Only some singular values of the difference count for the rank: those that are too large to come
// from the rounding of the weights. By Weyl's inequality, rounding changes a singular value by at
// most the Frobenius norm of the rounding error of the difference. This norm is at most the sum of
// the norms of the two models' rounding errors. If the models were rounded to different types,
// training began from the base's stored values. Then the base's rounding is not part of the
// difference, and only the rounding of f32 counts for the base.
static double rounding(const struct rlhf__tensor *t, const struct rlhf__tensor *base,
                       const struct change *c) {
    const int32_t of_t = rounded_to(t);
    const int32_t of_base = rounded_to(base) == of_t ? of_t : RLHF__TENSOR_F32;
    return roundoff(of_t) * c->tuned_norm + roundoff(of_base) * c->base_norm;
}

static rlhf_status add_rank(const float *d, const struct rlhf__tensor *t,
                            const struct rlhf__tensor *base, const volatile sig_atomic_t *cancelled,
                            struct change *c, struct rlhf__error *err) {
    const size_t rows = (size_t)t->shape[0], cols = (size_t)t->shape[1];
    const size_t n = rows < cols ? rows : cols;
    double *value = calloc(n, sizeof *value);
    if (!value) return RLHF__NOMEM(err, "out of memory for singular values");
    const rlhf_status st = rlhf__singular_values(d, rows, cols, cancelled, value, err);
    if (st == RLHF_OK) {
        const double floor = fmax(rounding(t, base, c), 1e-6 * value[0]);
        c->largest = value[0];
        c->rank = (int64_t)rlhf__rank_above(value, n, floor);
        c->effective = rlhf__effective_rank(value, n);
    }
    free(value);
    return st;
}

static rlhf_status compare(const struct rlhf__tensor *base, const struct rlhf__tensor *tuned,
                           const struct rlhf__weights_request *q,
                           const volatile sig_atomic_t *cancelled, struct change *c,
                           struct rlhf__error *err) {
    const int64_t n = tuned->count;
    const int matrix = tuned->ndim == 2 && tuned->shape[0] > 1 && tuned->shape[1] > 1;
    float *x = malloc((size_t)(n ? n : 1) * sizeof *x),
          *y = malloc((size_t)(n ? n : 1) * sizeof *y);
    rlhf_status st = RLHF_OK;
    *c = (struct change){.largest = NAN, .effective = NAN, .rank = -1, .full = -1};
    if (!x || !y) st = RLHF__NOMEM(err, "out of memory for the tensor %s", tuned->name);
    if (st == RLHF_OK) st = rlhf__tensor_read_f32(tuned, 0, n, x, err);
    if (st == RLHF_OK) st = rlhf__tensor_read_f32(base, 0, n, y, err);
    if (st == RLHF_OK) subtract(x, y, n, c);
    free(y);
    if (st == RLHF_OK && matrix) {
        c->full = tuned->shape[0] < tuned->shape[1] ? tuned->shape[0] : tuned->shape[1];
        if (c->changed == 0) c->rank = 0;
        if (c->changed && !q->no_rank && isfinite(c->norm))
            st = add_rank(x, tuned, base, cancelled, c, err);
    }
    free(x);
    return st;
}

// ---- output ----

static void put_json(struct rlhf__buf *out, const struct rlhf__tensor *t, const struct change *c,
                     int first) {
    char number[4][40];
    rlhf__buf_puts(out, first ? "{\"name\":" : ",{\"name\":");
    rlhf__json_write_string(out, t->name, strlen(t->name));
    rlhf__buf_puts(out, ",\"shape\":[");
    for (int32_t i = 0; i < t->ndim; i++)
        rlhf__buf_printf(out, "%s%lld", i ? "," : "", (long long)t->shape[i]);
    rlhf__buf_printf(
        out, "],\"changed\":%s,\"norm\":%s,\"base_norm\":%s",
        rlhf__format_double(c->count ? (double)c->changed / (double)c->count : 0, 0, number[0]),
        rlhf__format_double(c->norm, 0, number[1]),
        rlhf__format_double(c->base_norm, 0, number[2]));
    if (c->rank >= 0) rlhf__buf_printf(out, ",\"rank\":%lld", (long long)c->rank);
    if (!isnan(c->effective)) {
        rlhf__buf_printf(out, ",\"effective_rank\":%s,\"largest\":%s",
                         rlhf__format_double(c->effective, 0, number[0]),
                         rlhf__format_double(c->largest, 0, number[3]));
    }
    rlhf__buf_putc(out, '}');
}

// On terminals with fewer than WHOLE columns, the table lacks shape, norm and effective rank.
enum { WHOLE = 117 };

static int is_narrow(void) { return rlhf__terminal_width(STDOUT_FILENO, WHOLE) < WHOLE; }

static void put_head(void) {
    if (is_narrow())
        printf("%-40s %8s %10s  %14s\n", "tensor", "changed", "of base", "rank");
    else
        printf("%-44s %-14s %8s %11s %10s  %14s %8s\n", "tensor", "shape", "changed", "norm",
               "of base", "rank", "effective");
}

static void put_line(const struct rlhf__tensor *t, const struct change *c) {
    char name[60], shape[40];
    const double share = c->count ? 100 * (double)c->changed / (double)c->count : 0;
    const int narrow = is_narrow();
    rlhf__printable(t->name, name, sizeof name);
    rlhf__tensor_shape_text(t->shape, t->ndim, shape, sizeof shape);
    if (narrow)
        printf("%-40s %6.1f %%", name, share);
    else
        printf("%-44s %-14s %6.1f %% %11.4g", name, shape, share, c->norm);
    if (c->base_norm > 0)
        printf(" %8.3f %%", 100 * c->norm / c->base_norm);
    else
        printf(" %10s", "");
    if (c->rank >= 0) printf("  %5lld of %-5lld", (long long)c->rank, (long long)c->full);
    if (!narrow && !isnan(c->effective)) printf(" %8.1f", c->effective);
    puts("");
}

static void put_total(const struct change *all) {
    const double share = 100 * (double)all->changed / (double)all->count;
    if (is_narrow())
        printf("%-40s %6.1f %%", "all", share);
    else
        printf("%-59s %6.1f %% %11.4g", "all", share, sqrt(all->norm));
    if (all->base_norm > 0) printf(" %8.3f %%", 100 * sqrt(all->norm / all->base_norm));
    puts("\n\nchanged: share of elements whose bits differ; of base: norm of the change over\n"
         "that of the base; rank: singular values of the change above the rounding of the\n"
         "stored weights; effective: exp of their entropy (docs/inspect.md)");
}

// ---- all tensors ----

static rlhf_status check_names(const struct side *base, const struct side *tuned,
                               struct rlhf__error *err) {
    for (size_t i = 0; i < tuned->tensors.n; i++) {
        const struct rlhf__tensor *t = tuned->tensors.tensor[i], *b = find(base, t->name);
        char was[64], is[64];
        if (!b)
            return rlhf__fail(
                err, RLHF_E_INVALID,
                "the models have different shapes: '%s' has the tensor %s, which '%s' "
                "lacks",
                tuned->source.dir, t->name, base->source.dir);
        if (!same_shape(t, b))
            return rlhf__fail(
                err, RLHF_E_INVALID,
                "the models have different shapes: %s is %s in '%s' and %s in '%s'", t->name,
                rlhf__tensor_shape_text(b->shape, b->ndim, was, sizeof was), base->source.dir,
                rlhf__tensor_shape_text(t->shape, t->ndim, is, sizeof is), tuned->source.dir);
    }
    return RLHF_OK;
}

static rlhf_status compare_all(const struct side *base, const struct side *tuned,
                               const struct rlhf__env *env, const struct rlhf__weights_request *q,
                               struct rlhf__error *err) {
    struct rlhf__buf json = RLHF__BUF_INIT;
    struct change all = {0}, c = {0};
    rlhf_status st = RLHF_OK;
    if (!q->json) put_head();
    rlhf__buf_puts(&json, "{\"version\":1,\"tensors\":[");
    for (size_t i = 0; st == RLHF_OK && i < tuned->tensors.n; i++) {
        const struct rlhf__tensor *t = tuned->tensors.tensor[i];
        rlhf__progress_step(q->progress, "comparing tensors", (int64_t)i,
                            (int64_t)tuned->tensors.n);
        st = *env->cancelled ? rlhf__fail(err, RLHF_E_CANCELLED, "stopped")
                             : compare(find(base, t->name), t, q, env->cancelled, &c, err);
        if (st != RLHF_OK) break;
        all.count += c.count;
        all.changed += c.changed;
        all.norm += c.norm * c.norm;
        all.base_norm += c.base_norm * c.base_norm;
        if (q->json) {
            put_json(&json, t, &c, i == 0);
            continue;
        }
        rlhf__progress_hide(q->progress);
        put_line(t, &c);
        rlhf__progress_show(q->progress);
    }
    rlhf__progress_hide(q->progress);
    rlhf__buf_puts(&json, "]}\n");
    if (st == RLHF_OK) st = rlhf__buf_ok(&json, err);
    if (st == RLHF_OK && q->json) fwrite(rlhf__buf_text(&json), 1, json.len, stdout);
    if (st == RLHF_OK && !q->json && all.count) put_total(&all);
    rlhf__buf_finish(&json);
    return st == RLHF_OK ? rlhf__print_flush(err) : st;
}

rlhf_status rlhf__inspect_weights(const struct rlhf__env *env,
                                  const struct rlhf__weights_request *q, struct rlhf__error *err) {
    char room[RLHF__PATH_CAP];
    struct side *two = calloc(2, sizeof *two);
    if (!two) return RLHF__NOMEM(err, "out of memory");
    rlhf_status st = open_side(&two[1], env, "--tuned", q->tuned, q->adapter, err);
    if (st == RLHF_OK) st = base_of(&two[1], env, q, room, err);
    if (st == RLHF_OK) st = open_side(&two[0], env, "--base", room, NULL, err);
    if (st == RLHF_OK) st = check_names(&two[0], &two[1], err);
    if (st == RLHF_OK) st = compare_all(&two[0], &two[1], env, q, err);
    close_side(&two[0]);
    close_side(&two[1]);
    free(two);
    return st;
}
