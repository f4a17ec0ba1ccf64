// phase_warnings.c: see phase_warnings.h.
#include "report/phase_warnings.h"

#include "sample/rollout.h"

#include <math.h>
#include <string.h>

// ---- the numbers of a phase ----

// Mean -log-prob of the sampled tokens.
static double entropy_of(const struct rlhf__rows *e) {
    const float *logp = e->token[RLHF__LOGP_SAMPLED];
    double sum = 0;
    int64_t n = 0;
    for (uint32_t i = 0; i < e->n; i++)
        for (int32_t t = e->offset[i] + e->prompt_len[i]; t < e->offset[i + 1]; t++, n++)
            sum -= (double)logp[t];
    return n > 0 ? sum / (double)n : NAN;
}

// Responses may end before the length limit, and their texts are not cut at a period anyway.
static int may_end(const struct rlhf__phase *p) {
    const struct rlhf__config *c = p->config;
    const struct rlhf__model *m = p->cast->policy;
    return rlhf__rollout_stops(&c->sampling, m) && m->ends.n > 0 &&
           c->response.truncate != RLHF__TRUNCATE_PERIOD;
}

static struct rlhf__phase_numbers numbers_of(const struct rlhf__phase *p) {
    const struct rlhf__metrics *m = p->report->metrics;
    const struct rlhf__learner *l = p->learner;
    struct rlhf__phase_numbers out = {.entropy = entropy_of(&p->x.rows),
                                      .kl = NAN,
                                      .correct = NAN,
                                      .norm = NAN,
                                      .norm_first = l->norm_first,
                                      .norm_max = l->norm_max,
                                      .cut_off = NAN};
    double kl, length, flat = 0;
    if (rlhf__metrics_get(m, RLHF_METRIC_KL, &kl) &&
        rlhf__metrics_get(m, "completions/mean_length", &length) && length > 0)
        out.kl = kl / length;
    rlhf__metrics_get(m, "objective/verifiable_correct_rate", &out.correct);
    // Without a reward signal only the penalties give gradients, so their norms are not typical.
    rlhf__metrics_get(m, RLHF_METRIC_FLAT_GROUPS, &flat);
    if (l->steps > 0 && flat < 1) out.norm = l->norm_sum / (double)l->steps;
    if (may_end(p)) rlhf__metrics_get(m, "completions/clipped_ratio", &out.cut_off);
    return out;
}

// ---- causes ----

static void put_lr(const struct rlhf__optim_config *o, struct rlhf__buf *out) {
    if (o->kind == RLHF__OPTIM_MUON)
        rlhf__buf_printf(out, "optim.muon_lr %g and optim.lr %g", o->muon_lr, o->lr);
    else
        rlhf__buf_printf(out, "optim.lr %g", o->lr);
}

// What to change first. A policy that jumped, or that collapsed within a few phases, was thrown off
// by its steps; one that drifted was not held back.
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

// ---- sentences ----

static void say(const struct rlhf__phase *p, struct rlhf__buf *text) {
    if (!text->bad)
        rlhf__logf(p->report->log, RLHF_LOG_WARN, "phase %lld: %s", (long long)p->count->phase + 1,
                   rlhf__buf_text(text));
    rlhf__buf_free(text);
}

static void say_exploded(const struct rlhf__findings *f, const struct rlhf__phase *p,
                         const struct rlhf__phase_numbers *n, const struct rlhf__found *found) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text, "the gradient norm exploded: %.3g, where %.3g was usual; ", n->norm_max,
                     found->usual_norm);
    put_cause(f, p, 0, &text);
    say(p, &text);
}

static void say_collapsed(const struct rlhf__findings *f, const struct rlhf__phase *p,
                          const struct rlhf__phase_numbers *n, const struct rlhf__found *found) {
    enum { AT_ONCE = 6 }; // phases
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_puts(&text, "the policy has collapsed: ");
    if (found->by_kl)
        rlhf__buf_printf(&text, "KL %.3g nats a token from the reference (more than %g), ", n->kl,
                         RLHF__COLLAPSED_KL);
    rlhf__buf_printf(&text, "entropy %.3g nats a token, %.3g in the first phase%s", n->entropy,
                     f->entropy, found->by_entropy ? " (less than a tenth of it)" : "");
    rlhf__buf_puts(&text, "; read its texts (samples.jsonl) before you trust its reward; ");
    put_cause(f, p, f->phases > AT_ONCE, &text);
    if (p->config->run.stop_on != RLHF__STOP_ON_COLLAPSE)
        rlhf__buf_puts(&text, "; run.stop_on=collapse ends such a run");
    say(p, &text);
}

static void say_jumped(const struct rlhf__findings *f, const struct rlhf__phase *p,
                       const struct rlhf__phase_numbers *n, const struct rlhf__found *found) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text,
                     "the policy jumped away from the reference: KL %.3g nats a token, %.3g in the "
                     "phase before; ",
                     n->kl, found->kl_before);
    put_cause(f, p, 0, &text);
    say(p, &text);
}

static void say_cut_off(const struct rlhf__phase *p, double share) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text,
                     "%.3g %% of the responses were cut off after sampling.max_new_tokens=%lld "
                     "tokens, before an end token, so that rewards see unfinished texts; a higher "
                     "sampling.max_new_tokens lets them end; sampling.stop_at_eos=false says that "
                     "they need not",
                     100 * share, (long long)p->config->sampling.max_new_tokens);
    say(p, &text);
}

void rlhf__phase_warnings(struct rlhf__findings *f, const struct rlhf__phase *p) {
    if (!rlhf__cast_pays(p->cast)) return;
    const struct rlhf__phase_numbers n = numbers_of(p);
    const struct rlhf__found found = rlhf__findings_judge(f, &n);
    if (found.what & RLHF__EXPLODED) say_exploded(f, p, &n, &found);
    if (found.what & RLHF__COLLAPSED) say_collapsed(f, p, &n, &found);
    if (found.what & RLHF__JUMPED) say_jumped(f, p, &n, &found);
    if (found.what & RLHF__ALL_CUT_OFF) say_cut_off(p, n.cut_off);
}
