// reward.c: tests a reward against the contract, with many kinds of rows.
#include "check/cases.h"

#include "base/clock.h"
#include "base/printable.h"
#include "check/check_rows.h"
#include "check/guard.h"
#include "check/probe.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 10000, FEW = 16 };
static const double share = 0.1; // of the time limit of a step, for the calls with many rows

// ---- calling score() and storing the results ----

// Initial values of out->seq, in arrays that end at an inaccessible page and in arrays that begin
// at one.
enum { UNWRITTEN_END = 0x7fc0dead, UNWRITTEN_BEGIN = 0x4640e6b7 };

// Results of a call, by the row's number in its set.
struct scores {
    uint32_t *seq; // [n] bits
    uint8_t *verdict, *failed;
    rlhf_status status;
    double seconds;
};

// Make space for n rows. Returns 0 if out of memory. Call scores_finish even then.
static int scores_init(struct scores *s, uint32_t n) {
    *s = (struct scores){calloc(n, sizeof *s->seq), calloc(n, 1), calloc(n, 1), RLHF_OK, 0};
    return s->seq && s->verdict && s->failed;
}

static void scores_finish(struct scores *s) {
    free(s->seq);
    free(s->verdict);
    free(s->failed);
}

struct call {
    struct rlhf__probe *probe;
    struct rlhf__row_call *rows;
    rlhf_status status;
    struct rlhf__error err;
};

static void *run_score(void *arg) {
    struct call *c = arg;
    struct rlhf__tails tails = {.n = 0};
    RLHF__LEND(rlhf_reward_in, &c->rows->in, c->probe->check->plugin->abi_minor, &tails);
    RLHF__LEND(rlhf_reward_out, &c->rows->out, c->probe->check->plugin->abi_minor, &tails);
    rlhf__probe_begin(c->probe, "score()");
    const rlhf_status st =
        c->probe->check->plugin->ops.reward.score(c->probe->self, &c->rows->in, &c->rows->out);
    rlhf__guard_kept(&tails, c->probe->check->log);
    c->status = rlhf__probe_end(c->probe, st, &c->err);
    return NULL;
}

// Writes which row of a set it is: its number in the file of --rows, or the beginning of the
// generated data row. Returns `out`.
static const char *name_row(const struct rlhf__check *c, const struct rlhf__row_set *set,
                            uint32_t row, char out[96]) {
    const size_t given = set->texts == RLHF__ROWS_PLAIN ? json_array_size(c->rows) : 0;
    char text[44], shown[60];
    if (given) {
        snprintf(out, 96, "row %zu of the given ones", row % given + 1);
        return out;
    }
    const uint32_t n = set->row[row].n_meta;
    snprintf(text, sizeof text, "%.*s%s", n < 40 ? (int)n : 40, n ? set->row[row].meta : "",
             n > 40 ? "..." : "");
    snprintf(out, 96, "row %u (%s)", row,
             n ? rlhf__printable(text, shown, sizeof shown) : "without a data row");
    return out;
}

// Reports as a fact that score() refused the rows, or marked some of them as failed, and which rows
// these are. Reports nothing if memory ran out or the call was cancelled, because score() may then
// fail. A kind of rows is reported once.
static void say_refused(struct rlhf__probe *t, const struct rlhf__row_set *set,
                        const struct call *call, const uint8_t *failed, const uint32_t *rows,
                        uint32_t n) {
    static const char *const kinds[] = {"", " with empty responses", " that are not valid UTF-8",
                                        " without data rows"};
    struct rlhf__child_log *log = t->check->log;
    const char *kind = kinds[set->texts];
    const char *why = call->status < 0 ? call->err.text : rlhf__probe_words(t);
    const char *hint = t->check->walled && rlhf__is_refusal(why) ? RLHF__CONFINED_HINT : "";
    uint32_t first = 0, some = 0;
    char name[96];
    while (first < n && !failed[first])
        first++;
    for (uint32_t i = 0; i < n; i++)
        some += failed[i] != 0;
    if (rlhf__probe_starved(t) || call->status == RLHF_E_NOMEM ||
        call->status == RLHF_E_CANCELLED || (call->status >= 0 && first == n))
        return;
    if (log->refused & (1u << set->texts)) return;
    log->refused |= 1u << set->texts;
    if (call->status < 0)
        rlhf__child_log_fact(log, "it refuses rows%s, so their scores are not tested: %s%s", kind,
                             why, hint);
    else
        rlhf__child_log_fact(log,
                             "score() marks %u of %u rows%s as failed, which are not compared; the "
                             "first is %s: %s%s",
                             some, n, kind, name_row(t->check, set, rows[first], name),
                             *why ? why : "it gives no reason", hint);
}

// Calls score() of an existing instance for n rows of the set; `rows` has their numbers. `side` is
// an enum rlhf__guard_side. If `elsewhere` is 1, calls score() on another thread, which [step]
// allows. Returns the status of score(). If score() refuses the rows, reports that as a fact.
static rlhf_status score(struct rlhf__probe *t, const struct rlhf__row_set *set,
                         const uint32_t *rows, uint32_t n, int32_t side, int elsewhere,
                         struct scores *to) {
    const uint32_t flags = t->check->plugin->ops.reward.flags;
    const uint32_t unwritten = side == RLHF__GUARD_END ? UNWRITTEN_END : UNWRITTEN_BEGIN;
    struct rlhf__row_call rows_call;
    struct call call = {.probe = t, .rows = &rows_call, .status = RLHF_E_NOMEM};
    pthread_t thread;
    if (rlhf__row_call_make(&rows_call, t->check->log, set, rows, n, side, flags, unwritten)) {
        const double from = rlhf__seconds();
        if (!elsewhere || pthread_create(&thread, NULL, run_score, &call) != 0)
            run_score(&call);
        else
            pthread_join(thread, NULL);
        to->seconds = rlhf__seconds() - from;
        for (uint32_t i = 0; i < n; i++) {
            memcpy(&to->seq[rows[i]], &rows_call.out.seq[i], sizeof *to->seq);
            to->verdict[rows[i]] = rows_call.out.verdict[i];
            to->failed[rows[i]] = rows_call.out.failed[i];
        }
        say_refused(t, set, &call, rows_call.out.failed, rows, n);
    }
    rlhf__row_call_finish(&rows_call);
    to->status = call.status;
    return call.status;
}

// Like score(), but with a new instance.
static rlhf_status score_afresh(struct rlhf__check *c, const struct rlhf__row_set *set,
                                const uint32_t *rows, uint32_t n, int32_t side, int elsewhere,
                                struct scores *to) {
    struct rlhf__probe t;
    struct rlhf__error err;
    rlhf_status st = rlhf__probe_init(c, NULL, 0, &t, &err);
    if (st == RLHF_OK) st = score(&t, set, rows, n, side, elsewhere, to);
    rlhf__probe_finish(&t);
    to->status = st;
    return st;
}

static float number_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

// Returns the index of the first row that both instances scored, but with different results.
// Returns n if all rows agree.
static uint32_t first_difference(const struct scores *a, const struct scores *b, uint32_t n) {
    uint32_t i = 0;
    while (i < n && (a->seq[i] == b->seq[i] || a->failed[i] || b->failed[i]))
        i++;
    return i;
}

// Returns 1 if all scores are equal. Otherwise reports the first difference as a violation of
// `rule` and returns 0. Example of a message, where `how` is "by a second instance": "row 3 has the
// score 1, and 2 by a second instance".
static int compare(struct rlhf__check *c, int32_t rule, const char *how, const struct scores *a,
                   const struct scores *b, uint32_t n) {
    const uint32_t i = first_difference(a, b, n);
    if (i < n)
        rlhf__child_log_found(c->log, rule, "row %u has the score %.9g, and %.9g %s", i,
                              (double)number_of(a->seq[i]), (double)number_of(b->seq[i]), how);
    return i == n;
}

// ---- the cases ----

// Returns 1 if the data rows suit the reward. If not, reports this once and returns 0.
static int rows_suit(struct rlhf__check *c, const struct rlhf__row_set *set) {
    const rlhf_reward_ops *ops = &c->plugin->ops.reward;
    struct rlhf__probe t;
    struct rlhf__error err;
    char name[96];
    int suit = 1;
    if (rlhf__probe_init(c, NULL, 0, &t, &err) < 0) suit = 0;
    for (uint32_t i = 0; suit && ops->check_row && i < set->n && i < 64; i++) {
        const struct rlhf__check_row *r = &set->row[i];
        rlhf_row_in row = {
            .index = i, .meta = {r->meta, r->n_meta}, .prompt = {r->prompt, r->n_prompt}};
        struct rlhf__tails tails = {.n = 0};
        RLHF__LEND(rlhf_row_in, &row, c->plugin->abi_minor, &tails);
        rlhf__probe_begin(&t, "check_row()");
        const rlhf_status st = ops->check_row(t.self, &row);
        rlhf__guard_kept(&tails, c->log);
        if (rlhf__probe_end(&t, st, &err) == RLHF_OK) continue;
        rlhf__child_log_fact(c->log, "it refuses %s: %s%s", name_row(c, set, i, name), err.text,
                             json_array_size(c->rows) ? "" : " (rows of your own: --rows FILE)");
        suit = 0;
    }
    rlhf__probe_finish(&t);
    return suit;
}

// Score the same rows twice, on two threads. The arrays of one call end at an inaccessible page.
// The arrays of the other call begin at such a page.
static void twice(struct rlhf__check *c, const struct rlhf__row_set *set, const uint32_t *rows,
                  struct scores *a, struct scores *b) {
    if (score_afresh(c, set, rows, set->n, RLHF__GUARD_END, 0, a) < 0) return;
    if (score_afresh(c, set, rows, set->n, RLHF__GUARD_BEGIN, 1, b) < 0) {
        rlhf__child_log_found(c->log, RLHF__CHECK_REPEAT,
                              "rows that were scored are refused the "
                              "second time");
        return;
    }
    for (uint32_t i = 0; i < set->n; i++) {
        if (a->seq[i] != UNWRITTEN_END || b->seq[i] != UNWRITTEN_BEGIN || a->failed[i]) continue;
        rlhf__child_log_found(c->log, RLHF__CHECK_UNWRITTEN,
                              "of %u rows, out->seq[%u] was not written", set->n, i);
        a->status = RLHF_E_INVALID; // these rows cannot be compared any further
        return;
    }
    for (uint32_t i = 0; i < set->n; i++)
        if (a->verdict[i] > RLHF_VERDICT_WRONG) {
            rlhf__child_log_found(c->log, RLHF__CHECK_VERDICT, "out->verdict[%u] is %d", i,
                                  a->verdict[i]);
            return;
        }
    if (!compare(c, RLHF__CHECK_REPEAT, "by a second instance", a, b, set->n))
        a->status = RLHF_E_INVALID;
}

// The user decides how to handle a score that is not finite (rewards.nan_policy). But such a score
// is rarely intended.
static void tell_not_finite(struct rlhf__check *c, const struct scores *a, uint32_t n) {
    uint32_t odd = 0;
    for (uint32_t i = 0; i < n; i++) {
        float x;
        memcpy(&x, &a->seq[i], sizeof x);
        odd += !isfinite(x) && !a->failed[i];
    }
    if (odd)
        rlhf__child_log_fact(
            c->log, "%s: %u %s a number that is not finite; rewards.nan_policy decides then",
            c->log->doing, odd, odd == 1 ? "row has" : "rows have");
}

// Scores the groups in another order, and one group at a time. If the reward allows it, also scores
// one row at a time. Skips a reward that compares groups with each other, because it needs all
// groups.
static void otherwise(struct rlhf__check *c, const struct rlhf__row_set *set, uint32_t *rows,
                      const struct scores *a, struct scores *b) {
    const uint32_t n = set->n;
    const int alone = (c->plugin->ops.reward.flags & RLHF_REWARD_ROW_ALONE) != 0;
    uint32_t at = 0;
    if (c->plugin->ops.reward.flags & RLHF_REWARD_WHOLE_BATCH) {
        rlhf__child_log_fact(c->log,
                             "it compares groups with each other "
                             "(RLHF_REWARD_WHOLE_BATCH), so they are always scored together");
        return;
    }
    for (uint32_t g = (n + 3) / 4; g-- > 0;)
        for (uint32_t i = 4 * g; i < n && i < 4 * g + 4; i++)
            rows[at++] = i;
    rlhf__child_log_doing(c->log, "score() of %u rows, the last group first", n);
    if (score_afresh(c, set, rows, n, RLHF__GUARD_END, 0, b) == RLHF_OK)
        compare(c, RLHF__CHECK_ORDER, "when the last group stands first", a, b, n);
    for (uint32_t i = 0; i < n; i++)
        rows[i] = i;
    for (uint32_t i = 0; i < n; i += 4) {
        rlhf__child_log_doing(c->log, "score() of rows %u to %u alone", i, i + 3);
        score_afresh(c, set, rows + i, n - i < 4 ? n - i : 4, RLHF__GUARD_END, 0, b);
    }
    compare(c, RLHF__CHECK_ORDER, "when its group is scored alone", a, b, n);
    for (uint32_t i = 0; alone && i < n; i++) {
        rlhf__child_log_doing(c->log, "score() of row %u alone", i);
        score_afresh(c, set, rows + i, 1, RLHF__GUARD_END, 0, b);
    }
    if (alone) compare(c, RLHF__CHECK_ALONE, "when it is scored alone", a, b, n);
}

// Returns how many rows the last step scores at once, at most MANY. A slow reward gets fewer, so
// that both calls end long before the time limit. Returns 0 if they would be hardly more than in
// the other steps.
static uint32_t how_many(struct rlhf__check *c) {
    struct rlhf__row_set set = {0};
    struct scores s = {0};
    uint32_t rows[FEW], n = MANY;
    for (uint32_t i = 0; i < FEW; i++)
        rows[i] = i;
    rlhf__child_log_doing(c->log, "score() of %d rows", FEW);
    if (rlhf__row_set_make(&set, FEW, RLHF__ROWS_PLAIN, c->rows) && scores_init(&s, FEW) &&
        rows_suit(c, &set) && score_afresh(c, &set, rows, FEW, RLHF__GUARD_END, 0, &s) == RLHF_OK) {
        const double most = share * c->seconds * FEW / (2 * s.seconds);
        if (most < MANY) n = most < 2 * FEW ? 0 : (uint32_t)most;
    }
    if (n == 0)
        rlhf__child_log_fact(c->log,
                             "score() takes %.3g ms a row, so a call with many rows was not tried",
                             1e3 * s.seconds / FEW);
    scores_finish(&s);
    rlhf__row_set_finish(&set);
    return n;
}

static int try_score(struct rlhf__check *c, int32_t step) {
    static const struct {
        uint32_t n;
        int32_t texts;
        const char *what;
    } forms[] = {{11, RLHF__ROWS_PLAIN, "rows of three groups"},
                 {1, RLHF__ROWS_PLAIN, "row"},
                 {4, RLHF__ROWS_EMPTY, "rows with empty responses"},
                 {16, RLHF__ROWS_INVALID, "rows of bytes that are not valid UTF-8"},
                 {4, RLHF__ROWS_BARE, "rows without data rows"},
                 {MANY, RLHF__ROWS_PLAIN, "rows"}};
    struct rlhf__row_set set = {0};
    struct scores a = {0}, b = {0};
    if (step >= (int32_t)(sizeof forms / sizeof *forms)) return 0;
    const int many = forms[step].n == MANY;
    const uint32_t n = many ? how_many(c) : forms[step].n;
    if (n == 0) return 1;
    uint32_t *rows = calloc(n, sizeof *rows);
    rlhf__child_log_doing(c->log, "score() of %u %s", n, forms[step].what);
    if (rows && rlhf__row_set_make(&set, n, forms[step].texts, c->rows) && scores_init(&a, n) &&
        scores_init(&b, n) && (forms[step].texts == RLHF__ROWS_BARE || rows_suit(c, &set))) {
        for (uint32_t i = 0; i < n; i++)
            rows[i] = i;
        twice(c, &set, rows, &a, &b);
        if (a.status == RLHF_OK) tell_not_finite(c, &a, n);
        if (a.status == RLHF_OK && step == 0) otherwise(c, &set, rows, &a, &b);
        if (a.status == RLHF_OK && many)
            rlhf__child_log_fact(c->log, "score() takes %.3g microseconds per row of %u",
                                 1e6 * (a.seconds < b.seconds ? a.seconds : b.seconds) / n, n);
    }
    scores_finish(&a);
    scores_finish(&b);
    rlhf__row_set_finish(&set);
    free(rows);
    return 1;
}

// Rows of a separate set, numbered from 0.
struct few {
    struct rlhf__row_set set;
    uint32_t row[16];
    struct scores first, then;
};

static int few_init(struct few *f, uint32_t n, const json_t *given) {
    *f = (struct few){0};
    for (uint32_t i = 0; i < n; i++)
        f->row[i] = i;
    return rlhf__row_set_make(&f->set, n, RLHF__ROWS_PLAIN, given) && scores_init(&f->first, n) &&
           scores_init(&f->then, n);
}

static void few_finish(struct few *f) {
    scores_finish(&f->first);
    scores_finish(&f->then);
    rlhf__row_set_finish(&f->set);
}

static rlhf_status score_few(struct rlhf__probe *t, struct few *f, struct scores *to) {
    return score(t, &f->set, f->row, f->set.n, RLHF__GUARD_END, 0, to);
}

// Checks that load() gives another instance everything that the scores depend on.
static void check_kept(struct rlhf__check *c, struct few *a, struct rlhf__state_buffer *kept) {
    struct rlhf__probe t;
    struct rlhf__error err;
    if (rlhf__probe_init(c, NULL, 0, &t, &err) == RLHF_OK &&
        rlhf__state_buffer_load(&t, kept, c->plugin->desc.state_version, &err) == RLHF_OK &&
        score_few(&t, a, &a->first) == RLHF_OK)
        compare(c, RLHF__CHECK_UNSAVED, "by an instance that load() gave what save() wrote",
                &a->then, &a->first, a->set.n);
    rlhf__probe_finish(&t);
}

// One instance scores some rows, then other rows, and then the first rows again. If the scores of
// the first rows have changed, the instance has state, which save() must write.
static void check_running(struct rlhf__check *c, struct few *a, struct few *b,
                          struct rlhf__state_buffer *kept) {
    const int saves = c->plugin->desc.state_version != 0;
    struct rlhf__probe t;
    struct rlhf__error err;
    int same = 1;
    // If two new instances score the rows differently, this is no sign of state. Another case
    // reports that as "repeat".
    if (score_afresh(c, &a->set, a->row, a->set.n, RLHF__GUARD_END, 0, &a->then) < 0) return;
    if (rlhf__probe_init(c, NULL, 0, &t, &err) == RLHF_OK &&
        score_few(&t, a, &a->first) == RLHF_OK &&
        first_difference(&a->first, &a->then, a->set.n) == a->set.n &&
        score_few(&t, b, &b->first) == RLHF_OK &&
        (!saves || rlhf__state_buffer_save(&t, kept, &err) == RLHF_OK) &&
        score_few(&t, a, &a->then) == RLHF_OK) {
        same = first_difference(&a->first, &a->then, a->set.n) == a->set.n;
        if (!saves)
            compare(c, RLHF__CHECK_UNSAVED,
                    "after other rows; that is a state, and without save(), load() "
                    "and a state_version a resumed run begins without it",
                    &a->first, &a->then, a->set.n);
    }
    rlhf__probe_finish(&t);
    if (saves && !same) check_kept(c, a, kept);
}

static int try_running(struct rlhf__check *c, int32_t step) {
    struct few a, b;
    struct rlhf__state_buffer kept;
    if (step > 0) return 0;
    rlhf__child_log_doing(c->log, "score() of 11 rows, of others, and of the first again");
    const int made = few_init(&a, 11, c->rows) & few_init(&b, 16, c->rows);
    if (rlhf__state_buffer_init(&kept) && made && rows_suit(c, &a.set) && rows_suit(c, &b.set))
        check_running(c, &a, &b, &kept);
    rlhf__state_buffer_finish(&kept);
    few_finish(&a);
    few_finish(&b);
    return 1;
}

// Let allocation `step` of a call fail. The instance must still work, and must give the same scores
// later.
static int try_score_memory(struct rlhf__check *c, int32_t step) {
    static const uint32_t rows[] = {0, 1, 2, 3};
    struct rlhf__row_set set = {0};
    struct scores a = {0};
    struct rlhf__probe t = {.check = c};
    struct rlhf__error err;
    int more = 0;
    if (step >= 200) return 0;
    rlhf__child_log_doing(c->log, "score() of 4 rows with no memory for allocation %d", step + 1);
    if (rlhf__row_set_make(&set, 4, RLHF__ROWS_PLAIN, c->rows) && scores_init(&a, 4) &&
        rows_suit(c, &set) && rlhf__probe_init(c, NULL, 0, &t, &err) == RLHF_OK) {
        const int64_t before = rlhf__probe_allocs(&t);
        rlhf__probe_fail_alloc(&t, step + 1);
        score(&t, &set, rows, 4, RLHF__GUARD_END, 0, &a);
        more = rlhf__probe_allocs(&t) - before > step;
    }
    rlhf__probe_finish(&t);
    scores_finish(&a);
    rlhf__row_set_finish(&set);
    return more;
}

const struct rlhf__check_case rlhf__reward_cases[] = {
    {"score", RLHF__CHECK_CRASH, 0, 0, try_score},
    {"running", RLHF__CHECK_CRASH, 0, 0, try_running},
    {"score-memory", RLHF__CHECK_MEMORY, 0, 0, try_score_memory},
    {NULL, 0, 0, 0, NULL},
};
