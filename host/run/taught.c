// taught.c: see taught.h.
#include "run/taught.h"

#include "learn/algo.h"

#include <string.h>

// ---- what the rewards said ----

struct said {
    const struct rlhf__metrics *metrics;
    struct rlhf__buf *out;
    const char *owner; // "rewards/NAME/"
    int32_t n, reserved;
};

static void say_metric(void *arg, const char *name) {
    struct said *s = arg;
    double value = 0;
    const size_t n = strlen(s->owner);
    if (strncmp(name, s->owner, n) != 0 || !rlhf__metrics_get(s->metrics, name, &value)) return;
    rlhf__buf_printf(s->out, "%s%s %.4g", s->n++ ? ", " : "", name + n, value);
}

// "answer (correct 0, found 0, marked 0, mean 0, std 0)" of each reward, from the phase's metrics.
static void say_rewards(const struct rlhf__run *r, struct rlhf__buf *out) {
    for (size_t k = 0; k < r->cast.n_rewards; k++) {
        char owner[128];
        snprintf(owner, sizeof owner, "rewards/%s/", r->config->reward[k].name);
        struct said s = {.metrics = r->report.metrics, .out = out, .owner = owner};
        rlhf__buf_printf(out, "%s%s (", k ? ", " : "", r->config->reward[k].name);
        rlhf__metrics_names(r->report.metrics, say_metric, &s);
        rlhf__buf_puts(out, ")");
    }
}

// ---- rewards that compare nobody ----

static int has_critic(const struct rlhf__run *r) {
    return (r->cast.plan.heads & RLHF_HEAD_VALUE) != 0;
}

// 1: all rows of the phase, two at least, have the same reward.
static int is_constant(const struct rlhf__rows *e) {
    for (uint32_t i = 1; i < e->n; i++)
        if (!(e->reward[i] == e->reward[0])) return 0;
    return e->n > 1;
}

static void say_constant(const struct rlhf__run *r, const struct rlhf__rows *e) {
    rlhf__logf(r->report.log, RLHF_LOG_WARN,
               "phase %lld: all %u responses have the same reward (%.4g), so that rewards teach "
               "nothing%s; what helps: a reward with more than two values, easier or harder "
               "prompts, more responses (batch.size%s), a higher sampling.temperature; such phases "
               "are counted in optim/flat_phases",
               (long long)r->count.phase + 1, e->n, (double)e->reward[0],
               has_critic(r) ? " and the policy follows the noise of the value head" : "",
               r->cast.plan.group_size > 1 ? ", algo.group_size" : "");
}

// No two responses that are compared have different rewards, but those of two prompts have.
static void say_flat(const struct rlhf__run *r) {
    const int32_t size = r->cast.plan.group_size;
    if (size < 2)
        rlhf__logf(r->report.log, RLHF_LOG_WARN,
                   "phase %lld: all responses are paid the same, so that rewards teach nothing; "
                   "what helps: more responses a phase (batch.size), a higher "
                   "sampling.temperature, easier or harder prompts, a reward with more than two "
                   "values; such phases are counted in optim/flat_phases",
                   (long long)r->count.phase + 1);
    else
        rlhf__logf(r->report.log, RLHF_LOG_WARN,
                   "phase %lld: in each group all %d responses are paid the same, so that rewards "
                   "teach nothing; what helps: more responses a prompt (algo.group_size), a higher "
                   "sampling.temperature, easier or harder prompts, a reward with more than two "
                   "values, algo.dynamic_sampling=true of grpo.so and rloo.so; such phases are "
                   "counted in optim/flat_phases",
                   (long long)r->count.phase + 1, size);
}

static void say_paid(const struct rlhf__run *r) {
    struct rlhf__buf said = RLHF__BUF_INIT;
    say_rewards(r, &said);
    if (!said.bad && said.len)
        rlhf__logf(r->report.log, RLHF_LOG_WARN,
                   "phase %lld: what was paid: %.700s; what a reward looks at is in its options "
                   "('rlhf-host plugin info NAME'), what it was given in samples.jsonl of "
                   "the run",
                   (long long)r->count.phase + 1, rlhf__buf_text(&said));
    rlhf__buf_free(&said);
}

// Where groups are compared their spread counts. A critic, or an algorithm that does not report
// what it compares, learns wherever two responses of the phase have different rewards.
static void see_flat(struct rlhf__run *r, const struct rlhf__rows *e) {
    double share = 0;
    rlhf__metrics_get(r->report.metrics, RLHF_METRIC_FLAT_GROUPS, &share);
    const int constant = rlhf__cast_pays(&r->cast) && is_constant(e);
    const int flat = constant || (share == 1 && !has_critic(r));
    r->count.flat_phases += flat;
    if (r->count.flat_phases > 0)
        rlhf__metrics_set(r->report.metrics, "optim/flat_phases", (double)r->count.flat_phases);
    // A collapse is the cause, and has been reported: advice on groups and temperatures misses it.
    if (!flat || r->report.said_flat || (r->findings.said & RLHF__COLLAPSED)) return;
    r->report.said_flat = 1;
    if (constant)
        say_constant(r, e);
    else
        say_flat(r);
    say_paid(r);
}

// ---- an adapter that stays where it is ----

static rlhf_status stuck(const struct rlhf__run *r, double lr, struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_NUMERIC,
                      "the adapter does not move: after phase %lld, with %lld steps at a learning "
                      "rate of %g, its update norm is 0; the run would teach nothing",
                      (long long)r->count.phase + 1, (long long)r->learner.steps, lr);
}

// Nobody asked anything of it: a weight decay that shrinks its A is no lesson.
static rlhf_status unasked(struct rlhf__run *r, struct rlhf__error *err) {
    const int64_t here = ++r->count.still_phases, left = r->count.phases - r->count.phase - 1;
    struct rlhf__buf said = RLHF__BUF_INIT;
    say_rewards(r, &said);
    const char *paid = said.len && !said.bad ? rlhf__buf_text(&said) : "the rows' own loss";
    rlhf_status st = RLHF_OK;
    if (++r->report.still_phases >= RLHF__STILL_PHASES || left <= 0)
        st = rlhf__fail(err, RLHF_E_NUMERIC,
                        "the adapter has not moved: in %lld phase%s there was nothing to learn "
                        "from, at last by %.500s; the run would teach nothing",
                        (long long)here, here == 1 ? "" : "s", paid);
    else if (r->report.still_phases == 1)
        rlhf__logf(r->report.log, RLHF_LOG_WARN,
                   "phase %lld: the adapter is where it started: every derivative of the phase's "
                   "loss is 0, so that nothing was asked of it; %lld more such phases end the run",
                   (long long)r->count.phase + 1,
                   (long long)(left < RLHF__STILL_PHASES - 1 ? left : RLHF__STILL_PHASES - 1));
    rlhf__buf_free(&said);
    return st;
}

static rlhf_status see_adapter(struct rlhf__run *r, const struct rlhf__phase *p,
                               struct rlhf__error *err) {
    const double lr = r->config->optim.lr *
                      rlhf__schedule_factor(&r->config->optim, r->count.phase, r->count.horizon);
    rlhf__metrics_set(r->report.metrics, "optim/adapter_update_norm", p->adapter_norm);
    // Still as long as it has not moved since the start of the run, resumed ones included.
    const int still = r->count.phase == 0 || r->count.still_phases > 0;
    if (!still) return RLHF_OK;
    if (!r->learner.asked) return unasked(r, err);
    if (p->adapter_norm == 0 && r->learner.steps > 0 && lr > 0) return stuck(r, lr, err);
    if (p->adapter_norm != 0)
        r->count.still_phases = 0;
    else
        r->count.still_phases++;
    return RLHF_OK;
}

rlhf_status rlhf__taught(struct rlhf__run *r, const struct rlhf__phase *p,
                         struct rlhf__error *err) {
    see_flat(r, &p->x.rows);
    return p->has_adapter ? see_adapter(r, p, err) : RLHF_OK;
}
