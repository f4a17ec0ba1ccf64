// model_tap.c: tests the tap of a model that has one (rlhf/draft/tap.h): whether its points are
// consistent, and whether its logits equal those of forward().
#include "check/cases.h"

#include "check/checked_model.h"
#include "check/guard.h"

#include <rlhf/draft/tap.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CLOSE 1e-3 // relative to the largest value; everything is f32

struct tapped {
    struct rlhf__checked_model m;
    const rlhf_tap_ops *t;
    rlhf_tap_info info;
    struct rlhf__checked_rows rows;
    uint64_t n, d, q; // tokens, width of the stream, and of all heads
    float *sum, *point, *heads;
};

static int fine(struct tapped *k, rlhf_status st) {
    return rlhf__checked_fine(&k->m, RLHF__CHECK_EXTENSION, st);
}

static int read_at(struct tapped *k, int32_t point, int32_t layer, float *out, uint64_t n) {
    rlhf__probe_begin(&k->m.t, "read() of " RLHF_EXT_TAP);
    return fine(k, k->t->read(k->m.t.self, point, layer, out, n));
}

static int run(struct tapped *k, const rlhf_tap_run *r) {
    rlhf_tap_run passed = *r;
    int32_t offset[RLHF__CHECKED_ROWS + 1];
    const rlhf_batch b = rlhf__checked_batch(&k->rows, 0, RLHF__CHECKED_ROWS, offset);
    RLHF__PASS(rlhf_tap_run, &passed, k->m.t.check->plugin->abi_minor);
    rlhf__probe_begin(&k->m.t, "run() of " RLHF_EXT_TAP);
    return fine(k, k->t->run(k->m.t.self, &b, &passed));
}

// Report a point that differs from the sum of the outputs before it.
static void check_close(struct tapped *k, const char *what, int32_t layer) {
    double most = 0, wrong = 0;
    for (uint64_t i = 0; i < k->n * k->d; i++) {
        most = fmax(most, fabs((double)k->point[i]));
        wrong = fmax(wrong, fabs((double)k->point[i] - (double)k->sum[i]));
    }
    if (!(wrong <= CLOSE * (most > 1 ? most : 1)))
        rlhf__child_log_found(k->m.t.check->log, RLHF__CHECK_EXTENSION,
                              "%s: %s of layer %d differs by %g from the values written into "
                              "the stream",
                              RLHF_EXT_TAP, what, layer, wrong);
}

static void add(struct tapped *k, const float *x, uint64_t n) {
    for (uint64_t i = 0; i < k->n * k->d; i++)
        k->sum[i] += x[i % n];
}

// Adds a bias, which the model may lack, to k->sum.
static int add_bias(struct tapped *k, int32_t layer) {
    rlhf__probe_begin(&k->m.t, "read() of " RLHF_EXT_TAP);
    const rlhf_status st = k->t->read(k->m.t.self, RLHF_TAP_OUT_BIAS, layer, k->point, k->d);
    if (st == RLHF_E_UNSUPPORTED) {
        rlhf__probe_end(&k->m.t, RLHF_OK, NULL);
        return 1;
    }
    if (!fine(k, st)) return 0;
    add(k, k->point, k->d);
    return 1;
}

// Applies the norm of attention's output, which most models lack, to k->sum.
static int apply_norm(struct tapped *k, int32_t layer) {
    rlhf__probe_begin(&k->m.t, "read() of " RLHF_EXT_TAP);
    const rlhf_status st = k->t->read(k->m.t.self, RLHF_TAP_OUT_NORM, layer, k->point, k->d);
    if (st == RLHF_E_UNSUPPORTED) {
        rlhf__probe_end(&k->m.t, RLHF_OK, NULL);
        return 1;
    }
    if (!fine(k, st)) return 0;
    for (float *x = k->sum; x < k->sum + k->n * k->d; x += k->d) {
        double square = 0;
        for (uint64_t i = 0; i < k->d; i++)
            square += (double)x[i] * (double)x[i];
        const double scale = sqrt(square / (double)k->d + k->info.norm_eps);
        for (uint64_t i = 0; i < k->d; i++)
            x[i] = (float)((double)x[i] / scale * (double)k->point[i]);
    }
    return 1;
}

static int check_layer(struct tapped *k, int32_t l) {
    const uint64_t n = k->n * k->d;
    if (!read_at(k, RLHF_TAP_HEADS, l, k->heads, k->n * k->q)) return 0;
    rlhf__probe_begin(&k->m.t, "project() of " RLHF_EXT_TAP);
    if (!fine(k, k->t->project(k->m.t.self, l, k->heads, (uint32_t)k->n, k->sum))) return 0;
    if (!add_bias(k, l) || !apply_norm(k, l) || !read_at(k, RLHF_TAP_IN, l, k->point, n)) return 0;
    add(k, k->point, n);
    if (!read_at(k, RLHF_TAP_MID, l, k->point, n)) return 0;
    check_close(k, "RLHF_TAP_MID", l);
    return 1;
}

static int check_embeddings(struct tapped *k) {
    const uint64_t n = k->n * k->d;
    if (!read_at(k, RLHF_TAP_TOKEN, 0, k->sum, n)) return 0;
    if (k->info.positions) {
        if (!read_at(k, RLHF_TAP_POSITION, 0, k->point, n)) return 0;
        add(k, k->point, n);
    }
    if (!read_at(k, RLHF_TAP_IN, 0, k->point, n)) return 0;
    check_close(k, "RLHF_TAP_IN", 0);
    return 1;
}

// A run that starts in the middle of the last layer must have the same result as a whole run.
static void check_run_from(struct tapped *k) {
    const int32_t last = k->info.n_layer - 1;
    const uint64_t n = k->n * k->d;
    const rlhf_tap_run r = {.point = RLHF_TAP_MID, .layer = last, .stream = k->point};
    if (read_at(k, RLHF_TAP_END, 0, k->sum, n) && read_at(k, RLHF_TAP_MID, last, k->point, n) &&
        run(k, &r) && read_at(k, RLHF_TAP_END, 0, k->point, n))
        check_close(k, "RLHF_TAP_END after a run from RLHF_TAP_MID", last);
}

static void check_all(struct tapped *k) {
    const rlhf_tap_run all = {.keep = 1};
    const uint32_t minor = k->m.t.check->plugin->abi_minor;
    struct rlhf__guards *guards = rlhf__guards_open(k->m.t.check->log);
    rlhf_tap_info *info = RLHF__GUARDED(rlhf_tap_info, guards, minor);
    if (!info) return;
    rlhf__probe_begin(&k->m.t, "info() of " RLHF_EXT_TAP);
    const rlhf_status st = k->t->info(k->m.t.self, info);
    rlhf__guard_struct_end(RLHF__STRUCT_rlhf_tap_info, info, &k->info, minor, k->m.t.check->log);
    rlhf__guards_close(guards);
    if (!fine(k, st)) return;
    if (k->info.d_model != k->m.info.d_model || k->info.n_layer != k->m.info.n_layer ||
        k->info.n_vocab != k->m.info.n_vocab || k->info.n_head < 1 || k->info.head_dim < 1) {
        rlhf__child_log_found(k->m.t.check->log, RLHF__CHECK_EXTENSION,
                              "%s: info() does not fit the model's info()", RLHF_EXT_TAP);
        return;
    }
    rlhf__checked_rows_make(&k->m, &k->rows);
    k->n = (uint64_t)k->rows.offset[RLHF__CHECKED_ROWS];
    k->d = (uint64_t)k->info.d_model;
    k->q = (uint64_t)k->info.n_head * (uint64_t)k->info.head_dim;
    k->sum = calloc(k->n * k->d, sizeof *k->sum);
    k->point = calloc(k->n * k->d, sizeof *k->point);
    k->heads = calloc(k->n * k->q, sizeof *k->heads);
    int ok = k->sum && k->point && k->heads && run(k, &all) && check_embeddings(k);
    for (int32_t l = 0; ok && l < k->info.n_layer; l++)
        ok = check_layer(k, l);
    if (ok) check_run_from(k);
    free(k->sum);
    free(k->point);
    free(k->heads);
}

int rlhf__try_tap(struct rlhf__check *c, int32_t step) {
    struct tapped k = {0};
    rlhf_model_info info;
    if (step > 0 || !c->plugin->desc.extension) return 0;
    rlhf__child_log_doing(c->log, "extension(self, \"%s\")", RLHF_EXT_TAP);
    if (!rlhf__checked_is_small(c, RLHF_HEAD_LOGP, &info)) return 1;
    if (rlhf__checked_open(c, &k.m, 0, &(rlhf_model_open){0}) &&
        rlhf__checked_fill(&k.m, 0, 0, 0)) {
        k.t = c->plugin->desc.extension(k.m.t.self, RLHF_EXT_TAP);
        if (k.t) check_all(&k);
    }
    rlhf__checked_close(&k.m);
    return 1;
}
