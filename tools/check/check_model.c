// check_model.c: tests a model against the contract on the reference backend. First comes a dry
// run, which only plans memory and computes nothing. If the configuration is small, the model then
// computes: steps of sampling here, the heads and their gradients in model_heads.c.
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
    rlhf_param p;
    for (int32_t i = 0; i < m->info.n_tensors; i++) {
        rlhf__probe_begin(&m->t, "param()");
        if (!rlhf__checked_fine(m, RLHF__CHECK_PARAM, rlhf__checked_param(m, (uint32_t)i, &p)))
            return;
        check_param(m, (uint32_t)i, &p, &all);
    }
    rlhf__probe_begin(&m->t, "param()");
    const rlhf_status past = rlhf__checked_param(m, (uint32_t)m->info.n_tensors, &p);
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

// Compute the log-probs of a single row of `n` tokens, the first two of which are its prompt.
static int row_logp(struct rlhf__checked_model *m, const int32_t *ids, int32_t n, float *logp) {
    static const rlhf_dist whole = RLHF_DIST_WHOLE;
    const int32_t offset[2] = {0, n}, prompt_len = 2;
    const rlhf_batch batch = {.size = sizeof batch,
                              .n = 1,
                              .total = (uint32_t)n,
                              .ids = ids,
                              .offset = offset,
                              .prompt_len = &prompt_len};
    const rlhf_forward how = {.size = sizeof how, .heads = RLHF_HEAD_LOGP, .dist = &whole};
    const rlhf_heads out = {.size = sizeof out, .logp = logp};
    rlhf__probe_begin(&m->t, "forward()");
    return rlhf__checked_fine(m, RLHF__CHECK_FORWARD,
                              rlhf__checked_ops(m)->forward(m->t.self, &batch, &how, &out));
}

// Process a row's tokens step by step. Sampled tokens must have the same log-probs as in forward().
static void check_steps(struct rlhf__checked_model *m) {
    static const rlhf_dist whole = RLHF_DIST_WHOLE;
    const rlhf_model_ops *ops = rlhf__checked_ops(m);
    rlhf_gen *gen = NULL;
    struct rlhf__checked_rows rows;
    int32_t ids[RLHF__CHECKED_LONGEST];
    float step_logp[RLHF__CHECKED_LONGEST] = {0}, logp[RLHF__CHECKED_LONGEST] = {0};
    const int32_t slot = 0;
    if (!ops->gen_open) return;
    rlhf__probe_begin(&m->t, "gen_open()");
    if (!rlhf__checked_fine(m, RLHF__CHECK_STEP,
                            ops->gen_open(m->t.self, SLOTS, RLHF__CHECKED_LONGEST, &gen)))
        return;
    rlhf__checked_rows_make(m, &rows);
    memcpy(ids, rows.ids, sizeof ids);
    int ok = 1;
    for (int32_t at = 2; ok && at < RLHF__CHECKED_LONGEST; at++) {
        const int32_t start = at == 2 ? 0 : at - 1, offset[2] = {0, at == 2 ? 2 : 1};
        const uint64_t counter = (uint64_t)at;
        const rlhf_gen_step step = {.size = sizeof step,
                                    .n = 1,
                                    .slot = &slot,
                                    .start = &start,
                                    .ids = ids + start,
                                    .offset = offset,
                                    .dist = &whole,
                                    .logp_dist = &whole,
                                    .seed = 5,
                                    .stream = 6,
                                    .counter = &counter,
                                    .next = &ids[at],
                                    .logp = &step_logp[at]};
        rlhf__probe_begin(&m->t, "gen_step()");
        ok = rlhf__checked_fine(m, RLHF__CHECK_STEP, ops->gen_step(m->t.self, gen, &step));
        if (ok && (ids[at] < 0 || ids[at] >= m->info.n_vocab)) {
            rlhf__child_log_found(m->t.check->log, RLHF__CHECK_STEP, "gen_step() drew the id %d",
                                  ids[at]);
            ok = 0;
        }
    }
    rlhf__probe_begin(&m->t, "gen_close()");
    ops->gen_close(m->t.self, gen);
    rlhf__probe_end(&m->t, RLHF_OK, NULL);
    if (!ok || !row_logp(m, ids, RLHF__CHECKED_LONGEST, logp)) return;
    for (int32_t t = 2; t < RLHF__CHECKED_LONGEST; t++) {
        if (rlhf__checked_same(logp[t], step_logp[t])) continue;
        rlhf__child_log_found(m->t.check->log, RLHF__CHECK_STEP,
                              "token %d was drawn with log-prob %.9g; forward() gives it %.9g", t,
                              (double)step_logp[t], (double)logp[t]);
        return;
    }
}

static int try_steps(struct rlhf__check *c, int32_t step) {
    struct rlhf__checked_model m = {0};
    rlhf_model_info info;
    if (step > 0) return 0;
    rlhf__child_log_doing(c->log, "gen_step() of a row");
    if (!rlhf__checked_is_small(c, RLHF_HEAD_LOGP, &info) || !info.causal) return 1;
    if (rlhf__checked_open(c, &m, 0, &(rlhf_model_open){0}) && rlhf__checked_fill(&m, 0, 0, 0))
        check_steps(&m);
    rlhf__checked_close(&m);
    return 1;
}

const struct rlhf__check_case rlhf__model_cases[] = {
    {"memory plan", RLHF__CHECK_OPEN, 1, 0, try_on_plan},
    {"steps", RLHF__CHECK_CRASH, 0, 0, try_steps},
    {"heads", RLHF__CHECK_CRASH, 0, 0, rlhf__try_heads},
    {"tap", RLHF__CHECK_CRASH, 0, 0, rlhf__try_tap},
    {NULL, 0, 0, 0, NULL},
};
