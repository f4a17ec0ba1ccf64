// phase_warnings.c: see phase_report.h.
#include "report/phase_report.h"

#include "base/file.h"
#include "learn/plan.h"
#include "learn/schedule.h"
#include "model/text_note.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- what only the phase itself shows about a finding ----

// Returns the number of responses that contain the token.
static uint32_t containing(const struct rlhf__rows *e, int32_t id) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < e->n; i++) {
        int32_t t = e->offset[i] + e->prompt_len[i];
        while (t < e->offset[i + 1] && !(rlhf__rows_is_response(e, t) && e->ids[t] == id))
            t++;
        n += t < e->offset[i + 1];
    }
    return n;
}

// If most responses contain an end-of-turn token, suggest it as a stop token.
static void say_turn_end(const struct rlhf__phase *p) {
    const char *end;
    const int32_t id =
        rlhf__model_ignored_turn_end(p->cast->policy, p->config->sampling.stop, &end);
    const uint32_t ended = id >= 0 ? containing(&p->x.rows, id) : 0;
    if (2 * ended <= p->x.rows.n) return;
    rlhf__report_warn(p->report, p->count->phase + 1, "turn_end",
                      "%u of %u contain '%s', which ends turns of the chat template but no "
                      "response; sampling.stop=[%d] ends them there",
                      ended, p->x.rows.n, end, (int)id);
}

// Name the plugin, and the first of its numbers that is not finite.
static void say_odd_row(const struct rlhf__phase *p) {
    const struct rlhf__odd_rows *odd = &p->learner->odd;
    rlhf__report_warn(
        p->report, p->count->phase + 1, "odd_row",
        "algorithm %s, advantages(): it gave row %u the %s %g; all advantages and returns "
        "must be finite",
        rlhf__plugin_name(p->cast->algo->plugin), odd->row, odd->is_return ? "return" : "advantage",
        isnan(odd->value) ? (double)NAN : (double)odd->value);
}

// Name the first number of loss() that is not finite. The gradients of finite derivatives may
// overflow, too; then there is none.
static void say_odd_loss(const struct rlhf__phase *p) {
    const struct rlhf__odd_loss *odd = &p->learner->odd_loss;
    const char *who = rlhf__plugin_name(p->cast->algo->plugin);
    const double value = isnan(odd->value) ? (double)NAN : odd->value;
    if (!odd->array) return;
    if (strcmp(odd->array, "loss") == 0)
        rlhf__report_warn(p->report, p->count->phase + 1, "odd_loss",
                          "algorithm %s, loss(): it gave the loss %g; it must be finite", who,
                          value);
    else
        rlhf__report_warn(p->report, p->count->phase + 1, "odd_loss",
                          "algorithm %s, loss(): %s of row %u, %s %u, is %g; all derivatives must "
                          "be finite",
                          who, odd->array, odd->row,
                          strcmp(odd->array, "d_heads->score") == 0 ? "label" : "token", odd->at,
                          value);
}

// ---- the rewards' metrics ----

struct said {
    const struct rlhf__metrics *metrics;
    struct rlhf__buf *out;
    const char *owner; // "rewards/NAME/"
    int32_t n;
};

static void say_metric(void *arg, const char *name) {
    struct said *s = arg;
    double value = 0;
    const size_t n = strlen(s->owner);
    if (strncmp(name, s->owner, n) != 0 || strcmp(name + n, "time") == 0 ||
        !rlhf__metrics_get(s->metrics, name, &value))
        return;
    rlhf__buf_printf(s->out, "%s%s %.4g", s->n++ ? ", " : "", name + n, value);
}

// Write "answer (correct 0, found 0, marked 0, mean 0, std 0)": all metrics that the reward has in
// this phase, except its time.
static void put_reward(const struct rlhf__phase *p, const char *name, struct rlhf__buf *out) {
    char owner[128];
    snprintf(owner, sizeof owner, "rewards/%s/", name);
    struct said s = {.metrics = p->report->metrics, .out = out, .owner = owner};
    rlhf__buf_printf(out, "%s%s (", out->len ? ", " : "", name);
    rlhf__metrics_names(p->report->metrics, say_metric, &s);
    rlhf__buf_puts(out, ")");
}

static void put_rewards(const struct rlhf__phase *p, struct rlhf__buf *out) {
    for (size_t k = 0; k < p->cast->n_rewards; k++)
        put_reward(p, p->config->reward[k].name, out);
}

// ---- rewards that do not distinguish responses ----

static int has_critic(const struct rlhf__phase *p) {
    return (p->cast->plan.heads & RLHF_HEAD_VALUE) != 0;
}

static void warn_reward_values(const struct rlhf__phase *p) {
    struct rlhf__buf said = RLHF__BUF_INIT;
    put_rewards(p, &said);
    if (!said.bad && said.len)
        rlhf__report_warn(
            p->report, p->count->phase + 1, "reward_values",
            "the rewards: %.700s; 'rlhf-host plugin info NAME' lists what a "
            "reward looks at among its options, and samples.jsonl of the run has the texts "
            "that it scored",
            rlhf__buf_text(&said));
    rlhf__buf_finish(&said);
}

// Returns 1 if the reward is a function in Python, and prompts have messages. Such a function gets
// each completion as a list of messages, which is easily mistaken for a text.
static int reads_messages(const struct rlhf__phase *p) {
    for (size_t k = 0; !p->texts_alone && k < p->config->n_reward; k++)
        if (strcmp(rlhf__path_base(p->config->reward[k].plugin), "python.so") == 0) return 1;
    return 0;
}

static void warn_messages(const struct rlhf__phase *p) {
    rlhf__report_warn(p->report, p->count->phase + 1, "messages",
                      "the prompts are messages, so a reward in Python gets each completion c as a "
                      "list of messages; its text is c[0][\"content\"], and c itself contains no "
                      "text");
}

void rlhf__phase_details(const struct rlhf__phase *p, const char *finding) {
    if (strcmp(finding, "cut_off") == 0) say_turn_end(p);
    if (strcmp(finding, "not_finite_rows") == 0) say_odd_row(p);
    if (strcmp(finding, "skipped_steps") == 0) say_odd_loss(p);
    const int constant = strcmp(finding, "constant_reward") == 0;
    if (!constant && strcmp(finding, "flat_groups") != 0) return;
    warn_reward_values(p);
    if (constant && p->count->phase == 0 && reads_messages(p)) warn_messages(p);
}

// Count the phases without a learning signal. With a critic, or with an algorithm that does not
// report flat groups, these are the phases whose responses all have the same reward. Otherwise
// these are the phases whose groups are all flat.
static void count_flat(const struct rlhf__phase *p, struct rlhf__count *count) {
    const struct rlhf__rows *e = &p->x.rows;
    double share = 0;
    rlhf__metrics_get(p->report->metrics, RLHF_METRIC_FLAT_GROUPS, &share);
    const int scored = rlhf__cast_has_rewards(p->cast) || p->config->n_recorded > 0;
    const int constant = scored && e->n > 1 && rlhf__rows_flat(e, 0, e->n);
    count->flat_phases += constant || (share == 1 && !has_critic(p));
    if (count->flat_phases > 0)
        rlhf__metrics_set(p->report->metrics, "optim/flat_phases", (double)count->flat_phases);
}

// ---- an adapter that does not move ----

static rlhf_status adapter_stuck(const struct rlhf__phase *p, double lr, struct rlhf__error *err) {
    return rlhf__fail(err, RLHF_E_NUMERIC,
                      "the adapter does not move: after phase %lld, with %lld steps at a learning "
                      "rate of %g, its update norm is 0; the run would teach nothing",
                      (long long)p->count->phase + 1, (long long)p->learner->steps, lr);
}

// All derivatives of the loss were 0, so no gradient reached the adapter. Weight decay may still
// shrink its matrix A, but that is not learning.
static rlhf_status no_gradient(const struct rlhf__phase *p, struct rlhf__count *count,
                               struct rlhf__error *err) {
    const int64_t here = ++count->still_phases, left = count->phases - p->count->phase - 1;
    struct rlhf__buf said = RLHF__BUF_INIT;
    put_rewards(p, &said);
    if (p->config->environment.plugin) put_reward(p, "environment", &said);
    const char *values = said.len && !said.bad ? rlhf__buf_text(&said) : "the rows' own loss";
    rlhf_status st = RLHF_OK;
    if (++p->report->still_phases >= RLHF__STILL_PHASES || left <= 0)
        st = rlhf__fail(err, RLHF_E_NUMERIC,
                        "the adapter has not moved: %lld phase%s gave no learning signal (last "
                        "rewards: %.500s); the run would teach nothing",
                        (long long)here, here == 1 ? "" : "s", values);
    else if (here == 1)
        rlhf__report_warn(
            p->report, p->count->phase + 1, "still_adapter",
            "the adapter is where it started: every derivative of the phase's "
            "loss is 0, so that nothing was asked of it; %lld more such phases end the run",
            (long long)(left < RLHF__STILL_PHASES - 1 ? left : RLHF__STILL_PHASES - 1));
    rlhf__buf_finish(&said);
    return st;
}

static rlhf_status check_adapter(const struct rlhf__phase *p, struct rlhf__count *count,
                                 struct rlhf__error *err) {
    const double lr = p->config->optim.lr *
                      rlhf__schedule_factor(&p->config->optim, p->count->phase, p->count->horizon);
    rlhf__metrics_set(p->report->metrics, "optim/adapter_update_norm", p->adapter_norm);
    // 1 while the adapter has not moved since the start of the run.
    const int still = p->count->phase == 0 || count->still_phases > 0;
    if (!still) return RLHF_OK;
    if (!p->learner->asked) return no_gradient(p, count, err);
    if (p->adapter_norm == 0 && p->learner->steps > 0 && lr > 0) return adapter_stuck(p, lr, err);
    if (p->adapter_norm != 0)
        count->still_phases = 0;
    else
        count->still_phases++;
    return RLHF_OK;
}

rlhf_status rlhf__check_learning(const struct rlhf__phase *p, struct rlhf__count *count,
                                 struct rlhf__error *err) {
    count_flat(p, count);
    return p->has_adapter ? check_adapter(p, count, err) : RLHF_OK;
}
