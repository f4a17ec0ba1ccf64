// time_estimate.c: the functions rlhf__time_... and rlhf__say_time of setup.h.
#include "setup/setup.h"

#include "base/running.h"
#include "model/speed.h"

#include <stdio.h>

void rlhf__time_begin(struct rlhf__run *r) {
    const rlhf_compute *table = r->session.compute->table;
    struct rlhf__speed speed;
    if (r->req->environment || r->req->recorded || r->feed->ahead || r->req->split ||
        rlhf__team_shares(rlhf__run_learners(r)))
        return;
    const struct rlhf__running before = rlhf__running_begin("kernels", table->name, "linear()");
    const int measured = rlhf__speed_measure(table, r->session.models.dtype, &speed);
    rlhf__running_end(&before);
    if (!measured) return;
    r->report.peak_flops = speed.product;
    rlhf__memory_plan_time(r->memory_plan, &speed);
}

double rlhf__time_lap(const struct rlhf__run *r, double *at) {
    const double now = rlhf__memory_plan_seconds(r->memory_plan), took = now - *at;
    *at = now;
    return took;
}

void rlhf__time_sampling(const struct rlhf__run *r, const struct rlhf__rows *e, double took,
                         struct rlhf__phase_seconds *s) {
    const double step = rlhf__memory_plan_step_seconds(r->memory_plan);
    uint32_t slots = rlhf__compute_slots(r->session.compute->table, r->config->sampling.slots);
    if (slots > e->n) slots = e->n;
    s->tokens = (double)rlhf__rows_response_tokens(e, 0, e->n) / (double)e->n;
    s->sampling = (took + (s->tokens - 2) * step) * (double)e->n / (double)slots;
}

// A duration as a string: "0.4 s", "34 s", "12 min", "3.5 h" or "2.1 days".
struct duration {
    char text[32];
};

static struct duration duration(double s) {
    struct duration d;
    if (s < 9.95)
        snprintf(d.text, sizeof d.text, "%.1f s", s);
    else if (s < 99.5)
        snprintf(d.text, sizeof d.text, "%.0f s", s);
    else if (s < 5970)
        snprintf(d.text, sizeof d.text, "%.0f min", s / 60);
    else if (s < 172800)
        snprintf(d.text, sizeof d.text, "%.1f h", s / 3600);
    else
        snprintf(d.text, sizeof d.text, "%.1f days", s / 86400);
    return d;
}

static void append_part(struct rlhf__buf *list, const char *name, double s) {
    if (s > 0) rlhf__buf_printf(list, "%s%s %s", list->len ? ", " : "", name, duration(s).text);
}

void rlhf__say_time(const struct rlhf__run *r) {
    const struct rlhf__phase_seconds *s = &r->seconds;
    const double phase = s->sampling + s->passes + s->scoring + s->update;
    const int64_t left = r->count.phases - r->count.phase;
    struct rlhf__buf parts = RLHF__BUF_INIT;
    char length[64] = "";
    if (!(phase > 0) || left <= 0) return;
    append_part(&parts, "sampling", s->sampling);
    append_part(&parts, "passes without gradients", s->passes);
    append_part(&parts, "models of rewards", s->scoring);
    append_part(&parts, "update", s->update);
    if (s->sampling > 0)
        snprintf(length, sizeof length, " if all responses have %.0f tokens", s->tokens);
    rlhf__logf(r->report.log, RLHF_LOG_INFO,
               "time, estimated: %s per phase (%s)%s, %s for %lld phase%s", duration(phase).text,
               rlhf__buf_text(&parts), length, duration(phase * (double)left).text, (long long)left,
               left == 1 ? "" : "s");
    rlhf__buf_finish(&parts);
}
