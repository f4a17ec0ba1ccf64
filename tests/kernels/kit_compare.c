// kit_compare.c: outputs of kernel calls and the three checks on them. See kit.h.
#include "kit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- outputs ----

void outputs_add_host(struct outputs *out, const char *name, const double *v, uint64_t n,
                      uint64_t width, const uint32_t *key) {
    assert_true(out->n < CHECK_COUNT(out->o));
    struct output *o = &out->o[out->n++];
    *o = (struct output){name, RLHF_F32, n, width, NULL, NULL};
    o->v = malloc(n * width * sizeof *o->v + 1);
    memcpy(o->v, v, n * width * sizeof *o->v);
    if (!key) return;
    o->key = malloc(n * sizeof *o->key + 1);
    memcpy(o->key, key, n * sizeof *o->key);
}

void outputs_add(struct outputs *out, struct call *k, const char *name, rlhf_dev p, int32_t dtype,
                 uint64_t n, uint64_t width, const uint32_t *key) {
    float *f = call_host(k, n * width * sizeof *f);
    double *v = call_host(k, n * width * sizeof *v);
    kit_read(k->c, f, p, n * width, dtype);
    for (uint64_t i = 0; i < n * width; i++)
        v[i] = (double)f[i];
    outputs_add_host(out, name, v, n, width, key);
    out->o[out->n - 1].dtype = dtype;
}

void outputs_finish(struct outputs *out) {
    for (uint32_t i = 0; i < out->n; i++) {
        free(out->o[i].v);
        free(out->o[i].key);
    }
    out->n = 0;
}

void op_run_rows(rlhf_compute *c, op_fn op, const void *shape, const uint32_t *rows,
                 uint32_t n_rows, struct outputs *out) {
    struct call k;
    memset(&k, 0, sizeof k);
    memset(out, 0, sizeof *out);
    k.c = c;
    k.rows = rows;
    k.n_rows = n_rows;
    op(&k, shape, out);
    call_finish(&k);
}

void op_run(rlhf_compute *c, op_fn op, const void *shape, uint32_t n_rows, struct outputs *out) {
    uint32_t *rows = malloc((n_rows + 1) * sizeof *rows);
    for (uint32_t i = 0; i < n_rows; i++)
        rows[i] = i;
    op_run_rows(c, op, shape, rows, n_rows, out);
    free(rows);
}

// ---- cpu compared with the reference ----

// Prints the difference. Returns 0 if it exceeds the bound.
static int match_one(const char *label, const struct output *got, const struct output *want,
                     struct bound b) {
    const uint64_t n = want->n * want->width;
    double err = 0.0, ref = 0.0, worst = 0.0;
    uint64_t at = 0, odd = 0;
    for (uint64_t i = 0; i < n; i++) {
        const double g = got->v[i], w = want->v[i];
        if (!isfinite(g) || !isfinite(w)) {
            if (!(g == w || (isnan(g) && isnan(w)))) odd++, at = i;
            continue;
        }
        if (fabs(g - w) > worst) worst = fabs(g - w), at = odd ? at : i;
        err += (g - w) * (g - w);
        ref += w * w;
    }
    const double rms = sqrt(ref / (double)(n ? n : 1)), scale = rms > 0.0 ? rms : 1.0;
    const double nmse = ref > 0.0 ? err / ref : err;
    const int ok = odd == 0 && nmse <= b.nmse && worst / scale <= b.max;
    printf("%s %s %s: nmse %.1e, max difference %.1e (%.1e of rms)%s\n", ok ? "  ok" : "FAIL",
           label, want->name, nmse, worst, worst / scale, odd ? ", wrong inf or nan" : "");
    if (!ok)
        printf("     at %llu of %llu: got %.9g, want %.9g; allowed nmse %.1e, max %.1e of rms\n",
               (unsigned long long)at, (unsigned long long)n, n ? got->v[at] : 0.0,
               n ? want->v[at] : 0.0, b.nmse, b.max);
    return ok;
}

void check_match(struct kit *k, op_fn op, const void *shape, uint32_t n_rows, struct bound f32,
                 struct bound bf16) {
    struct outputs want, got;
    int ok = 1;
    op_run(k->ref, op, shape, n_rows, &want);
    op_run(k->cpu1, op, shape, n_rows, &got);
    assert_int_equal(want.n, got.n);
    for (uint32_t i = 0; i < want.n; i++)
        ok &=
            match_one(want.label, &got.o[i], &want.o[i], want.o[i].dtype == RLHF_BF16 ? bf16 : f32);
    outputs_finish(&want);
    outputs_finish(&got);
    if (!ok) fail_msg("cpu differs from reference");
}

// ---- bits ----

// Compares each row of `some` with the row of `all` that has the same key. Returns the number of
// rows that differ.
static uint64_t rows_differ(const struct outputs *some, const struct outputs *all) {
    uint64_t bad = 0;
    for (uint32_t i = 0; i < some->n; i++) {
        const struct output *s = &some->o[i], *a = &all->o[i];
        for (uint64_t r = 0; s->key && r < s->n; r++) {
            assert_true(s->key[r] < a->n && a->key[s->key[r]] == s->key[r]);
            const double *x = s->v + r * s->width, *y = a->v + s->key[r] * s->width;
            if (memcmp(x, y, s->width * sizeof *x) == 0) continue;
            if (bad++) continue;
            for (uint64_t c = 0; c < s->width; c++) {
                if (memcmp(x + c, y + c, sizeof *x) == 0) continue;
                printf("FAIL %s %s row %u element %llu: %.17g in this call, %.17g in the whole\n",
                       all->label, s->name, s->key[r], (unsigned long long)c, x[c], y[c]);
                break;
            }
        }
    }
    return bad;
}

static void check_selection(rlhf_compute *c, op_fn op, const void *shape, const struct outputs *all,
                            const uint32_t *rows, uint32_t n, const char *what) {
    struct outputs some;
    op_run_rows(c, op, shape, rows, n, &some);
    assert_true(some.n == all->n);
    const uint64_t bad = rows_differ(&some, all);
    outputs_finish(&some);
    if (bad)
        fail_msg("%s on %s, %s (%u rows): the bits of %llu rows depend on their company",
                 all->label, c->name, what, n, (unsigned long long)bad);
}

void check_rows(rlhf_compute *c, op_fn op, const void *shape, uint32_t n_rows) {
    static const uint32_t counts[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 24, 31, 32, 33, 48, 64};
    struct outputs all;
    if (!(c->flags & RLHF_COMPUTE_ROW_EXACT)) return; // the backend does not promise it
    uint32_t *sel = malloc(n_rows * sizeof *sel);
    op_run(c, op, shape, n_rows, &all);
    for (uint32_t i = 0; i < n_rows; i++)
        sel[i] = n_rows - 1 - i;
    check_selection(c, op, shape, &all, sel, n_rows, "reversed");
    for (size_t j = 0; j < CHECK_COUNT(counts) && counts[j] < n_rows; j++) {
        const uint32_t n = counts[j], from = (uint32_t)(j * 13) % (n_rows - n + 1);
        for (uint32_t i = 0; i < n; i++)
            sel[i] = from + i;
        check_selection(c, op, shape, &all, sel, n, "a slice");
        for (uint32_t i = 0; i < n; i++)
            sel[i] = (from + 7 * i + i * i) % n_rows;
        check_selection(c, op, shape, &all, sel, n, "a shuffled pick");
    }
    free(sel);
    outputs_finish(&all);
}

static int same_bits(const struct outputs *a, const struct outputs *b, const char *what) {
    for (uint32_t i = 0; i < a->n; i++) {
        const struct output *x = &a->o[i], *y = &b->o[i];
        for (uint64_t j = 0; j < x->n * x->width; j++) {
            if (memcmp(x->v + j, y->v + j, sizeof *x->v) == 0) continue;
            printf("FAIL %s %s element %llu: %.17g and %.17g with %s\n", a->label, x->name,
                   (unsigned long long)j, x->v[j], y->v[j], what);
            return 0;
        }
    }
    return 1;
}

void check_threads(struct kit *k, op_fn op, const void *shape, uint32_t n_rows) {
    struct outputs one, two, again;
    if (!(k->cpu1->flags & RLHF_COMPUTE_ROW_EXACT)) return;
    op_run(k->cpu1, op, shape, n_rows, &one);
    op_run(k->cpu2, op, shape, n_rows, &two);
    op_run(k->cpu2, op, shape, n_rows, &again);
    const int ok = same_bits(&one, &two, "1 and 2 threads");
    const int ok2 = same_bits(&two, &again, "the same instance twice");
    int ok3 = 1;
    if (k->more[0]) { // more threads than cores or rows: 4, 8 and 16 in turn
        const uint32_t i = k->turn++ % KIT_MORE;
        struct outputs many;
        char what[32];
        snprintf(what, sizeof what, "1 and %u threads", 4u << i);
        op_run(k->more[i], op, shape, n_rows, &many);
        ok3 = same_bits(&one, &many, what);
        outputs_finish(&many);
    }
    outputs_finish(&one);
    outputs_finish(&two);
    outputs_finish(&again);
    if (!ok || !ok2 || !ok3) fail_msg("the bits of the cpu backend are not fixed");
}
