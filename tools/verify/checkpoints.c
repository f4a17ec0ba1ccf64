// checkpoints.c: see checkpoints.h.
#include "verify/checkpoints.h"

#include "base/file.h"
#include "weights/safetensors.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 65536

// A file of a checkpoint, and the file with its moments.
static const struct {
    const char *name, *optim;
    int32_t is_moments;
} files[] = {
    {"model.safetensors", "state/optimizer.safetensors", 0},
    {"adapter_model.safetensors", "state/optimizer.safetensors", 0},
    {"state/master.safetensors", "state/optimizer.safetensors", 0},
    {"state/value_head.safetensors", "state/optimizer.safetensors", 0},
    {"state/critic.safetensors", "state/critic_optimizer.safetensors", 0},
    {"state/reference.safetensors", "state/optimizer.safetensors", 0},
    {"state/optimizer.safetensors", NULL, 1},
    {"state/critic_optimizer.safetensors", NULL, 1},
};

// ---- one file of the three checkpoints ----

struct opened {
    struct rlhf__weights *before, *run, *again, *optim;
    float *room; // 4 * PIECE
};

static void close_all(struct opened *o) {
    rlhf__weights_close(o->before);
    rlhf__weights_close(o->run);
    rlhf__weights_close(o->again);
    rlhf__weights_close(o->optim);
    free(o->room);
}

// Open the file if it exists; *out is NULL otherwise.
static rlhf_status open_file(const char *dir, const char *name, struct rlhf__weights **out,
                             struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    rlhf__path_put(path, "%s/%s", dir, name);
    *out = NULL;
    return rlhf__is_file(path) ? rlhf__weights_open(path, out, err) : RLHF_OK;
}

static rlhf_status open_all(struct opened *o, const struct rlhf__checkpoints *c, size_t k,
                            struct rlhf__error *err) {
    o->room = malloc(4 * PIECE * sizeof *o->room);
    if (!o->room) return RLHF__NOMEM(err, "out of memory for tensors");
    RLHF_TRY(open_file(c->before, files[k].name, &o->before, err));
    RLHF_TRY(open_file(c->run, files[k].name, &o->run, err));
    RLHF_TRY(open_file(c->again, files[k].name, &o->again, err));
    if (!files[k].optim) return RLHF_OK;
    RLHF_TRY(open_file(c->again, files[k].optim, &o->optim, err));
    if (o->optim) return RLHF_OK;
    return open_file(c->again, "state/optimizer.safetensors", &o->optim, err);
}

// ---- one tensor ----

// The same tensor in three checkpoints: the run's previous one (`before`), the run's, and the
// recomputed one (`again`). `v` is its second moment. `before` and `v` may be NULL.
struct tensors {
    const struct rlhf__tensor *before, *run, *again, *v;
};

// The measurements over the elements of a tensor.
struct measured {
    double most; // largest difference
    double most_run, most_again;
    int64_t most_at;   // index of that element
    double beyond;     // largest difference minus the rounding that is allowed for the element
    double moved;      // largest change of an element in the phase
    double size;       // largest recomputed element
    double off, whole; // sums of squares of the difference and of the change, weighted by v
    double run_norm, again_norm; // sums of squares of the change
};

static void see(struct measured *m, int64_t at, float before, float run, float again, double v,
                double rounding) {
    uint32_t bits[2];
    memcpy(&bits[0], &run, sizeof run);
    memcpy(&bits[1], &again, sizeof again);
    const int same = bits[0] == bits[1];
    double d = fabs((double)run - (double)again);
    const double u = (double)again - (double)before, w = (double)run - (double)before;
    if (same) d = 0;
    if (!same && d == 0) d = FLT_MIN; // +0 and -0 differ only in their bits
    if (!(d <= m->most)) {
        m->most = isnan(d) ? INFINITY : d;
        m->most_run = (double)run;
        m->most_again = (double)again;
        m->most_at = at;
    }
    const double beyond = d - rounding * fabs((double)again);
    if (!(beyond <= m->beyond)) m->beyond = isnan(beyond) ? INFINITY : beyond;
    m->moved = fmax(m->moved, fabs(u));
    m->size = fmax(m->size, fabs((double)again));
    m->off += v * d * d;
    m->whole += v * u * u;
    m->run_norm += w * w;
    m->again_norm += u * u;
}

static rlhf_status measure(const struct tensors *t, float *room, double rounding,
                           struct measured *out, struct rlhf__error *err) {
    float *before = room, *run = room + PIECE, *again = room + 2 * PIECE, *v = room + 3 * PIECE;
    *out = (struct measured){0};
    for (int64_t at = 0; at < t->run->count; at += PIECE) {
        const int64_t left = t->run->count - at, n = left < PIECE ? left : PIECE;
        RLHF_TRY(rlhf__tensor_read_f32(t->run, at, n, run, err));
        RLHF_TRY(rlhf__tensor_read_f32(t->again, at, n, again, err));
        if (t->before) RLHF_TRY(rlhf__tensor_read_f32(t->before, at, n, before, err));
        if (t->v) RLHF_TRY(rlhf__tensor_read_f32(t->v, at, n, v, err));
        for (int64_t k = 0; k < n; k++)
            see(out, at + k, t->before ? before[k] : 0, run[k], again[k], t->v ? (double)v[k] : 1,
                rounding);
    }
    return RLHF_OK;
}

static int same_shape(const struct rlhf__tensor *a, const struct rlhf__tensor *b) {
    return a && b && a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

// Return 1 if tensor i has the same shape in the run's checkpoint and in the recomputed one.
static int is_comparable(const struct opened *o, size_t i) {
    const struct rlhf__tensor *t = rlhf__weights_at(o->run, i);
    return same_shape(t, rlhf__weights_find(o->again, t->name));
}

static const struct rlhf__tensor *find(const struct rlhf__weights *w, const char *prefix,
                                       const struct rlhf__tensor *like) {
    char name[600];
    if (!w) return NULL;
    snprintf(name, sizeof name, "%s%s", prefix, like->name);
    const struct rlhf__tensor *t = rlhf__weights_find(w, name);
    return t && t->count == like->count ? t : NULL;
}

// ---- all tensors of a file ----

// Sums over the tensors of a kind. [0] is for tensors with a second moment, [1] for tensors
// without.
struct sums {
    double off[2], whole[2], run, again;
    double moved;                         // the largest change of an element
    struct rlhf__recompute_check element; // the element that is furthest beyond its limit
};

// Append a failed check of the tensor's element with the largest difference.
static rlhf_status blame(struct rlhf__checks *c, const char *file, const struct rlhf__tensor *t,
                         const struct measured *m, double limit, struct rlhf__error *err) {
    struct rlhf__recompute_check k = {.run = m->most_run,
                                      .again = m->most_again,
                                      .difference = m->most,
                                      .relative = m->most,
                                      .limit = limit,
                                      .has_values = 1,
                                      .wrong = 1};
    snprintf(k.what, sizeof k.what, "element of %.100s", file);
    snprintf(k.where, sizeof k.where, "%.170s[%lld]", t->name, (long long)m->most_at);
    return rlhf__checks_add(c, &k, err);
}

static rlhf_status measure_weight(const struct opened *o, const struct rlhf__tensor *run,
                                  const struct rlhf__check_limits *l, struct sums *s,
                                  struct measured *m, struct rlhf__error *err) {
    const struct tensors t = {find(o->before, "", run), run,
                              rlhf__weights_find(o->again, run->name), find(o->optim, "v.", run)};
    const int exact = l->rounding == 0, half = run->dtype != RLHF__TENSOR_F32;
    const int plain = t.v == NULL;
    RLHF_TRY(measure(&t, o->room, exact ? 0 : half ? 0x1p-7 : l->rounding, m, err));
    s->off[plain] += m->off;
    s->whole[plain] += m->whole;
    s->run += m->run_norm;
    s->again += m->again_norm;
    s->moved = fmax(s->moved, m->moved);
    rlhf__check_see(&s->element, m->most_run, m->most_again, 1, run->name);
    return RLHF_OK;
}

static rlhf_status compare_moment(const struct opened *o, size_t k, const struct rlhf__tensor *run,
                                  double most, const struct rlhf__check_limits *l, struct sums *s,
                                  struct rlhf__checks *c, struct rlhf__error *err) {
    const struct tensors t = {NULL, run, rlhf__weights_find(o->again, run->name), NULL};
    struct measured m;
    RLHF_TRY(measure(&t, o->room, 0, &m, err));
    const double allowed = l->moments * fmax(m.size, most);
    rlhf__check_see(&s->element, m.most_run, m.most_again, 1, run->name);
    return m.most <= allowed ? RLHF_OK : blame(c, files[k].name, run, &m, allowed, err);
}

// Sets *out to a thousandth of the largest recomputed first moment (`letter` is 'm') or second
// moment ('v'). If a tensor's gradient is only rounding noise, the rounding errors of its moments
// may be this large.
static rlhf_status floor_of(const struct opened *o, char letter, double *out,
                            struct rlhf__error *err) {
    *out = 0;
    for (size_t i = 0; i < rlhf__weights_count(o->again); i++) {
        const struct rlhf__tensor *t = rlhf__weights_at(o->again, i);
        const struct tensors same = {NULL, t, t, NULL};
        struct measured m;
        if (t->name[0] != letter) continue;
        RLHF_TRY(measure(&same, o->room, 0, &m, err));
        *out = fmax(*out, m.size * 1e-3);
    }
    return RLHF_OK;
}

static rlhf_status summarize(size_t k, const struct sums *s, const struct rlhf__check_limits *l,
                             struct rlhf__checks *c, struct rlhf__error *err) {
    struct rlhf__recompute_check element = s->element, update = {.limit = l->update};
    snprintf(element.what, sizeof element.what, "largest difference in %.80s", files[k].name);
    element.relative = 0; // the tensors were judged one by one
    element.limit = INFINITY;
    RLHF_TRY(rlhf__checks_add(c, &element, err));
    if (files[k].is_moments) return RLHF_OK;
    snprintf(update.what, sizeof update.what, "update of %.100s", files[k].name);
    rlhf__check_see(&update, sqrt(s->run), sqrt(s->again), 1, "");
    update.relative = 0;
    for (int i = 0; i < 2; i++)
        if (s->off[i] > 0) // whole 0: only the run has moved
            update.relative = fmax(update.relative, sqrt(s->off[i] / s->whole[i]));
    return rlhf__checks_add(c, &update, err);
}

// Each element may differ by twice the largest change of an element in the phase, because AdamW
// scales even rounding noise up to a full step. The length of the whole difference, weighted by the
// second moments, has a separate limit.
static rlhf_status compare_weights(const struct opened *o, size_t k,
                                   const struct rlhf__check_limits *l, struct sums *s,
                                   struct rlhf__checks *c, struct rlhf__error *err) {
    const size_t n = rlhf__weights_count(o->run);
    struct measured *m = calloc(n + 1, sizeof *m);
    rlhf_status st = m ? RLHF_OK : RLHF__NOMEM(err, "out of memory for the comparison");
    for (size_t i = 0; st == RLHF_OK && i < n; i++)
        if (is_comparable(o, i))
            st = measure_weight(o, rlhf__weights_at(o->run, i), l, s, &m[i], err);
    const double allowed = l->rounding == 0 ? 0 : 2 * s->moved;
    for (size_t i = 0; st == RLHF_OK && i < n; i++)
        if (is_comparable(o, i) && !(m[i].beyond <= allowed))
            st = blame(c, files[k].name, rlhf__weights_at(o->run, i), &m[i], allowed, err);
    free(m);
    return st;
}

static rlhf_status compare_moments(const struct opened *o, size_t k,
                                   const struct rlhf__check_limits *l, struct sums *s,
                                   struct rlhf__checks *c, struct rlhf__error *err) {
    double m = 0, v = 0;
    RLHF_TRY(floor_of(o, 'm', &m, err));
    RLHF_TRY(floor_of(o, 'v', &v, err));
    for (size_t i = 0; i < rlhf__weights_count(o->run); i++) {
        const struct rlhf__tensor *t = rlhf__weights_at(o->run, i);
        if (is_comparable(o, i))
            RLHF_TRY(compare_moment(o, k, t, t->name[0] == 'v' ? v : m, l, s, c, err));
    }
    return RLHF_OK;
}

static rlhf_status compare_tensors(const struct opened *o, size_t k,
                                   const struct rlhf__check_limits *l, struct rlhf__checks *c,
                                   struct rlhf__error *err) {
    struct sums s = {.element = {.limit = 0}};
    if (rlhf__weights_count(o->run) != rlhf__weights_count(o->again))
        RLHF_TRY(rlhf__checks_fail(c, files[k].name, "the files have other tensors", err));
    for (size_t i = 0; i < rlhf__weights_count(o->run); i++)
        if (!is_comparable(o, i))
            RLHF_TRY(rlhf__checks_fail(c, files[k].name, rlhf__weights_at(o->run, i)->name, err));
    if (files[k].is_moments)
        RLHF_TRY(compare_moments(o, k, l, &s, c, err));
    else
        RLHF_TRY(compare_weights(o, k, l, &s, c, err));
    return summarize(k, &s, l, c, err);
}

static rlhf_status compare_file(const struct rlhf__checkpoints *dirs, size_t k,
                                const struct rlhf__check_limits *l, struct rlhf__checks *c,
                                struct rlhf__error *err) {
    struct opened o = {0};
    rlhf_status st = open_all(&o, dirs, k, err);
    if (st == RLHF_OK && !o.run != !o.again)
        st = rlhf__checks_fail(c, files[k].name,
                               o.run ? "was not recomputed" : "is missing in the run", err);
    else if (st == RLHF_OK && o.run)
        st = compare_tensors(&o, k, l, c, err);
    close_all(&o);
    return st;
}

rlhf_status rlhf__checkpoints_compare(const struct rlhf__checkpoints *dirs,
                                      const struct rlhf__check_limits *l, struct rlhf__checks *c,
                                      struct rlhf__error *err) {
    for (size_t k = 0; k < sizeof files / sizeof *files; k++)
        RLHF_TRY(compare_file(dirs, k, l, c, err));
    return RLHF_OK;
}
