// text_rules.c: rules about the length of responses, and about what ends them.
#include "base/buf.h"
#include "verdict/rules.h"

#define CUT_OFF 0.9    // share of responses that reach the length limit
#define BREVITY (-0.3) // correlation of length and reward: short responses are rewarded

// Returns 1 if responses may end before the length limit. If the settings do not decide this, the
// result depends on whether the mean length was ever below the limit.
static int may_end(const struct rlhf__history *h) {
    const struct rlhf__run_facts *f = h->facts;
    const struct rlhf__series *length = rlhf__measured(h, "completions/mean_length");
    if (f->may_end) return f->may_end > 0;
    for (int64_t i = 0; i < length->n; i++)
        if (length->value[i] < (double)f->max_new_tokens) return 1;
    return 0;
}

// Writes what lets responses end.
static void put_ends(const struct rlhf__run_facts *f, struct rlhf__buf *out) {
    rlhf__buf_puts(out, "raise sampling.max_new_tokens");
    if (f->stops) rlhf__buf_puts(out, "; check that sampling.stop names the end that they write");
    if (!f->plays)
        rlhf__buf_puts(out, "; sampling.stop_at_eos=false says that they need not end");
    else if (f->may_end < 0)
        rlhf__buf_puts(
            out, "; nothing ends a turn here: set sampling.stop_at_eos=true or sampling.stop");
    else
        rlhf__buf_puts(out, "; supervised training on whole episodes teaches turns that end");
}

// An environment never answers a turn that was cut off, even if turns need not end by themselves.
void rlhf__rule_cut_off(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *s = rlhf__measured(h, "completions/clipped_ratio");
    const int plays = h->facts->plays;
    struct rlhf__run_note form = {
        .level = RLHF__NOTE_WARN,
        .id = "cut_off",
        .rule = "completions/clipped_ratio above 0.9, although responses may end by themselves",
        .held = rlhf__trend_above(s, CUT_OFF)};
    if (!(rlhf__last_of(s) > CUT_OFF) || !(plays || may_end(h))) return;
    struct rlhf__buf change = RLHF__BUF_INIT;
    put_ends(h->facts, &change);
    if (change.bad) out->bad = 1;
    form.change = rlhf__buf_text(&change);
    rlhf__notes_add(
        out, &form, "%.0f %% of the %s sampling.max_new_tokens (%lld) and are cut off%s.",
        100 * rlhf__last_of(s), plays ? "episodes end in a turn that reaches" : "responses reach",
        (long long)h->facts->max_new_tokens,
        plays ? ", so that the environment does not answer it" : "");
    rlhf__buf_finish(&change);
}

// Adds a note about responses that shrink. It is a warning, unless the reward asks for it: within
// phases, shorter responses had higher rewards.
static void shorter(const struct rlhf__history *h, const char *first, const char *last,
                    double limit, struct rlhf__notes *out) {
    const struct rlhf__series *by = rlhf__measured(h, "completions/length_score_correlation");
    const double paid = rlhf__trend_mean(by);
    const int asked = by->n >= RLHF__TREND_FEWEST && paid < BREVITY;
    const struct rlhf__run_note form = {
        .level = asked ? RLHF__NOTE_INFO : RLHF__NOTE_WARN,
        .id = asked ? "shorter" : "lengths",
        .rule = asked ? "completions/mean_length below half of its beginning, and "
                        "completions/length_score_correlation below -0.3 on average"
                      : "completions/mean_length below half of its beginning",
        .change = asked
                      ? "nothing, if short responses are wanted; otherwise check the reward on an "
                        "empty response"
                      : "short responses are rewarded or long ones are penalised: check the "
                        "reward on an empty response",
        .held = rlhf__trend_below(rlhf__measured(h, "completions/mean_length"), limit)};
    char figure[40];
    if (asked)
        rlhf__notes_add(out, &form,
                        "Responses shrink, as the reward asks: %s tokens at first, %s at the end; "
                        "shorter ones score higher (correlation %s).",
                        first, last, rlhf__figure(paid, figure));
    else
        rlhf__notes_add(out, &form, "Responses shrink: %s tokens at first, %s at the end.", first,
                        last);
}

// Adds a note if lengths grow to the limit or shrink to nothing, unless a reward asks for a certain
// length.
void rlhf__rule_lengths(const struct rlhf__history *h, struct rlhf__notes *out) {
    const struct rlhf__series *s = rlhf__measured(h, "completions/mean_length"),
                              *cut = rlhf__measured(h, "completions/clipped_ratio");
    const struct rlhf__first_last e = rlhf__trend_ends(s), c = rlhf__trend_ends(cut);
    const int moved = rlhf__trend_moved(s);
    char first[40], last[40];
    struct rlhf__run_note form = {.level = RLHF__NOTE_WARN, .id = "lengths"};
    if (h->facts->pays_length || !moved || !may_end(h)) return;
    rlhf__figure(e.first, first);
    rlhf__figure(e.last, last);
    if (moved < 0 && e.last < e.first / 2) {
        shorter(h, first, last, e.first / 2, out);
    } else if (moved > 0 && e.last > 1.5 * e.first && c.first < 0.25 && c.last > 0.5) {
        form.rule = "completions/mean_length above 1.5 times its beginning, and more than half of "
                    "the responses are cut off, at first less than a quarter";
        form.change = "length is rewarded, on purpose or not: add a length penalty (length.so), or "
                      "raise sampling.max_new_tokens if longer responses are better";
        form.held = rlhf__trend_above(cut, 0.5);
        rlhf__notes_add(out, &form,
                        "Responses grow into the length limit: %s tokens at first, %s at the end, "
                        "and %.0f %% are cut off.",
                        first, last, 100 * c.last);
    }
}
