// policy_rules.c: rules about the policy of the newest phase: it has collapsed, draws tokens at
// random, is far from the reference, or does not move; and signs that its reward makes it look
// better than it is.
#include "base/buf.h"
#include "verdict/rules.h"

#include <math.h>

// KL is in nats per token.
#define ALIKE          0.1  // share of the first entropy: all responses are nearly the same
#define NARROW         0.25 // share of the first entropy that is suspicious
#define WILD           1.3  // multiple of the first entropy
#define WILD_MARGIN    1.0  // nats per token above the first entropy
#define LOSS_FACTOR    2.0  // a supervised loss has diverged above this multiple of the first ...
#define LOSS_MARGIN    2.0  // ... plus this margin, which allows for differences between batches
#define FALL           1.0  // nats per token that preferred responses lose
#define OTHER          0.25 // KL in the first phase from a reference that is another model
#define STILL          1e-7 // KL per token that rounding errors of f32 log-probs can make
#define READ_ITS_TEXTS "read its texts (samples.jsonl) before you trust its reward; "

// ---- causes ----

static void put_rate(const struct rlhf__run_facts *f, struct rlhf__buf *out) {
    rlhf__buf_puts(out, "the learning rate");
    if (f->muon_lr > 0)
        rlhf__buf_printf(out, " (optim.muon_lr %g and optim.lr %g)", f->muon_lr, f->lr);
    if (f->lr > 0 && !(f->muon_lr > 0)) rlhf__buf_printf(out, " (optim.lr %g)", f->lr);
}

// If the policy jumped, or was lost within a few phases, its steps were too large. Otherwise it
// drifted away.
void rlhf__put_cause(const struct rlhf__history *h, int64_t phase, struct rlhf__buf *out) {
    enum { AT_ONCE = 6 }; // phases
    const struct rlhf__run_facts *f = h->facts;
    double a, b;
    const int drifted =
        phase > AT_ONCE && f->holds && !rlhf__jump(h, &a, &b) && !rlhf__explosion(h, &a, &b);
    if (drifted && f->unbound)
        rlhf__buf_puts(
            out,
            "set algo.kl_placement, because no penalty holds the policy near the reference, then ");
    else if (drifted)
        rlhf__buf_printf(out, "raise the KL penalty (algo.kl_coef %g) first, then ", f->kl_coef);
    rlhf__buf_puts(out, "lower ");
    put_rate(f, out);
    if (drifted) rlhf__buf_puts(out, "; early_stop.kl ends a run in time");
}

// Adds a note whose advice is `before`, then the cause, then how such a run can end by itself.
static void add_lost(const struct rlhf__history *h, struct rlhf__run_note *form, const char *before,
                     const struct rlhf__buf *text, struct rlhf__notes *out) {
    struct rlhf__buf change = RLHF__BUF_INIT;
    rlhf__buf_puts(&change, before);
    rlhf__put_cause(h, form->held.phase, &change);
    if (h->facts->goes_on && *before)
        rlhf__buf_puts(&change, "; run.stop_on=collapse ends such a run");
    if (change.bad || text->bad) out->bad = 1;
    form->change = rlhf__buf_text(&change);
    rlhf__notes_add(out, form, "%s.", rlhf__buf_text(text));
    rlhf__buf_finish(&change);
}

// ---- collapse ----

// Low entropy is a success if right answers are counted and there are more of them, by more than
// the noise of a phase as soon as that is known.
static int is_sure_of_right_answers(const struct rlhf__history *h) {
    static const char metric[] = "objective/verifiable_correct_rate";
    const struct rlhf__first_last e = rlhf__trend_ends(rlhf__measured(h, metric));
    const int known = rlhf__measured(h, metric)->n >= RLHF__TREND_FEWEST;
    if (e.last - e.first > (known ? rlhf__measure_noise(h->series, metric) : 0)) return 1;
    return !rlhf__headline_is_reward(h->series) && rlhf__headline_moved(h->series) > 0;
}

static void put_ends(struct rlhf__buf *out, const char *before, const struct rlhf__series *s,
                     const char *unit) {
    const struct rlhf__first_last e = rlhf__trend_ends(s);
    char first[40], last[40];
    if (s->n)
        rlhf__buf_printf(out, "%s from %s to %s%s", before, rlhf__figure(e.first, first),
                         rlhf__figure(e.last, last), unit);
}

// Adds a note if the entropy is below this share of the first one, unless the headline improved. If
// only the reward improved, the share of distinct 3-grams must have fallen by as much.
static void collapse(const struct rlhf__history *h, double share, struct rlhf__notes *out) {
    const struct rlhf__series *entropy = rlhf__measured(h, "objective/entropy_per_token"),
                              *distinct = rlhf__measured(h, "completions/distinct_3");
    struct rlhf__run_note form = {
        .level = RLHF__NOTE_BAD,
        .id = "collapsed",
        .rule =
            "entropy below a tenth of its beginning, or for three phases below a quarter, and the "
            "headline did not improve; if only the reward improved, below a tenth, and so are "
            "distinct 3-grams"};
    if (!entropy->n || rlhf__notes_find(out, "collapsed")) return;
    form.held = rlhf__trend_below(entropy, share * entropy->value[0]);
    if (!form.held.n || is_sure_of_right_answers(h)) return;
    const int paid = rlhf__headline_moved(h->series) > 0;
    const struct rlhf__first_last d = rlhf__trend_ends(distinct);
    if (paid && !(share == ALIKE && d.last < ALIKE * d.first)) return;
    struct rlhf__buf text = RLHF__BUF_INIT;
    put_ends(&text,
             "The policy has collapsed, so that all responses are nearly the same: entropy fell",
             entropy, " nats per token");
    put_ends(&text, ", the share of distinct 3-grams", distinct, "");
    if (paid) rlhf__buf_puts(&text, "; the reward does not see it");
    add_lost(h, &form, READ_ITS_TEXTS, &text, out);
    rlhf__buf_finish(&text);
}

void rlhf__rule_collapsed(const struct rlhf__history *h, struct rlhf__notes *out) {
    collapse(h, ALIKE, out);
}

void rlhf__rule_narrowed(const struct rlhf__history *h, struct rlhf__notes *out) {
    if (rlhf__measured(h, "objective/entropy_per_token")->n >= RLHF__TREND_FEWEST)
        collapse(h, NARROW, out);
}

void rlhf__rule_fell_apart(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *entropy = rlhf__measured(h, "objective/entropy_per_token");
    const struct rlhf__first_last e = rlhf__trend_ends(entropy);
    char first[40], last[40];
    if (entropy->n < RLHF__TREND_FEWEST || rlhf__headline_moved(h->series) > 0) return;
    const struct rlhf__run_note form = {
        .level = RLHF__NOTE_BAD,
        .id = "fell_apart",
        .rule = "entropy stays more than 1 nat per token and 30 % above its beginning, and the "
                "headline did not improve",
        .change = "lower optim.lr",
        .held = rlhf__trend_above(entropy, fmax(WILD * e.first, e.first + WILD_MARGIN))};
    if (form.held.n)
        rlhf__notes_add(
            out, &form,
            "Tokens are drawn almost at random: the policy's entropy rose from %s to %s "
            "nats per token.",
            rlhf__figure(e.first, first), rlhf__figure(e.last, last));
}

// ---- distance ----

void rlhf__rule_far(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *kl = rlhf__measured(h, "objective/kl_per_token"),
                              *entropy = rlhf__measured(h, "objective/entropy_per_token");
    struct rlhf__run_note form = {.level = RLHF__NOTE_WARN,
                                  .id = "far",
                                  .rule = "KL from the reference above 1 nat per token",
                                  .held = rlhf__trend_above(kl, RLHF__RULE_KL_FAR)};
    char last[40];
    if (!form.held.n) return;
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(&text,
                     "The policy is far from the reference: KL %s nats per token (more than %g)",
                     rlhf__figure(kl->value[kl->n - 1], last), RLHF__RULE_KL_FAR);
    put_ends(&text, "; entropy went", entropy, " nats per token");
    add_lost(h, &form, READ_ITS_TEXTS, &text, out);
    rlhf__buf_finish(&text);
}

// The responses of the first phase were sampled before any update.
void rlhf__rule_other_reference(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *kl = rlhf__measured(h, "objective/kl_per_token");
    const struct rlhf__run_note form = {
        .level = RLHF__NOTE_WARN,
        .id = "other_reference",
        .rule = "KL from the reference above 0.25 nats per token in the first phase",
        .change = "check that reference.path is the model that the policy began with",
        .held = {kl->n ? kl->phase[0] : 0, 1}};
    char first[40];
    if (kl->n && kl->value[0] > OTHER)
        rlhf__notes_add(out, &form,
                        "Before the first update the policy was %s nats per token away from its "
                        "reference, so the reference is another model.",
                        rlhf__figure(kl->value[0], first));
}

void rlhf__rule_frozen(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *kl = rlhf__measured(h, "objective/kl_per_token"),
                              *norm = rlhf__measured(h, "optim/grad_norm");
    const struct rlhf__run_note form = {
        .level = RLHF__NOTE_WARN,
        .id = "frozen",
        .rule = "KL from the reference below 1e-7 nats per token in all phases, although there "
                "were gradients",
        .change =
            "raise optim.lr; with weights in a short type (policy.dtype), a small step is lost",
        .held = {kl->n ? kl->phase[0] : 0, kl->n}};
    if (kl->n < RLHF__TREND_FEWEST || !(rlhf__last_of(norm) > 0)) return;
    for (int64_t i = 0; i < kl->n; i++)
        if (fabs(kl->value[i]) > STILL) return;
    rlhf__notes_add(out, &form,
                    "The policy does not move: its KL from the reference is below 1e-7 nats per "
                    "token in all %lld phases.",
                    (long long)kl->n);
}

// ---- supervised runs ----

// The loss of a policy gradient says nothing about the policy.
void rlhf__rule_diverged(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *loss = rlhf__measured(h, "objective/loss");
    if (!loss->n || rlhf__measured(h, "objective/entropy_per_token")->n ||
        rlhf__headline_moved(h->series) > 0)
        return;
    struct rlhf__run_note form = {
        .level = RLHF__NOTE_BAD,
        .id = "diverged",
        .rule = "the loss is above twice its beginning plus 2, and the headline did not improve",
        .held = rlhf__trend_above(loss, LOSS_FACTOR * loss->value[0] + LOSS_MARGIN)};
    if (!form.held.n) return;
    struct rlhf__buf text = RLHF__BUF_INIT;
    put_ends(&text, "The loss has diverged: it rose", loss, "");
    add_lost(h, &form, "", &text, out);
    rlhf__buf_finish(&text);
}

// A bounded loss cannot diverge, even if the policy gives the preferred responses much less
// probability.
void rlhf__rule_fell(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *fall = rlhf__measured(h, "optim/preferred_fall");
    struct rlhf__run_note form = {.level = RLHF__NOTE_WARN,
                                  .id = "fell",
                                  .rule = "optim/preferred_fall above 1 nat per token",
                                  .held = rlhf__trend_above(fall, FALL)};
    char last[40];
    if (!form.held.n) return;
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__buf_printf(
        &text,
        "The policy has lost the preferred responses: their log-prob is %s nats per token "
        "below the reference's (more than %g)",
        rlhf__figure(fall->value[fall->n - 1], last), FALL);
    add_lost(h, &form, "", &text, out);
    rlhf__buf_finish(&text);
}

// ---- the reward rises, but the policy does not improve ----

struct found {
    struct rlhf__buf text; // "a; b"
    int32_t weight, n;
    struct rlhf__held held;
};

static void add(struct found *f, int weight, struct rlhf__held held) {
    if (f->n++ == 0) f->held = held;
    f->weight += weight;
    if (f->n > 1) rlhf__buf_puts(&f->text, "; ");
}

static void see_distance(const struct rlhf__history *h, struct found *f) {
    const struct rlhf__series *s = rlhf__measured(h, "objective/kl_per_token");
    const double last = rlhf__last_of(s);
    const int far = last > RLHF__RULE_KL_FAR;
    char kl[40];
    if (!(last > RLHF__RULE_KL_AWAY)) return;
    add(f, far ? 2 : 1, rlhf__trend_above(s, far ? RLHF__RULE_KL_FAR : RLHF__RULE_KL_AWAY));
    rlhf__buf_printf(&f->text, "the policy is %s nats per token away from the reference%s",
                     rlhf__figure(last, kl), far ? ", which would hardly write this" : "");
}

// Adds a sign if the metric fell below `share` times its first value.
static void see_fall(const struct rlhf__history *h, const char *name, double share,
                     const char *words, const char *unit, struct found *f) {
    const struct rlhf__series *s = rlhf__measured(h, name);
    const struct rlhf__first_last e = rlhf__trend_ends(s);
    if (!s->n || !(e.last < share * e.first)) return;
    add(f, 1, rlhf__trend_below(s, share * e.first));
    put_ends(&f->text, words, s, unit);
}

static void see_witnesses(const struct rlhf__history *h, struct found *f) {
    const struct rlhf__witness *w;
    for (size_t i = 0; (w = rlhf__witness_at(i)); i++) {
        const struct rlhf__series *s = rlhf__measured(h, w->metric);
        const struct rlhf__first_last e = rlhf__trend_ends(s);
        if (rlhf__trend_moved(s) * w->better >= 0 || rlhf__witness_repeats(h->series, i)) continue;
        add(f, 1, (struct rlhf__held){s->phase[s->n - e.width], e.width});
        rlhf__buf_puts(&f->text, w->metric);
        put_ends(&f->text, " got worse,", s, "");
    }
}

void rlhf__rule_hacked(const struct rlhf__history *h, struct rlhf__notes *out) {
    struct found f = {.text = RLHF__BUF_INIT};
    if (rlhf__notes_find(out, "collapsed") || !rlhf__headline_is_reward(h->series) ||
        rlhf__headline_moved(h->series) <= 0)
        return;
    see_distance(h, &f);
    see_fall(h, "completions/distinct_3", 0.5, "the share of distinct 3-grams fell", "", &f);
    see_fall(h, "objective/entropy_per_token", NARROW, "entropy fell", " nats per token", &f);
    see_witnesses(h, &f);
    const struct rlhf__run_note form = {
        .level = f.weight >= 2 ? RLHF__NOTE_BAD : RLHF__NOTE_INFO,
        .id = f.weight >= 2 ? "hacked" : "sign",
        .rule = "signs are KL above 0.5 nats per token (above 1: two signs), distinct 3-grams "
                "halved, entropy below a quarter, a worse measure that nothing is trained on; two "
                "change the verdict",
        .change = f.weight >= 2 ? "raise algo.kl_coef, or read samples.jsonl and penalize the "
                                  "faults that the texts show"
                                : NULL,
        .held = f.held};
    if (f.text.bad) out->bad = 1;
    if (f.weight >= 2)
        rlhf__notes_add(out, &form, "The reward may be met and its purpose not: %s.",
                        rlhf__buf_text(&f.text));
    else if (f.n)
        rlhf__notes_add(out, &form, "One sign that the reward is met and its purpose not: %s.",
                        rlhf__buf_text(&f.text));
    rlhf__buf_finish(&f.text);
}
