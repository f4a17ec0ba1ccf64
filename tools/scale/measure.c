// measure.c: see measure.h.
#include "scale/measure.h"

#include "batch/minibatches.h"
#include "learn/optim.h"
#include "learn/pass.h"
#include "model/free_memory.h"
#include "model/parameters.h"
#include "run/phase_run.h"
#include "scale/cost.h"
#include "scale/parts.h"
#include "setup/setup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PHASES = 3 };

// ---- what is planned ----

// Returns the number of rows to measure: batch.size (`rows`), halved while it is even and more than
// `most`.
static int64_t measured_rows(int64_t rows, int64_t most) {
    while (rows > most && rows % 2 == 0)
        rows /= 2;
    return rows;
}

// Switch off everything that does not happen in every phase, and all output.
static void quiet(struct rlhf__config *c) {
    c->n_sink = 0;
    c->early_stop = (struct rlhf__early_stop_config){.window = c->early_stop.window};
    c->checkpoint.best = "";
    c->data.eval_every = 0;
    c->data.epochs = 1e6; // the rows of a file are repeated
    c->log.progress = RLHF__PROGRESS_OFF;
    c->log.tensorboard = c->log.csv = c->log.report = 0;
    c->log.samples = 0;
}

// Count a model's trained parameters, and the trained parameters of its layers.
static void count(const struct rlhf__model *m, double *all, double *layers) {
    for (uint32_t i = 0; m && i < m->n_tensors; i++) {
        const rlhf_param *p = &m->params[i];
        const double n = p->flags & RLHF_PARAM_FROZEN ? 0 : (double)rlhf__param_count(p);
        const int head = p->group != RLHF_PARAM_TRUNK && p->group != RLHF_PARAM_ADAPTER;
        *all += n;
        if (!head && !(p->flags & RLHF_PARAM_EMBED)) *layers += n;
    }
}

// Returns 1 if each rank may call all rewards for its own rows.
static int divides_rewards(const struct rlhf__run_request *q) {
    for (size_t i = 0; i < q->config->n_reward; i++)
        if (q->rewards[i]->desc.state_version ||
            q->rewards[i]->ops.reward.flags & RLHF_REWARD_WHOLE_BATCH)
            return 0;
    return 1;
}

static void describe_plan(const struct rlhf__run *r, struct rlhf__scale_plan *p) {
    const rlhf_plan *plan = &r->cast.plan;
    double all = 0, layers = 0, of_critic = 0;
    p->group = (double)plan->group_size;
    p->whole = plan->flags & RLHF_PLAN_WHOLE_GROUPS                     ? 2
               : r->config->batch.share_prompts && plan->group_size > 1 ? 1
                                                                        : 0;
    p->minibatches = (double)plan->minibatches;
    p->epochs = (double)plan->epochs;
    count(r->cast.policy, &all, &layers);
    count(r->cast.critic, &all, &of_critic); // sent after the passes
    p->parameters = all;
    p->tied = 1 - layers / all;
    p->microbatch = (double)r->learner.microbatch_tokens;
    p->moments = (double)rlhf__setup_moments(r->config);
    p->reward_dealt = divides_rewards(r->req);
    // Runs overlap exchanges with the passes only if device memory is host memory.
    p->overlaps = (r->session.compute->table->flags & RLHF_COMPUTE_HOST_MEMORY) != 0;
}

// ---- memory ----

static double of_use(const struct rlhf__memory_need *need, int use) {
    double bytes = 0;
    for (uint32_t i = 0; i < need->uses.n; i++)
        bytes += (double)need->uses.bytes[i][use];
    return bytes;
}

static void describe_memory(const struct rlhf__memory_need *need, struct rlhf__scale_machine *m) {
    m->memory = (double)rlhf__uses_total(&need->uses);
    m->memory_moments = of_use(need, RLHF__USE_MOMENTS);
    m->memory_rows = of_use(need, RLHF__USE_ROWS);
    m->memory_undo = of_use(need, RLHF__USE_ROLLBACK);
}

// ---- the measurement ----

static rlhf_status timed_phases(struct rlhf__run *r, struct rlhf__run_timing *t,
                                struct rlhf__error *err) {
    char dir[RLHF__PATH_CAP];
    const char *tmp = getenv("TMPDIR");
    struct rlhf__folder *out = NULL;
    rlhf__path_put(dir, "%s/rlhf-scale-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return rlhf__fail(err, RLHF_E_IO, "cannot make a directory in %s: %s",
                          tmp && *tmp ? tmp : "/tmp", strerror(errno));
    rlhf_status st = rlhf__folder_open(NULL, dir, &out, err);
    if (st == RLHF_OK) st = rlhf__run_timed(r, out, PHASES, t, err);
    rlhf__folder_close(out);
    rlhf__folder_remove(NULL, dir, NULL);
    return st;
}

// Returns by how many seconds sampling, passes and updates take longer in a phase than when they
// are measured separately; at least 0.
static double rest(const struct rlhf__run_timing *t, const struct rlhf__scale_plan *p,
                   const struct rlhf__scale_machine *m) {
    const double rows = m->rows / p->minibatches, steps = p->minibatches * p->epochs;
    const double learn = rlhf__scale_curve_at(&m->learn, rows * m->tokens / m->rows);
    const double known =
        rlhf__scale_curve_at(&m->draw, m->rows) + m->passes + steps * (learn + m->step + m->pack);
    const double took = t->parts.rollout + t->parts.reference + t->parts.update;
    return took > known ? took - known : 0;
}

static rlhf_status measure(struct rlhf__run *r, struct rlhf__scale_figures *f,
                           struct rlhf__error *err) {
    struct rlhf__scale_machine *m = &f->machine;
    const rlhf_compute *table = r->session.compute->table;
    struct rlhf__run_timing t = {0};
    RLHF_TRY(timed_phases(r, &t, err));
    describe_plan(r, &f->plan);
    m->shared = table->device == RLHF_DEVICE_CPU;
    m->threads = table->threads > 0 ? (double)table->threads : 1;
    snprintf(m->compute, sizeof m->compute, "%s, %.200s, products in %s", table->name,
             table->detail, r->session.models.dtype == RLHF_BF16 ? "bf16" : "f32");
    m->reward = t.parts.reward;
    RLHF_TRY(rlhf__scale_parts(r, &f->plan, m, err));
    // The file has fewer rows than a batch.
    if (m->rows < (double)r->config->batch.size) f->plan.rows = m->rows;
    m->other = rest(&t, &f->plan, m);
    m->fixed = t.rest > 0 ? t.rest : 0;
    f->has_run = 1;
    return RLHF_OK;
}

rlhf_status rlhf__scale_measure(const struct rlhf__run_request *req, int64_t most,
                                struct rlhf__scale_figures *f, struct rlhf__error *err) {
    struct rlhf__memory_need need = {0};
    struct rlhf__run_request q = *req;
    struct rlhf__config *c = req->config;
    struct rlhf__run *r = NULL;
    struct rlhf__log *log = req->env->log;
    const size_t sinks = c->n_sink;
    const int32_t level = log->level;
    f->plan = (struct rlhf__scale_plan){.rows = (double)c->batch.size,
                                        .shards = (double)c->parallel.shards};
    f->machine = (struct rlhf__scale_machine){0};
    c->batch.size = measured_rows(c->batch.size, most);
    c->parallel.shards = 1;
    quiet(c);
    q.need = &need;
    rlhf_status st = rlhf__run_create(&q, &r, err);
    log->level = level > RLHF_LOG_ERROR ? level : RLHF_LOG_ERROR; // no warnings about learning
    if (st == RLHF_OK) st = measure(r, f, err);
    log->level = level;
    if (st == RLHF_OK) describe_memory(&need, &f->machine);
    rlhf__run_destroy(r);
    c->n_sink = sinks;
    return st;
}
