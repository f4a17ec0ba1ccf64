// check_model.c: tests a model against the contract on the reference backend. First comes a dry
// run, which only plans memory and computes nothing. If the configuration is small, the model then
// computes. model_heads.c tests heads other than log-probs.
#include "check/cases.h"

#include "check/checked_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2 };

// ---- on a memory plan ----

static void check_param(struct rlhf__checked_model *m, uint32_t i, const rlhf_param *p,
                        int64_t *all) {
    struct rlhf__child_log *b = m->t.check->log;
    int64_t n = 1;
    const size_t len = p->name ? strlen(p->name) : 0;
    if (len == 0 || len > RLHF_PARAM_NAME_MAX || p->ndim < 1 || p->ndim > 4) {
        rlhf__child_log_found(b, RLHF__CHECK_PARAM,
                              "parameter %u has a name of %zu bytes and %d "
                              "dimensions",
                              i, len, p->ndim);
        return;
    }
    for (int32_t k = 0; k < 4; k++) {
        if (k < p->ndim ? p->shape[k] < 1 || n > INT64_MAX / p->shape[k] : p->shape[k] != 0) {
            rlhf__child_log_found(b, RLHF__CHECK_PARAM,
                                  "parameter \"%s\" has %lld as dimension %d of "
                                  "%d",
                                  p->name, (long long)p->shape[k], k, p->ndim);
            return;
        }
        if (k < p->ndim) n *= p->shape[k];
    }
    if (p->flags & ~(uint32_t)RLHF_PARAM_KNOWN || p->group < 0 || p->group > RLHF_PARAM_ADAPTER)
        rlhf__child_log_found(b, RLHF__CHECK_PARAM,
                              "parameter \"%s\" is of group %d with flags 0x%x", p->name, p->group,
                              p->flags);
    if (!p->value || (m->trainable && !p->grad && !(p->flags & RLHF_PARAM_FROZEN)))
        rlhf__child_log_found(b, RLHF__CHECK_PARAM, "parameter \"%s\" has no %s", p->name,
                              p->value ? "gradient" : "value");
    *all += n;
}

static void check_params(struct rlhf__checked_model *m) {
    struct rlhf__child_log *b = m->t.check->log;
    int64_t all = 0;
    rlhf_param p = {.size = sizeof p};
    for (int32_t i = 0; i < m->info.n_tensors; i++) {
        p = (rlhf_param){.size = sizeof p};
        rlhf__probe_begin(&m->t, "param()");
        if (!rlhf__checked_fine(m, RLHF__CHECK_PARAM,
                                rlhf__checked_ops(m)->param(m->t.self, (uint32_t)i, &p)))
            return;
        check_param(m, (uint32_t)i, &p, &all);
    }
    p = (rlhf_param){.size = sizeof p};
    rlhf__probe_begin(&m->t, "param()");
    const rlhf_status past =
        rlhf__checked_ops(m)->param(m->t.self, (uint32_t)m->info.n_tensors, &p);
    rlhf__probe_end(&m->t, RLHF_OK, NULL);
    if (past != RLHF_E_INVALID)
        rlhf__child_log_found(b, RLHF__CHECK_PARAM, "param() past the end returns %d", past);
    if (all != m->info.n_params)
        rlhf__child_log_found(b, RLHF__CHECK_PARAM,
                              "info() says %lld parameters, param() lists %lld",
                              (long long)m->info.n_params, (long long)all);
    if (m->info.heads & ~(uint32_t)RLHF_HEAD_KNOWN)
        rlhf__child_log_found(b, RLHF__CHECK_OPEN,
                              "info()->heads is 0x%x, with bits that are not known", m->info.heads);
    if (m->info.caps & ~(uint32_t)RLHF_CAP_KNOWN)
        rlhf__child_log_found(b, RLHF__CHECK_OPEN,
                              "info()->caps is 0x%x, with bits that are not known", m->info.caps);
}

static int try_on_plan(struct rlhf__check *c, int32_t step) {
    struct rlhf__checked_model m = {0};
    if (step > 1) return 0;
    rlhf__child_log_doing(c->log, "open() and param() on unreadable memory%s",
                          step ? ", to be trained" : "");
    if (rlhf__checked_open(c, &m, 1, &(rlhf_model_open){.trainable = step})) check_params(&m);
    rlhf__checked_close(&m);
    return 1;
}

// ---- with numbers ----

struct rows {
    struct rlhf__checked_rows in;
    float logp[RLHF__CHECKED_TOKENS], d[RLHF__CHECKED_TOKENS];
};

static void make_rows(const struct rlhf__checked_model *m, struct rows *r) {
    memset(r, 0, sizeof *r);
    rlhf__checked_rows_make(m, &r->in);
    rlhf__checked_weights(&r->in, 0, r->d);
}

// Write the log-probs of the rows `from` to `to` - 1 to their places in `logp`.
// `flags` are those of the backward pass.
static int passes(struct rlhf__checked_model *m, const struct rows *r, int32_t from, int32_t to,
                  int32_t train, uint32_t flags, float *logp) {
    static const rlhf_dist whole = RLHF_DIST_WHOLE;
    const int32_t base = r->in.offset[from];
    int32_t offset[RLHF__CHECKED_ROWS + 1];
    const rlhf_batch batch = rlhf__checked_batch(&r->in, from, to, offset);
    rlhf_forward how = {
        .size = sizeof how, .heads = RLHF_HEAD_LOGP, .train = train, .dist = &whole};
    const rlhf_heads out = {.size = sizeof out, .logp = logp + base};
    const rlhf_heads grad = {.size = sizeof grad, .logp = (float *)(uintptr_t)r->d + base};
    rlhf__probe_begin(&m->t, "forward()");
    if (!rlhf__checked_fine(m, RLHF__CHECK_FORWARD,
                            rlhf__checked_ops(m)->forward(m->t.self, &batch, &how, &out)))
        return 0;
    if (!train) return 1;
    how.flags = flags;
    rlhf__probe_begin(&m->t, "backward()");
    return rlhf__checked_fine(m, RLHF__CHECK_BACKWARD,
                              rlhf__checked_ops(m)->backward(m->t.self, &batch, &how, &grad));
}

static int forward(struct rlhf__checked_model *m, const struct rows *r, int32_t from, int32_t to,
                   int32_t train, float *logp) {
    return passes(m, r, from, to, train, 0, logp);
}

static double weighted(const struct rows *r, const float *logp) {
    double sum = 0;
    for (int32_t t = 0; t < r->in.offset[RLHF__CHECKED_ROWS]; t++)
        sum += (double)r->d[t] * (double)logp[t];
    return sum;
}

static void check_rows(struct rlhf__checked_model *m, struct rows *r) {
    struct rlhf__child_log *b = m->t.check->log;
    float alone[RLHF__CHECKED_TOKENS] = {0};
    for (int32_t i = 0; i < RLHF__CHECKED_ROWS; i++)
        if (!forward(m, r, i, i + 1, 0, alone)) return;
    for (int32_t i = 0; i < RLHF__CHECKED_ROWS; i++)
        for (int32_t t = r->in.offset[i]; t < r->in.offset[i + 1]; t++) {
            const int given = t >= r->in.offset[i] + r->in.prompt_len[i];
            if (given ? !(r->logp[t] < 0) : r->logp[t] != 0)
                rlhf__child_log_found(b, RLHF__CHECK_LOGP, "logp[%d], of a %s token, is %g", t,
                                      given ? "response" : "prompt", (double)r->logp[t]);
            if (rlhf__checked_same(alone[t], r->logp[t])) continue;
            rlhf__child_log_found(b, RLHF__CHECK_ROWS,
                                  "logp[%d] is %.9g among %d rows, and %.9g with its row alone", t,
                                  (double)r->logp[t], RLHF__CHECKED_ROWS, (double)alone[t]);
            return;
        }
}

// Process the row's tokens step by step. Sampled tokens must have the same log-probs as in
// forward().
static void check_steps(struct rlhf__checked_model *m, const struct rows *r) {
    static const rlhf_dist whole = RLHF_DIST_WHOLE;
    const rlhf_model_ops *ops = rlhf__checked_ops(m);
    rlhf_gen *gen = NULL;
    struct rows drawn = {.in = {.offset = {0, 2, 2, 2}, .prompt_len = {2, 1, 1}}};
    float step_logp[RLHF__CHECKED_LONGEST] = {0};
    const int32_t slot = 0;
    if (!ops->gen_open) return;
    rlhf__probe_begin(&m->t, "gen_open()");
    if (!rlhf__checked_fine(m, RLHF__CHECK_STEP,
                            ops->gen_open(m->t.self, SLOTS, RLHF__CHECKED_LONGEST, &gen)))
        return;
    memcpy(drawn.in.ids, r->in.ids, 2 * sizeof *drawn.in.ids);
    int ok = 1;
    for (int32_t at = 2; ok && at < RLHF__CHECKED_LONGEST; at++) {
        const int32_t start = at == 2 ? 0 : at - 1, offset[2] = {0, at == 2 ? 2 : 1};
        const uint64_t counter = (uint64_t)at;
        const rlhf_gen_step step = {.size = sizeof step,
                                    .n = 1,
                                    .slot = &slot,
                                    .start = &start,
                                    .ids = drawn.in.ids + start,
                                    .offset = offset,
                                    .dist = &whole,
                                    .logp_dist = &whole,
                                    .seed = 5,
                                    .stream = 6,
                                    .counter = &counter,
                                    .next = &drawn.in.ids[at],
                                    .logp = &step_logp[at]};
        rlhf__probe_begin(&m->t, "gen_step()");
        ok = rlhf__checked_fine(m, RLHF__CHECK_STEP, ops->gen_step(m->t.self, gen, &step));
        if (ok && (drawn.in.ids[at] < 0 || drawn.in.ids[at] >= m->info.n_vocab)) {
            rlhf__child_log_found(m->t.check->log, RLHF__CHECK_STEP, "gen_step() drew the id %d",
                                  drawn.in.ids[at]);
            ok = 0;
        }
    }
    rlhf__probe_begin(&m->t, "gen_close()");
    ops->gen_close(m->t.self, gen);
    rlhf__probe_end(&m->t, RLHF_OK, NULL);
    drawn.in.offset[1] = RLHF__CHECKED_LONGEST;
    if (!ok || !forward(m, &drawn, 0, 1, 0, drawn.logp)) return;
    for (int32_t t = 2; t < RLHF__CHECKED_LONGEST; t++) {
        if (rlhf__checked_same(drawn.logp[t], step_logp[t])) continue;
        rlhf__child_log_found(m->t.check->log, RLHF__CHECK_STEP,
                              "token %d was drawn with log-prob %.9g; forward() gives it %.9g", t,
                              (double)step_logp[t], (double)drawn.logp[t]);
        return;
    }
}

static int try_numbers(struct rlhf__check *c, int32_t step) {
    struct rlhf__checked_model m = {0};
    struct rows r;
    rlhf_model_info info;
    if (step > 0) return 0;
    rlhf__child_log_doing(c->log, "forward() of %d rows, and of each alone", RLHF__CHECKED_ROWS);
    if (!rlhf__checked_is_small(c, RLHF_HEAD_LOGP, &info)) return 1;
    if (rlhf__checked_open(c, &m, 0, &(rlhf_model_open){0}) && rlhf__checked_fill(&m, 0, 0, 0)) {
        make_rows(&m, &r);
        if (forward(&m, &r, 0, RLHF__CHECKED_ROWS, 0, r.logp)) {
            check_rows(&m, &r);
            rlhf__child_log_doing(c->log, "gen_step() of a row");
            if (m.info.causal) check_steps(&m, &r);
        }
    }
    rlhf__checked_close(&m);
    return 1;
}

// A second backward pass of the same rows must exactly double the gradients of a parameter with
// RLHF_PARAM_ADDS_ONCE and, if the pass has RLHF_FORWARD_ADDS_ONCE, of a parameter with
// RLHF_PARAM_CAN_ADD_ONCE. Call this after the first backward pass.
static void check_adds_once(struct rlhf__checked_model *m, struct rows *r) {
    const uint32_t once = RLHF_PARAM_ADDS_ONCE | RLHF_PARAM_CAN_ADD_ONCE;
    float **first = calloc((size_t)m->info.n_tensors, sizeof *first);
    uint32_t flags = 0;
    rlhf_param p;
    int64_t n;
    for (int32_t i = 0; first && i < m->info.n_tensors; i++) {
        first[i] = rlhf__checked_gradient(m, i, &p, &n);
        if (first[i] && p.flags & RLHF_PARAM_CAN_ADD_ONCE) flags = RLHF_FORWARD_ADDS_ONCE;
    }
    const int ok = first && passes(m, r, 0, RLHF__CHECKED_ROWS, 1, flags, r->logp);
    for (int32_t i = 0; first && i < m->info.n_tensors; i++) {
        float *both = ok ? rlhf__checked_gradient(m, i, &p, &n) : NULL;
        for (int64_t k = 0; both && first[i] && p.flags & once && k < n; k++) {
            if (both[k] == 2 * first[i][k]) continue;
            rlhf__child_log_found(m->t.check->log, RLHF__CHECK_ADDS_ONCE,
                                  "element %lld of the gradient of \"%s\" is %.9g after one "
                                  "backward pass and %.9g after two",
                                  (long long)k, p.name, (double)first[i][k], (double)both[k]);
            break;
        }
        free(both);
        free(first[i]);
    }
    free(first);
}

static int try_gradient(struct rlhf__check *c, int32_t step) {
    const float eps = 2e-3f;
    struct rlhf__checked_model m = {0};
    struct rows r;
    rlhf_model_info info;
    double up = 0, down = 0, given = 0;
    if (step > 0 || !c->plugin->ops.model.backward) return 0;
    rlhf__child_log_doing(c->log, "backward()");
    if (!rlhf__checked_is_small(c, RLHF_HEAD_LOGP, &info)) return 1;
    if (rlhf__checked_open(c, &m, 0, &(rlhf_model_open){.trainable = 1}) &&
        rlhf__checked_fill(&m, 0, 0, 0)) {
        make_rows(&m, &r);
        int ok = forward(&m, &r, 0, RLHF__CHECKED_ROWS, 1, r.logp);
        given = ok ? rlhf__checked_along(&m) : 0;
        if (ok) check_adds_once(&m, &r);
        ok = ok && rlhf__checked_fill(&m, 0, eps, 0) &&
             forward(&m, &r, 0, RLHF__CHECKED_ROWS, 0, r.logp);
        up = weighted(&r, r.logp);
        ok = ok && rlhf__checked_fill(&m, 0, -eps, 0) &&
             forward(&m, &r, 0, RLHF__CHECKED_ROWS, 0, r.logp);
        down = weighted(&r, r.logp);
        const double slope = (up - down) / (2 * (double)eps);
        if (ok && !(fabs(slope - given) <= 0.02 * fabs(slope) + 0.02))
            rlhf__child_log_found(
                c->log, RLHF__CHECK_BACKWARD,
                "along a direction the gradients give %.6g; by differences of the "
                "log-probs it is %.6g",
                given, slope);
    }
    rlhf__checked_close(&m);
    return 1;
}

const struct rlhf__check_case rlhf__model_cases[] = {
    {"memory plan", RLHF__CHECK_OPEN, 1, 0, 0, try_on_plan},
    {"numbers", RLHF__CHECK_CRASH, 0, 0, 0, try_numbers},
    {"gradient", RLHF__CHECK_CRASH, 0, 0, 0, try_gradient},
    {"heads", RLHF__CHECK_CRASH, 0, 0, 0, rlhf__try_heads},
    {"tap", RLHF__CHECK_CRASH, 0, 0, 0, rlhf__try_tap},
    {NULL, 0, 0, 0, 0, NULL},
};
