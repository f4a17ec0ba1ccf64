// phase_warnings.c: see phase_report.h.
#include "report/phase_report.h"

#include "base/file.h"
#include "feed/feed.h"
#include "learn/plan.h"
#include "learn/schedule.h"
#include "model/text_note.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// ---- the numbers of a phase ----

static struct rlhf__phase_numbers numbers_of(const struct rlhf__phase *p) {
    const struct rlhf__metrics *m = p->report->metrics;
    const struct rlhf__learner *l = p->learner;
    const int samples = rlhf__cast_samples(p->cast);
    struct rlhf__phase_numbers out = {.entropy = samples ? rlhf__rows_entropy(&p->x.rows) : NAN,
                                      .kl = NAN,
                                      .correct = NAN,
                                      .norm = NAN,
                                      .norm_first = l->norm_first,
                                      .norm_max = l->norm_max,
                                      .cut_off = NAN,
                                      .loss = NAN,
                                      .fall = NAN};
    double kl, length, flat = 0;
    if (rlhf__metrics_get(m, RLHF_METRIC_KL, &kl) &&
        rlhf__metrics_get(m, "completions/mean_length", &length) && length > 0)
        out.kl = kl / length;
    rlhf__metrics_get(m, "objective/verifiable_correct_rate", &out.correct);
    // If every group is flat, gradients come only from the penalties, so the gradient norms are not
    // typical.
    rlhf__metrics_get(m, RLHF_METRIC_FLAT_GROUPS, &flat);
    if (l->steps > 0 && flat < 1) out.norm = l->norm_sum / (double)l->steps;
    if (!samples) rlhf__metrics_get(m, "objective/loss", &out.loss);
    if (l->fall_tokens > 0) out.fall = l->fall_sum / (double)l->fall_tokens;
    // An environment never answers a turn that was cut off.
    if (samples &&
        (p->config->environment.plugin || rlhf__responses_may_end(p->config, p->cast->policy)))
        rlhf__metrics_get(m, "completions/clipped_ratio", &out.cut_off);
    return out;
}

// ---- causes ----

static void put_lr(const struct rlhf__optim_config *o, struct rlhf__buf *out) {
    if (o->kind == RLHF__OPTIM_MUON)
        rlhf__buf_printf(out, "optim.muon_lr %g and optim.lr %g", o->muon_lr, o->lr);
    else
        rlhf__buf_printf(out, "optim.lr %g", o->lr);
}

// Write which setting to change first. If the policy jumped, or collapsed within a few phases, its
// steps were too large, so the learning rate must be lowered. If the policy drifted away, it needs
// a higher KL penalty.
static void put_cause(const struct rlhf__findings *f, const struct rlhf__phase *p, int drifted,
                      struct rlhf__buf *out) {
    const json_t *algo = p->config->algo.options, *coef = json_object_get(algo, "kl_coef");
    const char *place = json_string_value(json_object_get(algo, "kl_placement"));
    const int none = place && strcmp(place, "none") == 0;
    if (f->wild || !drifted || !coef) {
        rlhf__buf_puts(out, "the learning rate (");
        put_lr(&p->config->optim, out);
        rlhf__buf_puts(out, ") is the first thing to lower");
        return;
    }
    if (none)
        rlhf__buf_puts(out, "nothing holds it near the reference (algo.kl_placement is none)");
    else
        rlhf__buf_printf(out, "the KL penalty (algo.kl_coef %g) is the first thing to raise",
                         json_number_value(coef));
    rlhf__buf_puts(out, ", then the learning rate (");
    put_lr(&p->config->optim, out);
    rlhf__buf_puts(out, ") to lower; early_stop.kl ends a run in time");
}

// ---- messages ----

static void say(const struct rlhf__phase *p, const char *finding, struct rlhf__buf *text) {
    if (!text->bad)
        rlhf__report_warn(p->report, p->count->phase + 1, finding, "%s", rlhf__buf_text(text));
    rlhf__buf_free(text);
}

static void say_exploded(const struct rlhf__findings *f, const struct rlhf__phase *p,
                         const struct rlhf__phase_numbers *n, const struct rlhf__found *found) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text, "the gradient norm exploded: %.3g, where %.3g was usual; ", n->norm_max,
                     found->usual_norm);
    put_cause(f, p, 0, &text);
    say(p, "exploded", &text);
}

// Warn that the policy has collapsed, that it is far from the reference, or both.
static void say_lost(const struct rlhf__findings *f, const struct rlhf__phase *p,
                     const struct rlhf__phase_numbers *n) {
    enum { AT_ONCE = 6 }; // phases
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_puts(&text, f->is_collapsed ? "the policy has collapsed: "
                                          : "the policy is far from the reference: ");
    if (f->is_far)
        rlhf__buf_printf(&text, "KL %.3g nats a token%s (more than %g), ", n->kl,
                         f->is_collapsed ? " from the reference" : "", RLHF__FAR_KL);
    rlhf__buf_printf(&text, "entropy %.3g nats a token, %.3g in the first phase%s", n->entropy,
                     f->entropy, f->is_collapsed ? " (less than a tenth of it)" : "");
    rlhf__buf_puts(&text, "; read its texts (samples.jsonl) before you trust its reward; ");
    put_cause(f, p, f->phases > AT_ONCE, &text);
    if (p->config->run.stop_on != RLHF__STOP_ON_COLLAPSE)
        rlhf__buf_puts(&text, "; run.stop_on=collapse ends such a run");
    say(p, f->is_collapsed ? "collapsed" : "far", &text);
}

static void say_jumped(const struct rlhf__findings *f, const struct rlhf__phase *p,
                       const struct rlhf__phase_numbers *n, const struct rlhf__found *found) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text,
                     "the policy jumped away from the reference: KL %.3g nats a token, %.3g in the "
                     "phase before; ",
                     n->kl, found->kl_before);
    put_cause(f, p, 0, &text);
    say(p, "jumped", &text);
}

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

// Write what a user can do about responses that reach the length limit.
static void put_ends(const struct rlhf__phase *p, struct rlhf__buf *out) {
    const char *stop = p->config->sampling.stop;
    rlhf__buf_puts(out, "a higher sampling.max_new_tokens lets them end; ");
    if (strcmp(stop, "[]") != 0)
        rlhf__buf_printf(out, "check that sampling.stop (%s) names the end that they write; ",
                         stop);
    if (!p->config->environment.plugin)
        rlhf__buf_puts(out, "sampling.stop_at_eos=false says that they need not");
    else if (rlhf__responses_may_end(p->config, p->cast->policy))
        rlhf__buf_puts(out, "supervised training on whole episodes teaches turns that end");
    else
        rlhf__buf_puts(out, "nothing ends a turn here: set sampling.stop_at_eos=true or "
                            "sampling.stop");
}

// If most responses contain an end-of-turn token, suggest it as a stop token. Otherwise suggest a
// higher length limit.
static void say_cut_off(const struct rlhf__phase *p, double share) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    const char *end;
    const int32_t id =
        rlhf__model_ignored_turn_end(p->cast->policy, p->config->sampling.stop, &end);
    const uint32_t ended = id >= 0 ? containing(&p->x.rows, id) : 0;
    const int plays = p->config->environment.plugin != NULL;
    rlhf__buf_printf(&text,
                     "%.3g %% of the %s cut off after sampling.max_new_tokens=%lld tokens, before "
                     "an end token%s; ",
                     100 * share, plays ? "episodes ended in a turn that was" : "responses were",
                     (long long)p->config->sampling.max_new_tokens,
                     plays ? ", so that the environment did not answer it"
                     : rlhf__cast_has_rewards(p->cast) ? ", so that rewards see unfinished texts"
                                                       : "");
    if (2 * ended > p->x.rows.n)
        rlhf__buf_printf(&text,
                         "%u of %u contain '%s', which ends turns of the chat template but no "
                         "response; sampling.stop=[%d] ends them there",
                         ended, p->x.rows.n, end, (int)id);
    else
        put_ends(p, &text);
    say(p, "cut_off", &text);
}

static void say_diverged(const struct rlhf__findings *f, const struct rlhf__phase *p, double loss) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text, "the loss has diverged: %.3g, where the first phase had %.3g; ", loss,
                     f->loss);
    put_cause(f, p, 0, &text);
    say(p, "diverged", &text);
}

static void say_fell(const struct rlhf__findings *f, const struct rlhf__phase *p, double fall) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text,
                     "the policy has lost the preferred responses: their log-prob is %.3g nats a "
                     "token below the reference's (more than %g); ",
                     fall, RLHF__FALL);
    put_cause(f, p, 0, &text);
    say(p, "fell", &text);
}

// Warn once if no episode of the phase has called a tool, although the environment has tools.
static void check_calls(struct rlhf__findings *f, const struct rlhf__phase *p) {
    double calls;
    if (!rlhf__metrics_get(p->report->metrics, "tools/call_frequency", &calls) || calls > 0 ||
        !rlhf__findings_once(f, RLHF__NO_CALLS))
        return;
    rlhf__report_warn(p->report, p->count->phase + 1, "no_calls",
                      "none of the %u episodes called a tool; what helps: teach the form of calls "
                      "first, by sft.so on rows with calls (docs/calculator.md); look at the "
                      "prompt with 'rlhf-host play'",
                      p->x.rows.n);
}

// Warn once if the chat template would render a turn differently once later turns follow.
static void check_rewritten(struct rlhf__findings *f, const struct rlhf__phase *p) {
    const struct rlhf__episode_counts *c = &p->x.replies;
    const int plays = !p->recorded || p->trusts == RLHF__TRUST_SCORES;
    if (!plays || !c->rewritten || !rlhf__findings_once(f, RLHF__REWRITTEN)) return;
    rlhf__report_warn(
        p->report, p->count->phase + 1, "rewritten",
        "the chat template would render %lld of %lld turns differently once later "
        "turns follow (episodes/rewritten_turns); rows keep what the policy wrote, but "
        "programs that render the whole conversation for each turn do not show it to "
        "the model",
        (long long)c->rewritten, (long long)c->past);
}

void rlhf__phase_warnings(struct rlhf__findings *f, const struct rlhf__phase *p) {
    check_calls(f, p);
    check_rewritten(f, p);
    const struct rlhf__phase_numbers n = numbers_of(p);
    const struct rlhf__found found = rlhf__findings_judge(f, &n);
    if (found.what & RLHF__EXPLODED) say_exploded(f, p, &n, &found);
    if (found.what & RLHF__LOST) say_lost(f, p, &n);
    if (found.what & RLHF__JUMPED) say_jumped(f, p, &n, &found);
    if (found.what & RLHF__ALL_CUT_OFF) say_cut_off(p, n.cut_off);
    if (found.what & RLHF__DIVERGED) say_diverged(f, p, n.loss);
    if (found.what & RLHF__FELL) say_fell(f, p, n.fall);
}

// ---- the rewards' metrics ----

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

static void warn_constant_rewards(const struct rlhf__phase *p, const struct rlhf__rows *e) {
    rlhf__report_warn(
        p->report, p->count->phase + 1, "constant_reward",
        "all %u responses have the same reward (%.4g), so that rewards teach "
        "nothing%s; what helps: a reward with more than two values, easier or harder "
        "prompts, more responses (batch.size%s), a higher sampling.temperature; such phases "
        "are counted in optim/flat_phases",
        e->n, (double)e->reward[0],
        has_critic(p) ? " and the policy follows the noise of the value head" : "",
        p->cast->plan.group_size > 1 ? ", algo.group_size" : "");
}

// Warn that in every group all responses have the same reward. Rewards of different groups may
// still differ.
static void warn_flat_groups(const struct rlhf__phase *p) {
    const uint32_t size = p->cast->plan.group_size;
    if (size < 2)
        rlhf__report_warn(
            p->report, p->count->phase + 1, "flat_groups",
            "all responses have the same reward, so that rewards teach nothing; "
            "what helps: more responses a phase (batch.size), a higher "
            "sampling.temperature, easier or harder prompts, a reward with more than two "
            "values; such phases are counted in optim/flat_phases");
    else
        rlhf__report_warn(
            p->report, p->count->phase + 1, "flat_groups",
            "in each group all %d responses have the same reward, so that rewards "
            "teach nothing; what helps: more responses a prompt (algo.group_size), a higher "
            "sampling.temperature, easier or harder prompts, a reward with more than two "
            "values, algo.dynamic_sampling=true of grpo.so and rloo.so; such phases are "
            "counted in optim/flat_phases",
            size);
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
    rlhf__buf_free(&said);
}

// Returns 1 if the reward is a function in Python, and prompts have messages. Such a function gets
// each completion as a list of messages, which is easily mistaken for a text.
static int reads_messages(const struct rlhf__phase *p) {
    for (size_t k = 0; !p->feed->texts_alone && k < p->config->n_reward; k++)
        if (strcmp(rlhf__path_base(p->config->reward[k].plugin), "python.so") == 0) return 1;
    return 0;
}

static void warn_messages(const struct rlhf__phase *p) {
    rlhf__report_warn(p->report, p->count->phase + 1, "messages",
                      "the prompts are messages, so a reward in Python gets each completion c as a "
                      "list of messages; its text is c[0][\"content\"], and c itself contains no "
                      "text");
}

// Warn about flat rewards. With a critic, or with an algorithm that does not report flat groups,
// rewards are flat if all responses of the phase have the same reward. Otherwise they are flat if
// no group has spread.
static void check_flat_rewards(const struct rlhf__phase *p, struct rlhf__count *count,
                               struct rlhf__findings *findings) {
    const struct rlhf__rows *e = &p->x.rows;
    double share = 0;
    rlhf__metrics_get(p->report->metrics, RLHF_METRIC_FLAT_GROUPS, &share);
    const int scored = rlhf__cast_has_rewards(p->cast) || p->config->n_recorded > 0;
    const int constant = scored && e->n > 1 && rlhf__rows_flat(e, 0, e->n);
    const int flat = constant || (share == 1 && !has_critic(p));
    count->flat_phases += flat;
    if (count->flat_phases > 0)
        rlhf__metrics_set(p->report->metrics, "optim/flat_phases", (double)count->flat_phases);
    // If the policy was reported as lost (RLHF__LOST), that is the cause, and advice on groups and
    // temperatures would not help.
    if (!flat || (findings->said & RLHF__LOST) || !rlhf__findings_once(findings, RLHF__FLAT_GROUPS))
        return;
    if (constant)
        warn_constant_rewards(p, e);
    else
        warn_flat_groups(p);
    warn_reward_values(p);
    if (constant && p->count->phase == 0 && reads_messages(p)) warn_messages(p);
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
    rlhf__buf_free(&said);
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

// ---- skipped steps ----

// Append the first advantage that is not finite, as the cause of skipped steps.
static void put_odd_advantage(const struct rlhf__phase *p, struct rlhf__buf *out) {
    const struct rlhf__rows *e = &p->x.rows;
    for (uint32_t i = 0; i < e->n; i++)
        for (int32_t t = e->offset[i]; t < e->offset[i + 1]; t++) {
            const float a = e->token[RLHF__ADVANTAGE][t];
            if (isfinite(a)) continue;
            rlhf__buf_printf(out, "; %s gave row %u the advantage %g",
                             rlhf__plugin_name(p->cast->algo->plugin), i,
                             isnan(a) ? (double)NAN : (double)a);
            return;
        }
}

// Warn in the first phase with a step that was skipped. The end of the run has the count.
static void check_skipped(struct rlhf__findings *findings, const struct rlhf__phase *p) {
    const struct rlhf__learner *l = p->learner;
    const long long skipped = (long long)(l->minibatches - l->steps);
    struct rlhf__buf cause = RLHF__BUF_INIT;
    if (skipped <= 0 || !rlhf__findings_once(findings, RLHF__SKIPPED_STEPS)) return;
    put_odd_advantage(p, &cause);
    rlhf__report_warn(p->report, p->count->phase + 1, "skipped_steps",
                      "%lld of %lld updates were skipped, because the loss or a gradient was not "
                      "finite%s; what helps: a lower optim.lr%s; the end of the run has the count",
                      skipped, (long long)l->minibatches, rlhf__buf_text(&cause),
                      rlhf__cast_has_rewards(p->cast)
                          ? ", smaller rewards (their weights, rewards.normalize, rewards.clip)"
                          : "");
    rlhf__buf_free(&cause);
}

rlhf_status rlhf__check_learning(const struct rlhf__phase *p, struct rlhf__count *count,
                                 struct rlhf__findings *findings, struct rlhf__error *err) {
    check_skipped(findings, p);
    check_flat_rewards(p, count, findings);
    return p->has_adapter ? check_adapter(p, count, err) : RLHF_OK;
}

// ---- a reward model's scale ----

#define FEWEST 32 // responses; the mean of fewer responses is not reliable

static int get(const struct rlhf__phase *p, size_t k, const char *what, double *out) {
    char name[192];
    snprintf(name, sizeof name, "rewards/%s/%s", p->config->reward[k].name, what);
    return rlhf__metrics_get(p->report->metrics, name, out);
}

void rlhf__calibration_note(const struct rlhf__phase *p) {
    if (p->count->phase > 0 || p->x.rows.n < FEWEST) return;
    for (size_t k = 0; k < p->cast->n_rewards; k++) {
        double mean, std;
        if (strcmp(p->cast->rewards[k]->plugin->desc.id, "org.rlhf-host.bt-rm") != 0 ||
            !get(p, k, "mean", &mean) || !get(p, k, "std", &std))
            continue;
        if (fabs(mean) < 1 && std > 1.0 / 3 && std < 3) continue;
        char text[512];
        snprintf(text, sizeof text,
                 "reward %s begins at mean %.2f and standard deviation %.2f, where a reward model "
                 "is fitted to 0 and 1 (score.calibrate): it was fitted on other prompts or "
                 "another policy's responses; what is weighed against it (algo.kl_coef) weighs as "
                 "much less or more",
                 p->config->reward[k].name, mean, std);
        rlhf__logf(p->report->log, RLHF_LOG_WARN, "%s", text);
        rlhf__events_warning(p->report->events, 1, "calibration", text);
    }
}
