// time_estimate.c: the functions rlhf__time_... and rlhf__say_time of setup.h.
#include "setup/setup.h"

#include "base/running.h"
#include "estimate/speed.h"

#include <stdio.h>

// Measures the formats that the run's weights keep in memory.
static void measure_quantised(const struct rlhf__run *r, struct rlhf__speed *speed) {
    const int busy = rlhf__speed_busy(speed);
    int32_t k, n;
    for (int32_t format = RLHF_FORMAT_Q8_0; format <= RLHF_FORMAT_Q5_1; format++)
        if (rlhf__memory_plan_quantised(r->memory_plan, format, &k, &n))
            rlhf__quantised_speed_measure(r->session.compute->table, r->session.models.dtype,
                                          format, k, n, busy, &speed->quantised[format]);
}

void rlhf__time_begin(struct rlhf__run *r, int64_t tokens) {
    const rlhf_compute *table = r->session.compute->table;
    const double once = (double)r->cast.policy->info.flops_per_token * (double)tokens;
    const double flops = 3 * once * (double)(r->count.phases - r->count.phase); // with gradients
    struct rlhf__speed speed;
    if (r->req->environment || r->req->recorded || r->feed->ahead || r->req->split ||
        rlhf__team_shares(rlhf__run_learners(r)))
        return;
    const struct rlhf__running before = rlhf__running_begin("kernels", table->name, "linear()");
    const int measured = rlhf__speed_measure(table, r->session.models.dtype, flops, &speed);
    if (measured) measure_quantised(r, &speed);
    rlhf__running_end(&before);
    if (!measured) return;
    r->report.peak_flops = speed.product;
    r->seconds.share = rlhf__speed_busy(&speed) ? speed.share : 0;
    rlhf__memory_plan_time(r->memory_plan, &speed);
}

double rlhf__time_lap(const struct rlhf__run *r, double *at) {
    const double now = rlhf__memory_plan_seconds(r->memory_plan), took = now - *at;
    *at = now;
    return took;
}

// Returns the seconds in which rows get responses of `tokens` tokens. The plan has sampled two
// tokens for `share` of the rows, in `took` seconds.
static double sampling_seconds(const struct rlhf__run *r, double tokens, double took,
                               double share) {
    return (took + (tokens - 2) * rlhf__memory_plan_step_seconds(r->memory_plan)) / share;
}

void rlhf__time_sampling(const struct rlhf__run *r, const struct rlhf__rows *e, double took,
                         struct rlhf__phase_seconds *s) {
    uint32_t slots = rlhf__compute_slots(r->session.compute->table, r->config->sampling.slots);
    if (slots > e->n) slots = e->n;
    s->tokens = (double)rlhf__rows_response_tokens(e, 0, e->n) / (double)e->n;
    s->sampling = sampling_seconds(r, s->tokens, took, (double)slots / (double)e->n);
}

void rlhf__time_held_out(const struct rlhf__run *r, const struct rlhf__held_out_estimate *e,
                         uint32_t rows, double took, struct rlhf__phase_seconds *s) {
    if (!(e->share > 0)) return;
    const double tokens = (double)r->config->sampling.max_new_tokens;
    s->held_out = took / e->share;
    if (e->responses)
        s->held_out =
            sampling_seconds(r, tokens, took, e->share) + s->scoring * e->responses / rows;
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

// Returns how often the rest of the run will measure held-out rows: before the first phase, if
// rewards score responses, every data.eval_every phases, and after the last phase.
static int64_t measurements(const struct rlhf__run *r) {
    const int64_t every = r->config->data.eval_every, done = r->count.phase;
    const int64_t first = done == 0 && rlhf__cast_has_rewards(&r->cast);
    const int64_t between = every > 0 ? (r->count.phases - 1) / every - done / every : 0;
    return first + between + 1;
}

void rlhf__say_time(const struct rlhf__run *r) {
    const struct rlhf__phase_seconds *s = &r->seconds;
    const double phase = s->sampling + s->passes + s->scoring + s->update;
    const int64_t left = r->count.phases - r->count.phase;
    const int64_t measured = s->held_out > 0 ? measurements(r) : 0;
    const double all = phase * (double)left + s->held_out * (double)measured;
    struct rlhf__buf parts = RLHF__BUF_INIT;
    char length[64] = "", held_out[120] = "", busy[200] = "";
    if (!(phase > 0) || left <= 0) return;
    append_part(&parts, "sampling", s->sampling);
    append_part(&parts, "passes without gradients", s->passes);
    append_part(&parts, "models of rewards", s->scoring);
    append_part(&parts, "update", s->update);
    if (s->sampling > 0)
        snprintf(length, sizeof length, " if all responses have %.0f tokens", s->tokens);
    if (measured > 0)
        snprintf(held_out, sizeof held_out, " and %lld measurement%s of held-out rows (%s%s)",
                 (long long)measured, measured == 1 ? "" : "s", duration(s->held_out).text,
                 measured == 1 ? "" : " each");
    if (s->share > 0)
        snprintf(busy, sizeof busy,
                 "; other programs or a limit leave this process %.0f %% of its threads' time: "
                 "about %s with this load",
                 100 * s->share, duration(all / s->share).text);
    rlhf__logf(r->report.log, RLHF_LOG_INFO,
               "time, estimated: %s per phase (%s)%s, %s for %lld phase%s%s%s",
               duration(phase).text, rlhf__buf_text(&parts), length, duration(all).text,
               (long long)left, left == 1 ? "" : "s", held_out, busy);
    rlhf__buf_finish(&parts);
}
