// phase_report.c: see phase_report.h.
#include "report/phase_report.h"

#include "base/clock.h"
#include "base/printable.h"
#include "batch/diversity.h"
#include "batch/row_stats.h"
#include "estimate/speed.h"
#include "learn/plan.h"
#include "learn/schedule.h"
#include "report/full_screen.h"
#include "sample/mixing.h"
#include "sample/response_rules.h"
#include "sample/rollout.h"
#include "verdict/reward_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// ---- metrics ----

static void set_finite(struct rlhf__metrics *m, const char *name, double value) {
    if (isfinite(value)) rlhf__metrics_set(m, name, value);
}

// Report the mean reward, its standard error, and whether short responses are rewarded.
static void measure_scores(const struct rlhf__phase *p, struct rlhf__metrics *m) {
    const struct rlhf__rows *e = &p->x.rows;
    double mean, std;
    rlhf__mean_std(e->reward, NULL, NULL, e->n, &mean, &std);
    rlhf__metrics_set(m, "objective/scores", mean);
    set_finite(m, "objective/scores_error", rlhf__rows_error(e, e->reward, NULL));
    if (!e->turn) set_finite(m, "objective/scores_noise", rlhf__rows_noise(e, e->reward));
    set_finite(m, "completions/length_score_correlation",
               rlhf__rows_length_correlation(e, e->reward));
}

rlhf_status rlhf__completions_measure(const struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__rows *e = &p->x.rows;
    struct rlhf__metrics *m = p->report->metrics;
    double n = (double)e->n, distinct = 0, stopped = 0;
    for (uint32_t i = 0; i < e->n; i++)
        stopped += e->turn ? e->end[i] != RLHF_EPISODE_TURN_LENGTH : e->finished[i];
    double length = (double)rlhf__rows_response_tokens(e, 0, e->n) / n;
    RLHF_TRY(rlhf__rows_distinct3(e, &distinct, err));
    if (rlhf__cast_has_rewards(p->cast) || p->recorded) measure_scores(p, m);
    rlhf__metrics_set(m, "completions/mean_length", length);
    rlhf__metrics_set(m, "completions/clipped_ratio", 1 - stopped / n);
    rlhf__metrics_set(m, "completions/distinct_3", distinct);
    rlhf__metrics_set(m, "val/sequence_lengths", length);
    rlhf__metrics_set(m, "val/num_stop_token_ids", stopped);
    return RLHF_OK;
}

int rlhf__responses_may_end(const struct rlhf__config *c, const struct rlhf__model *m) {
    const int by_model = rlhf__response_stops_at_eos(&c->sampling, m) && m->ends.n > 0,
              by_user = strcmp(c->sampling.stop, "[]") != 0;
    return (by_model || by_user) && c->response.truncate != RLHF__TRUNCATE_PERIOD;
}

// ---- samples ----

// Store the samples of every phase, because those of the run's last phase are always shown. It is
// known only at the end of a phase whether the phase was the last.
rlhf_status rlhf__phase_samples(const struct rlhf__phase *p, const struct rlhf__prompts *prompts,
                                struct rlhf__error *err) {
    const struct rlhf__cast *c = p->cast;
    const int samples = rlhf__cast_samples(c);
    uint32_t flags = 0;
    if (samples && rlhf__cast_has_rewards(c)) flags |= RLHF__CHOICE_REWARDS;
    if (samples && rlhf__cast_wants_reference(c)) flags |= RLHF__CHOICE_REFERENCE;
    if (samples && (c->plan.heads & RLHF_HEAD_VALUE)) flags |= RLHF__CHOICE_VALUES;
    const struct rlhf__sample_choice_from from = {.rows = &p->x.rows,
                                                  .source = (int32_t)c->plan.source,
                                                  .flags = flags,
                                                  .scored = &p->x.scored,
                                                  .prompts = prompts,
                                                  .tok = c->policy->tok,
                                                  .labels = &c->policy->labels,
                                                  .config = p->config};
    return rlhf__sample_choice_take(&p->report->chosen, &from, err);
}

static struct rlhf__sample_table table_of(const struct rlhf__phase *p, int64_t phase,
                                          const char *names[RLHF__SAMPLE_REWARDS]) {
    const int terminal = isatty(STDOUT_FILENO);
    size_t several = p->report->chosen.paid ? p->config->n_reward : 0;
    if (several > RLHF__SAMPLE_REWARDS) several = RLHF__SAMPLE_REWARDS;
    for (size_t k = 0; k < several; k++)
        names[k] = p->config->reward[k].name;
    return (struct rlhf__sample_table){.phase = phase,
                                       .rewards = names,
                                       .n_rewards = several,
                                       .width =
                                           terminal ? rlhf__terminal_width(STDOUT_FILENO, 100) : 0,
                                       .boxed = terminal,
                                       .no_reward = !rlhf__cast_has_rewards(p->cast)};
}

// With log.progress=full, show the numbers and samples of every phase.
static void fill_screen(const struct rlhf__phase *p) {
    struct rlhf__full_screen *screen = rlhf__progress_screen(p->report->progress);
    const struct rlhf__sample_choice *s = &p->report->chosen;
    const char *names[RLHF__SAMPLE_REWARDS];
    if (!screen) return;
    rlhf__full_screen_phase(screen, p->count->phase + 1, p->report->metrics);
    if (s->n == 0 || s->is_data) return;
    const struct rlhf__sample_table table = table_of(p, p->count->phase + 1, names);
    rlhf__full_screen_samples(screen, &table, s->rows, s->n);
}

// Returns 1 if the samples of this phase are shown: in every log.samples_every-th phase, in the
// first and the last, every log.samples_every_s seconds, and if a warning was logged.
static int is_shown(const struct rlhf__phase *p, int64_t phase, int is_last) {
    const struct rlhf__log_config *c = &p->config->log;
    const struct rlhf__report *r = p->report;
    const double since = r->samples_at > 0 ? r->samples_at : r->began;
    if (phase % c->samples_every == 0 || phase == 1 || phase == p->count->phases || is_last)
        return 1;
    if (r->warned == phase) return 1;
    return c->samples_every_s > 0 && rlhf__seconds() - since >= (double)c->samples_every_s;
}

// Write the stored samples, and show the responses among them as a table.
static rlhf_status show_samples(const struct rlhf__phase *p, int64_t phase,
                                struct rlhf__error *err) {
    const struct rlhf__log_config *c = &p->config->log;
    struct rlhf__report *r = p->report;
    struct rlhf__sample_choice *s = &r->chosen;
    r->samples_at = rlhf__seconds();
    s->shown = 1;
    RLHF_TRY(rlhf__samples_write(r->samples, phase, s->rows, s->n, err));
    if (s->is_data || c->progress == RLHF__PROGRESS_OFF) return RLHF_OK;
    if (r->log->json) {
        for (size_t i = 0; i < s->n; i++)
            rlhf__samples_event(r->log, phase, &s->rows[i]);
        return RLHF_OK;
    }
    const char *names[RLHF__SAMPLE_REWARDS];
    const struct rlhf__sample_table table = table_of(p, phase, names);
    struct rlhf__full_screen *screen = rlhf__progress_screen(r->progress);
    if (screen) {
        rlhf__samples_table(rlhf__full_screen_out(screen), &table, s->rows, s->n);
        return RLHF_OK;
    }
    rlhf__progress_hide(r->progress);
    rlhf__samples_table(stdout, &table, s->rows, s->n);
    rlhf__progress_show(r->progress);
    return RLHF_OK;
}

static int has_samples(const struct rlhf__phase *p) {
    return p->report->chosen.n > 0 && p->report->samples;
}

static void set(const struct rlhf__phase *p, const char *name, double value) {
    rlhf__metrics_set(p->report->metrics, name, value);
}

double rlhf__rows_entropy(const struct rlhf__rows *e) {
    const float *logp = e->token[RLHF__LOGP_SAMPLED];
    double sum = 0;
    int64_t n = 0;
    for (uint32_t i = 0; i < e->n; i++)
        for (int32_t t = e->offset[i] + e->prompt_len[i]; t < e->offset[i + 1]; t++) {
            if (!rlhf__rows_is_response(e, t)) continue;
            sum -= (double)logp[t];
            n++;
        }
    return n > 0 ? sum / (double)n : NAN;
}

static void report_optim(const struct rlhf__phase *p) {
    const struct rlhf__learner *l = p->learner;
    const struct rlhf__count *c = p->count;
    set(p, "lr",
        p->config->optim.lr * rlhf__schedule_factor(&p->config->optim, c->phase, c->horizon));
    set(p, "episode", (double)c->sequences);
    int64_t skipped =
        l->optim->count.skipped + (l->critic_optim ? l->critic_optim->count.skipped : 0);
    set(p, "optim/skipped_steps", (double)skipped);
    if (l->odd.rows > 0) set(p, "optim/not_finite_rows", (double)l->odd.rows);
    if (l->steps > 0) {
        set(p, "optim/grad_norm", l->norm_sum / (double)l->steps);
        set(p, "optim/grad_norm_clipped", l->clipped_sum / (double)l->steps);
        set(p, "optim/grad_norm_max", l->norm_max);
    }
    if (l->fall_tokens > 0) set(p, "optim/preferred_fall", l->fall_sum / (double)l->fall_tokens);
    if (l->compared > 0) {
        set(p, "sampling/logp_difference/mean", l->difference_sum / (double)l->compared);
        set(p, "sampling/logp_difference/max", l->difference_max);
    }
}

// Report the rows that the backward pass left out and the time that this saved. The time is known
// only if some row was timed.
static void report_spared(const struct rlhf__phase *p) {
    const struct rlhf__row_tally *b = &p->learner->tally;
    const int64_t rows = b->rows[RLHF_USE_NO_GRADIENT] + b->rows[RLHF_USE_EXCLUDED];
    const double saved = rlhf__row_tally_saved(b);
    p->report->spared.rows += rows;
    p->report->spared.all += rows + b->rows[RLHF_USE_TRAINS];
    if (rows == 0) return;
    set(p, "optim/spared_rows", (double)rows);
    if (saved < 0) return;
    set(p, "time/spared", saved);
    p->report->spared.seconds += saved;
}

static void report_times(const struct rlhf__phase *p) {
    const struct rlhf__phase_times *x = &p->report->times;
    double now = rlhf__seconds();
    set(p, "time/from_scratch", now - p->report->started);
    set(p, "time/training", now - x->start);
    set(p, "time/update", x->update);
    if (!rlhf__cast_samples(p->cast)) return;
    set(p, "time/rollout", x->rollout);
    if (rlhf__cast_has_rewards(p->cast)) set(p, "time/reward", x->reward);
    rlhf__reward_tallies_report(&p->report->rewards, p->config, p->cast->judge != NULL,
                                p->report->metrics);
    if (rlhf__cast_wants_reference(p->cast) || p->cast->plan.n_named)
        set(p, "time/reference", x->reference);
    if (x->rollout > 0) {
        set(p, "perf/rollout_tokens_per_s", (double)p->x.sampled / x->rollout);
        set(p, "perf/rollout_model_tokens_per_s", (double)p->x.tokens / x->rollout);
    }
}

// Report the speed of training, and the share of the peak FLOP/s that it reaches. The peak is the
// speed of a large GEMM, which is timed only once, at the end of the first phase.
static void report_speed(const struct rlhf__phase *p) {
    const struct rlhf__model_env *env = p->cast->policy->env;
    struct rlhf__report *r = p->report;
    double tokens = (double)p->learner->tokens, seconds = r->times.update;
    if (seconds > 0) set(p, "perf/train_tokens_per_s", tokens / seconds);
    if (r->peak_flops == 0)
        r->peak_flops = rlhf__speed_peak(env->compute, env->dtype,
                                         p->learner->flops * (double)p->count->phases);
    if (r->peak_flops > 0 && seconds > 0)
        set(p, "perf/mfu", p->learner->flops / seconds / r->peak_flops);
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0)
        set(p, "perf/peak_rss_mb", (double)usage.ru_maxrss / 1024); // KiB on Linux
}

// Returns 1 if this phase's progress line stays on the terminal. If sample tables are printed
// between the phases, no line stays. Otherwise about twenty lines of the run stay, evenly spaced.
static int is_history(const struct rlhf__phase *p) {
    enum { LINES = 20 };
    const struct rlhf__log_config *c = &p->config->log;
    const int64_t phase = p->count->phase + 1, every = (p->count->phases + LINES - 1) / LINES;
    const int tables = rlhf__cast_samples(p->cast) && c->samples > 0 && c->samples_every > 0;
    return !tables && every > 0 && (phase == 1 || phase % every == 0);
}

struct adding_parts {
    const struct rlhf__phase *phase;
    struct rlhf__progress_state *to;
};

static void add_part(void *arg, const char *name) {
    const struct adding_parts *a = arg;
    struct rlhf__progress_state *s = a->to;
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__progress_part *part = &s->part[s->n_parts];
    if (s->n_parts == RLHF__PROGRESS_PARTS || !rlhf__reward_part(name, NULL, NULL) ||
        !rlhf__metrics_get(a->phase->report->metrics, name, &part->value))
        return;
    rlhf__reward_part_put(&text, name, a->phase->config->n_reward);
    rlhf__printable(rlhf__buf_text(&text), part->name, sizeof part->name);
    rlhf__buf_finish(&text);
    s->n_parts++;
}

static struct rlhf__progress_state progress_state(const struct rlhf__phase *p) {
    const struct rlhf__metrics *m = p->report->metrics;
    const struct rlhf__learner *l = p->learner;
    int has_rewards = rlhf__cast_has_rewards(p->cast), samples = rlhf__cast_samples(p->cast);
    double reward = 0, kl = NAN, judge = NAN, accuracy = NAN;
    rlhf__metrics_get(m, RLHF_METRIC_KL, &kl);
    rlhf__metrics_get(m, "judge/mean", &judge);
    rlhf__metrics_get(m, RLHF__REWARD_METRIC, &reward);
    if (has_rewards) rlhf__metrics_get(m, "objective/verifiable_correct_rate", &accuracy);
    if (!has_rewards && !rlhf__metrics_get(m, RLHF_METRIC_PAIR_ACCURACY, &accuracy))
        rlhf__metrics_get(m, RLHF_METRIC_LABEL_ACCURACY, &accuracy);
    double loss = l->minibatches ? l->loss_sum / (double)l->minibatches : 0;
    double spent = samples ? p->report->times.rollout : p->report->times.update;
    int64_t tokens = samples ? p->x.sampled : l->tokens;
    const struct rlhf__reward_tally asked = rlhf__reward_tallies_sum(&p->report->rewards);
    return (struct rlhf__progress_state){.phase = p->count->phase + 1,
                                         .phases = p->count->phases,
                                         .label = has_rewards ? "reward" : "loss",
                                         .value = has_rewards ? reward : loss,
                                         .kl = kl,
                                         .judge = judge,
                                         .accuracy = accuracy,
                                         .failures = asked.failures,
                                         .retries = asked.retries,
                                         .tokens_per_s = spent > 0 ? (double)tokens / spent : NAN,
                                         .seconds = rlhf__seconds() - p->report->began,
                                         .first_phase = p->count->first_phase,
                                         .history = is_history(p)};
}

void rlhf__phase_metrics(const struct rlhf__phase *p) {
    const double entropy = rlhf__cast_samples(p->cast) ? rlhf__rows_entropy(&p->x.rows) : NAN;
    if (!isnan(entropy)) set(p, RLHF__ENTROPY_METRIC, entropy);
    report_optim(p);
    report_times(p);
    report_spared(p);
    report_speed(p);
}

static rlhf_status write_spread(const struct rlhf__phase *p, struct rlhf__error *err) {
    const struct rlhf__cast *c = p->cast;
    const int samples = rlhf__cast_samples(c);
    uint32_t flags = samples ? RLHF__SPREAD_RESPONSES : 0;
    if (samples && rlhf__cast_has_rewards(c)) flags |= RLHF__SPREAD_REWARD;
    if (samples && rlhf__cast_wants_reference(c)) flags |= RLHF__SPREAD_REFERENCE;
    // With minibatch scope, only copies of the rows get advantages, so the rows here have none.
    if (samples && !(c->plan.flags & RLHF_PLAN_MINIBATCH_SCOPE)) flags |= RLHF__SPREAD_ADVANTAGE;
    return rlhf__spread_write(p->report->spread, p->count->phase + 1, &p->x.rows, flags, err);
}

rlhf_status rlhf__phase_show(const struct rlhf__phase *p, int is_last, struct rlhf__error *err) {
    const int64_t phase = p->count->phase + 1;
    if (has_samples(p) && is_shown(p, phase, is_last)) RLHF_TRY(show_samples(p, phase, err));
    if (p->report->spread) RLHF_TRY(write_spread(p, err));
    fill_screen(p);
    struct rlhf__progress_state s = progress_state(p);
    struct adding_parts parts = {p, &s};
    rlhf__metrics_names(p->report->metrics, add_part, &parts);
    rlhf__progress_phase(p->report->progress, &s);
    return RLHF_OK;
}
