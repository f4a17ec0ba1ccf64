// model.c: what the contract says of models, on the reference backend: on paper first, then with
// numbers where the configuration is small.
#include "check/cases.h"

#include "model/compute.h"
#include "model/paper.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 2000000, VOCAB = 64, ROWS = 3, SLOTS = 2, LONGEST = 12 };

// An instance with a backend, opened.
struct model {
    struct rlhf__watched t;
    struct rlhf__compute *compute;
    struct rlhf__paper *paper;
    const rlhf_compute *table;
    rlhf_model_info info;
    int32_t open, trainable;
};

static const rlhf_model_ops *ops_of(const struct model *m) {
    return &m->t.check->plugin->ops.model;
}

// A failure of a call of the model against a rule, with its words; 1 when it succeeded.
static int fine(struct model *m, int32_t rule, rlhf_status st) {
    struct rlhf__error err;
    if (rlhf__watched_end(&m->t, st, &err) == RLHF_OK) return 1;
    rlhf__board_found(m->t.check->board, rule, "%s", err.text);
    return 0;
}

static void model_close(struct model *m) {
    rlhf__watched_finish(&m->t);
    rlhf__paper_destroy(m->paper);
    rlhf__compute_close(m->compute);
}

// 0: it does not come to an open model, which is found, a fact, or the machine's.
static int model_open(struct rlhf__check *c, struct model *m, int on_paper, int trainable) {
    const struct rlhf__compute_spec spec = {.dirs = c->dirs, .backend = "reference"};
    struct rlhf__error err;
    *m = (struct model){.trainable = trainable};
    m->t.check = c;
    if (rlhf__compute_open(&spec, &m->compute, &err) < 0) {
        rlhf__board_fact(c->board, "numbers were not tried: %s", err.text);
        return 0;
    }
    m->table = m->compute->table;
    if (on_paper && rlhf__paper_create(m->table, 0, &m->paper, &err) < 0) return 0;
    if (on_paper) m->table = rlhf__paper_table(m->paper);
    if (rlhf__watched_create(c, NULL, 0, &m->t, &err) < 0) return 0;
    const rlhf_model_open how = {
        .size = sizeof how, .dtype = RLHF_F32, .trainable = trainable, .compute = m->table};
    rlhf__watched_begin(&m->t, "open()");
    if (!fine(m, RLHF__CHECK_OPEN, ops_of(m)->open(m->t.self, &how))) return 0;
    m->info.size = sizeof m->info;
    rlhf__watched_begin(&m->t, "info()");
    m->open = fine(m, RLHF__CHECK_OPEN, ops_of(m)->info(m->t.self, &m->info));
    return m->open;
}

// ---- on paper ----

static void check_param(struct model *m, uint32_t i, const rlhf_param *p, int64_t *all) {
    struct rlhf__board *b = m->t.check->board;
    int64_t n = 1;
    const size_t len = p->name ? strlen(p->name) : 0;
    if (len == 0 || len > RLHF_PARAM_NAME_MAX || p->ndim < 1 || p->ndim > 4) {
        rlhf__board_found(b, RLHF__CHECK_PARAM,
                          "parameter %u has a name of %zu bytes and %d "
                          "dimensions",
                          i, len, p->ndim);
        return;
    }
    for (int32_t k = 0; k < 4; k++) {
        if (k < p->ndim ? p->shape[k] < 1 || n > INT64_MAX / p->shape[k] : p->shape[k] != 0) {
            rlhf__board_found(b, RLHF__CHECK_PARAM,
                              "parameter \"%s\" has %lld as dimension %d of "
                              "%d",
                              p->name, (long long)p->shape[k], k, p->ndim);
            return;
        }
        if (k < p->ndim) n *= p->shape[k];
    }
    if (p->flags & ~(uint32_t)RLHF_PARAM_KNOWN || p->group < 0 || p->group > RLHF_PARAM_ADAPTER)
        rlhf__board_found(b, RLHF__CHECK_PARAM, "parameter \"%s\" is of group %d with flags 0x%x",
                          p->name, p->group, p->flags);
    if (!p->value || (m->trainable && !p->grad && !(p->flags & RLHF_PARAM_FROZEN)))
        rlhf__board_found(b, RLHF__CHECK_PARAM, "parameter \"%s\" has no %s", p->name,
                          p->value ? "gradient" : "value");
    *all += n;
}

static void check_params(struct model *m) {
    struct rlhf__board *b = m->t.check->board;
    int64_t all = 0;
    rlhf_param p = {.size = sizeof p};
    for (int32_t i = 0; i < m->info.n_tensors; i++) {
        p = (rlhf_param){.size = sizeof p};
        rlhf__watched_begin(&m->t, "param()");
        if (!fine(m, RLHF__CHECK_PARAM, ops_of(m)->param(m->t.self, (uint32_t)i, &p))) return;
        check_param(m, (uint32_t)i, &p, &all);
    }
    p = (rlhf_param){.size = sizeof p};
    rlhf__watched_begin(&m->t, "param()");
    const rlhf_status past = ops_of(m)->param(m->t.self, (uint32_t)m->info.n_tensors, &p);
    rlhf__watched_end(&m->t, RLHF_OK, NULL);
    if (past != RLHF_E_INVALID)
        rlhf__board_found(b, RLHF__CHECK_PARAM, "param() past the end returns %d", past);
    if (all != m->info.n_params)
        rlhf__board_found(b, RLHF__CHECK_PARAM, "info() says %lld parameters, param() lists %lld",
                          (long long)m->info.n_params, (long long)all);
    if (m->info.heads & ~(uint32_t)RLHF_HEAD_KNOWN)
        rlhf__board_found(b, RLHF__CHECK_OPEN,
                          "info()->heads is 0x%x, with bits that are not known", m->info.heads);
}

static int try_paper(struct rlhf__check *c, int32_t step) {
    struct model m;
    if (step > 1) return 0;
    rlhf__board_doing(c->board, "open() and param() on memory that nobody may read%s",
                      step ? ", to be trained" : "");
    if (model_open(c, &m, 1, step)) check_params(&m);
    model_close(&m);
    return 1;
}

// ---- with numbers ----

// Whether it is small enough for the reference backend; said once, when not.
static int is_small(struct rlhf__check *c) {
    struct model m;
    int small = model_open(c, &m, 1, 0);
    if (small && (m.info.n_params > MOST || m.info.n_vocab < 8 || m.info.n_ctx < LONGEST)) {
        rlhf__board_fact(c->board,
                         "numbers were not tried: %lld parameters, a vocabulary of %d and a "
                         "context of %d; at most %d, at least 8 and %d are (--set)",
                         (long long)m.info.n_params, m.info.n_vocab, m.info.n_ctx, MOST, LONGEST);
        small = 0;
    } else if (small && !(m.info.heads & RLHF_HEAD_LOGP)) {
        rlhf__board_fact(c->board, "numbers were not tried: it gives no log-probs");
        small = 0;
    }
    model_close(&m);
    return small;
}

static float number(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 8388608.0f - 1.0f;
}

// Every parameter: small numbers, ones where it begins at one; plus eps times a direction.
static int fill(struct model *m, float eps) {
    for (int32_t i = 0; i < m->info.n_tensors; i++) {
        rlhf_param p = {.size = sizeof p};
        uint32_t state = 11u + (uint32_t)i, way = 77u + (uint32_t)i;
        int64_t n = 1;
        if (ops_of(m)->param(m->t.self, (uint32_t)i, &p) < 0) return 0;
        for (int32_t k = 0; k < p.ndim; k++)
            n *= p.shape[k];
        float *x = malloc((size_t)n * sizeof *x);
        if (!x) return 0;
        for (int64_t k = 0; k < n; k++)
            x[k] = (p.init == RLHF_INIT_ONE ? 1.0f : 0.0f) + 0.15f * number(&state) +
                   eps * number(&way);
        const rlhf_status st = m->table->upload(m->table->ctx, p.value, x, (uint64_t)n * sizeof *x);
        free(x);
        if (st < 0) return 0;
    }
    rlhf__watched_begin(&m->t, "refresh()");
    return fine(m, RLHF__CHECK_FORWARD, ops_of(m)->refresh(m->t.self));
}

// The product of all gradients with the direction of fill().
static double along(struct model *m) {
    double sum = 0;
    for (int32_t i = 0; i < m->info.n_tensors; i++) {
        rlhf_param p = {.size = sizeof p};
        uint32_t way = 77u + (uint32_t)i;
        int64_t n = 1;
        if (ops_of(m)->param(m->t.self, (uint32_t)i, &p) < 0) return NAN;
        for (int32_t k = 0; k < p.ndim; k++)
            n *= p.shape[k];
        float *g = calloc((size_t)n, sizeof *g);
        if (!g ||
            (p.grad && m->table->download(m->table->ctx, g, p.grad, (uint64_t)n * sizeof *g) < 0))
            sum = NAN;
        for (int64_t k = 0; g && k < n; k++)
            sum += (double)g[k] * (double)number(&way);
        free(g);
    }
    return sum;
}

struct rows {
    int32_t ids[ROWS * LONGEST], offset[ROWS + 1], prompt_len[ROWS];
    float logp[ROWS * LONGEST], d[ROWS * LONGEST];
};

static void make_rows(const struct model *m, struct rows *r) {
    static const int32_t length[ROWS] = {5, LONGEST, 3}, prompt[ROWS] = {2, 4, 1};
    uint32_t state = 3;
    memset(r, 0, sizeof *r);
    for (int32_t i = 0; i < ROWS; i++) {
        r->offset[i + 1] = r->offset[i] + length[i];
        r->prompt_len[i] = prompt[i];
    }
    for (int32_t t = 0; t < r->offset[ROWS]; t++)
        r->ids[t] = (int32_t)((number(&state) + 1) / 2 * (float)m->info.n_vocab) % m->info.n_vocab;
    for (int32_t i = 0; i < ROWS; i++)
        for (int32_t t = r->offset[i] + r->prompt_len[i]; t < r->offset[i + 1]; t++)
            r->d[t] = number(&state);
}

// Log-probs of rows from .. to-1 into their places of logp.
static int forward(struct model *m, const struct rows *r, int32_t from, int32_t to, int32_t train,
                   float *logp) {
    static const rlhf_dist whole = RLHF_DIST_WHOLE;
    const int32_t base = r->offset[from];
    int32_t offset[ROWS + 1];
    for (int32_t i = from; i <= to; i++)
        offset[i - from] = r->offset[i] - base;
    const rlhf_batch batch = {sizeof batch,
                              (uint32_t)(to - from),
                              (uint32_t)(r->offset[to] - base),
                              0,
                              r->ids + base,
                              offset,
                              r->prompt_len + from,
                              NULL};
    const rlhf_forward how = {
        .size = sizeof how, .heads = RLHF_HEAD_LOGP, .train = train, .dist = &whole};
    const rlhf_heads out = {.size = sizeof out, .logp = logp + base};
    const rlhf_heads grad = {.size = sizeof grad, .logp = (float *)(uintptr_t)r->d + base};
    rlhf__watched_begin(&m->t, "forward()");
    if (!fine(m, RLHF__CHECK_FORWARD, ops_of(m)->forward(m->t.self, &batch, &how, &out))) return 0;
    if (!train) return 1;
    rlhf__watched_begin(&m->t, "backward()");
    return fine(m, RLHF__CHECK_BACKWARD, ops_of(m)->backward(m->t.self, &batch, &how, &grad));
}

static double weighted(const struct rows *r, const float *logp) {
    double sum = 0;
    for (int32_t t = 0; t < r->offset[ROWS]; t++)
        sum += (double)r->d[t] * (double)logp[t];
    return sum;
}

static int same_bits(float a, float b) {
    uint32_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y;
}

static void check_rows(struct model *m, struct rows *r) {
    struct rlhf__board *b = m->t.check->board;
    float alone[ROWS * LONGEST] = {0};
    for (int32_t i = 0; i < ROWS; i++)
        if (!forward(m, r, i, i + 1, 0, alone)) return;
    for (int32_t i = 0; i < ROWS; i++)
        for (int32_t t = r->offset[i]; t < r->offset[i + 1]; t++) {
            const int given = t >= r->offset[i] + r->prompt_len[i];
            if (given ? !(r->logp[t] < 0) : r->logp[t] != 0)
                rlhf__board_found(b, RLHF__CHECK_LOGP, "logp[%d], of a %s token, is %g", t,
                                  given ? "response" : "prompt", (double)r->logp[t]);
            if (same_bits(alone[t], r->logp[t])) continue;
            rlhf__board_found(b, RLHF__CHECK_ROWS,
                              "logp[%d] is %.9g among %d rows, and %.9g with its row alone", t,
                              (double)r->logp[t], ROWS, (double)alone[t]);
            return;
        }
}

// The row's tokens one step at a time: what is drawn has the log-prob that forward gives it.
static void check_steps(struct model *m, const struct rows *r) {
    static const rlhf_dist whole = RLHF_DIST_WHOLE;
    const rlhf_model_ops *ops = ops_of(m);
    rlhf_gen *gen = NULL;
    struct rows drawn = {.offset = {0, 2, 2, 2}, .prompt_len = {2, 1, 1}};
    float step_logp[LONGEST] = {0};
    const int32_t slot = 0;
    if (!ops->gen_open) return;
    rlhf__watched_begin(&m->t, "gen_open()");
    if (!fine(m, RLHF__CHECK_STEP, ops->gen_open(m->t.self, SLOTS, LONGEST, &gen))) return;
    memcpy(drawn.ids, r->ids, 2 * sizeof *drawn.ids);
    int ok = 1;
    for (int32_t at = 2; ok && at < LONGEST; at++) {
        const int32_t start = at == 2 ? 0 : at - 1, offset[2] = {0, at == 2 ? 2 : 1};
        const uint64_t counter = (uint64_t)at;
        const rlhf_gen_step step = {.size = sizeof step,
                                    .n = 1,
                                    .slot = &slot,
                                    .start = &start,
                                    .ids = drawn.ids + start,
                                    .offset = offset,
                                    .dist = &whole,
                                    .logp_dist = &whole,
                                    .seed = 5,
                                    .stream = 6,
                                    .counter = &counter,
                                    .next = &drawn.ids[at],
                                    .logp = &step_logp[at]};
        rlhf__watched_begin(&m->t, "gen_step()");
        ok = fine(m, RLHF__CHECK_STEP, ops->gen_step(m->t.self, gen, &step));
        if (ok && (drawn.ids[at] < 0 || drawn.ids[at] >= m->info.n_vocab)) {
            rlhf__board_found(m->t.check->board, RLHF__CHECK_STEP, "gen_step() drew the id %d",
                              drawn.ids[at]);
            ok = 0;
        }
    }
    rlhf__watched_begin(&m->t, "gen_close()");
    ops->gen_close(m->t.self, gen);
    rlhf__watched_end(&m->t, RLHF_OK, NULL);
    drawn.offset[1] = LONGEST;
    if (!ok || !forward(m, &drawn, 0, 1, 0, drawn.logp)) return;
    for (int32_t t = 2; t < LONGEST; t++) {
        if (same_bits(drawn.logp[t], step_logp[t])) continue;
        rlhf__board_found(m->t.check->board, RLHF__CHECK_STEP,
                          "token %d was drawn with log-prob %.9g; forward() gives it %.9g", t,
                          (double)step_logp[t], (double)drawn.logp[t]);
        return;
    }
}

static int try_numbers(struct rlhf__check *c, int32_t step) {
    struct model m;
    struct rows r;
    if (step > 0) return 0;
    rlhf__board_doing(c->board, "forward() of %d rows, and of each alone", ROWS);
    if (!is_small(c)) return 1;
    if (model_open(c, &m, 0, 0) && fill(&m, 0)) {
        make_rows(&m, &r);
        if (forward(&m, &r, 0, ROWS, 0, r.logp)) {
            check_rows(&m, &r);
            rlhf__board_doing(c->board, "gen_step() of a row");
            if (m.info.causal) check_steps(&m, &r);
        }
    }
    model_close(&m);
    return 1;
}

static int try_gradient(struct rlhf__check *c, int32_t step) {
    const float eps = 2e-3f;
    struct model m;
    struct rows r;
    double up = 0, down = 0, given = 0;
    if (step > 0 || !c->plugin->ops.model.backward) return 0;
    rlhf__board_doing(c->board, "backward()");
    if (!is_small(c)) return 1;
    if (model_open(c, &m, 0, 1) && fill(&m, 0)) {
        make_rows(&m, &r);
        int ok = forward(&m, &r, 0, ROWS, 1, r.logp);
        given = ok ? along(&m) : 0;
        ok = ok && fill(&m, eps) && forward(&m, &r, 0, ROWS, 0, r.logp);
        up = weighted(&r, r.logp);
        ok = ok && fill(&m, -eps) && forward(&m, &r, 0, ROWS, 0, r.logp);
        down = weighted(&r, r.logp);
        const double slope = (up - down) / (2 * (double)eps);
        if (ok && !(fabs(slope - given) <= 0.02 * fabs(slope) + 0.02))
            rlhf__board_found(c->board, RLHF__CHECK_BACKWARD,
                              "along a direction the gradients give %.6g; by differences of the "
                              "log-probs it is %.6g",
                              given, slope);
    }
    model_close(&m);
    return 1;
}

const struct rlhf__check_case rlhf__model_cases[] = {
    {"paper", RLHF__CHECK_OPEN, 1, 0, 0, try_paper},
    {"numbers", RLHF__CHECK_CRASH, 0, 0, 0, try_numbers},
    {"gradient", RLHF__CHECK_CRASH, 0, 0, 0, try_gradient},
    {NULL, 0, 0, 0, 0, NULL},
};
