// signs.c: see signs.h.
#include "history/signs.h"

#include "base/buf.h"
#include "history/rules.h"

#include <math.h>
#include <string.h>

// Limits on the entropy. If the headline did not improve, a policy has collapsed if its entropy is
// below ALIKE times the first entropy. If the headline improved, it has collapsed only if both its
// entropy and its share of distinct 3-grams are below RLHF__RULE_ALIKE times their first values.
#define ALIKE       0.25 // share of the first entropy
#define WILD        1.3  // multiple of the first entropy
#define WILD_MARGIN 1.0  // nats per token above the first entropy

static const struct rlhf__series *of(const struct rlhf__history *h, const char *name) {
    return rlhf__series_of(h->series, name);
}

static int is_reward(const struct rlhf__history *h) {
    const char *metric = rlhf__headline_of(h->series).metric;
    return metric && strcmp(metric, "objective/scores") == 0;
}

// ---- collapse ----

static void add_collapsed(const struct rlhf__history *h, struct rlhf__held held, int paid,
                          struct rlhf__notes *out) {
    const struct rlhf__first_last e = rlhf__trend_ends(of(h, "objective/entropy_per_token")),
                                  d = rlhf__trend_ends(of(h, "completions/distinct_3"));
    const struct rlhf__run_note form = {
        .level = RLHF__NOTE_BAD,
        .id = "collapsed",
        .rule = "entropy stays below a quarter of its beginning and the headline did not improve; "
                "or below a tenth, and so do distinct 3-grams",
        .change = h->facts->no_kl
                      ? "lower optim.lr; if it took many phases, raise algo.kl_coef, which is 0"
                      : "lower optim.lr; if it took many phases, raise algo.kl_coef",
        .held = held};
    char first[40], last[40], before[40], after[40];
    rlhf__notes_add(out, &form,
                    "All responses are nearly the same: the policy's entropy fell from %s to %s "
                    "nats per token, the share of distinct 3-grams from %s to %s.%s",
                    rlhf__figure(e.first, first), rlhf__figure(e.last, last),
                    rlhf__figure(d.first, before), rlhf__figure(d.last, after),
                    paid ? " The reward does not see it." : "");
}

static void add_fell_apart(const struct rlhf__history *h, struct rlhf__held held,
                           struct rlhf__notes *out) {
    const struct rlhf__first_last e = rlhf__trend_ends(of(h, "objective/entropy_per_token"));
    const struct rlhf__run_note form = {
        .level = RLHF__NOTE_BAD,
        .id = "fell_apart",
        .rule = "entropy stays more than 1 nat per token and 30 % above its beginning, and the "
                "headline did not improve",
        .change = "lower optim.lr",
        .held = held};
    char first[40], last[40];
    rlhf__notes_add(out, &form,
                    "Tokens are drawn almost at random: the policy's entropy rose from %s to %s "
                    "nats per token.",
                    rlhf__figure(e.first, first), rlhf__figure(e.last, last));
}

// Adds a note if responses are all alike, or if tokens are sampled at random. A policy that becomes
// certain of right answers has not collapsed, although its responses become alike. So nothing is
// reported if the headline has improved and is not the reward itself.
static void collapse(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *entropy = of(h, "objective/entropy_per_token"),
                              *distinct = of(h, "completions/distinct_3");
    const int better = rlhf__headline_moved(h->series) > 0;
    if (entropy->n < RLHF__TREND_FEWEST || (better && !is_reward(h))) return;
    const double first = entropy->value[0], wild = fmax(WILD * first, first + WILD_MARGIN);
    const struct rlhf__held alike =
        rlhf__trend_below(entropy, (better ? RLHF__RULE_ALIKE : ALIKE) * first);
    const struct rlhf__first_last d = rlhf__trend_ends(distinct);
    const int narrow = distinct->n > 0 && d.last < RLHF__RULE_ALIKE * d.first;
    if (alike.n && (!better || narrow))
        add_collapsed(h, alike, better, out);
    else if (!better && rlhf__trend_above(entropy, wild).n)
        add_fell_apart(h, rlhf__trend_above(entropy, wild), out);
}

// ---- a loss that diverged ----

// Checks only supervised runs, because the loss of a policy gradient says nothing about the policy.
static void diverged(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *loss = of(h, "objective/loss");
    if (loss->n < RLHF__TREND_FEWEST || of(h, "objective/scores")->n ||
        rlhf__headline_moved(h->series) > 0)
        return;
    const double limit = RLHF__RULE_LOSS_FACTOR * loss->value[0] + RLHF__RULE_LOSS_MARGIN;
    const struct rlhf__run_note form = {
        .level = RLHF__NOTE_BAD,
        .id = "diverged",
        .rule = "the loss stays above twice its beginning plus 2 for three phases, and the "
                "headline did not improve",
        .change = "lower optim.lr",
        .held = rlhf__trend_above(loss, limit)};
    char first[40], last[40];
    if (form.held.n < RLHF__RULE_HELD) return;
    rlhf__notes_add(out, &form, "The loss rose from %s to %s.", rlhf__figure(loss->value[0], first),
                    rlhf__figure(rlhf__trend_ends(loss).last, last));
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
    const struct rlhf__series *s = of(h, "objective/kl_per_token");
    const double last = s->n ? rlhf__trend_ends(s).last : 0;
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
    const struct rlhf__series *s = of(h, name);
    const struct rlhf__first_last e = rlhf__trend_ends(s);
    char first[40], last[40];
    if (!s->n || !(e.last < share * e.first)) return;
    add(f, 1, rlhf__trend_below(s, share * e.first));
    rlhf__buf_printf(&f->text, "%s fell from %s to %s%s", words, rlhf__figure(e.first, first),
                     rlhf__figure(e.last, last), unit);
}

static void see_witnesses(const struct rlhf__history *h, struct found *f) {
    const struct rlhf__witness *w;
    for (size_t i = 0; (w = rlhf__witness_at(i)); i++) {
        const struct rlhf__series *s = of(h, w->metric);
        const struct rlhf__first_last e = rlhf__trend_ends(s);
        char first[40], last[40];
        if (rlhf__trend_moved(s) * w->better >= 0 || rlhf__witness_repeats(h->series, i)) continue;
        add(f, 1, (struct rlhf__held){s->phase[s->n - e.width], e.width});
        rlhf__buf_printf(&f->text, "%s got worse, from %s to %s", w->metric,
                         rlhf__figure(e.first, first), rlhf__figure(e.last, last));
    }
}

static void hacked(const struct rlhf__history *h, struct rlhf__notes *out) {
    struct found f = {.text = RLHF__BUF_INIT};
    see_distance(h, &f);
    see_fall(h, "completions/distinct_3", 0.5, "the share of distinct 3-grams", "", &f);
    see_fall(h, "objective/entropy_per_token", ALIKE, "entropy", " nats per token", &f);
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
    rlhf__buf_free(&f.text);
}

void rlhf__signs_apply(const struct rlhf__history *h, struct rlhf__notes *out) {
    const size_t before = out->n;
    collapse(h, out);
    diverged(h, out);
    if (out->n == before && is_reward(h) && rlhf__headline_moved(h->series) > 0) hacked(h, out);
}
