// reward.c: what the contract says of rewards, with rows of every form.
#include "check/cases.h"

#include "base/clock.h"
#include "check/reward_rows.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MANY = 10000, UNWRITTEN_A = 0x7fc0dead, UNWRITTEN_B = 0x4640e6b7 };

// What a call gave, by the number of the row in its set.
struct scores {
    uint32_t *seq; // [n] bits
    uint8_t *verdict, *failed;
    rlhf_status status;
    int32_t reserved;
    double seconds;
};

static int scores_init(struct scores *s, uint32_t n) {
    *s = (struct scores){calloc(n, sizeof *s->seq), calloc(n, 1), calloc(n, 1), RLHF_OK, 0, 0};
    return s->seq && s->verdict && s->failed;
}

static void scores_finish(struct scores *s) {
    free(s->seq);
    free(s->verdict);
    free(s->failed);
}

struct call {
    struct rlhf__watched *watched;
    struct rlhf__row_call *rows;
    rlhf_status status;
    int32_t reserved;
    struct rlhf__error err;
};

static void *run_score(void *arg) {
    struct call *c = arg;
    rlhf__watched_begin(c->watched, "score()");
    const rlhf_status st =
        c->watched->check->plugin->ops.reward.score(c->watched->self, &c->rows->in, &c->rows->out);
    c->status = rlhf__watched_end(c->watched, st, &c->err);
    return NULL;
}

// One call on an instance that is there. elsewhere: from another thread, which [step] allows.
static rlhf_status score(struct rlhf__watched *t, const struct rlhf__row_set *set,
                         const uint32_t *rows, uint32_t n, int32_t side, int elsewhere,
                         struct scores *to) {
    const int per_token = (t->check->plugin->ops.reward.flags & RLHF_REWARD_PER_TOKEN) != 0;
    const uint32_t unwritten = side == RLHF__GUARD_END ? UNWRITTEN_A : UNWRITTEN_B;
    struct rlhf__row_call rows_call;
    struct call call = {.watched = t, .rows = &rows_call, .status = RLHF_E_NOMEM};
    pthread_t thread;
    if (rlhf__row_call_make(&rows_call, t->check->board, set, rows, n, side, per_token,
                            unwritten)) {
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
    }
    rlhf__row_call_finish(&rows_call);
    to->status = call.status;
    if (call.status < 0 && call.status != RLHF_E_NOMEM)
        rlhf__board_fact(t->check->board, "it refused rows: %s", call.err.text);
    return call.status;
}

// The same with an instance of its own.
static rlhf_status score_afresh(struct rlhf__check *c, const struct rlhf__row_set *set,
                                const uint32_t *rows, uint32_t n, int32_t side, int elsewhere,
                                struct scores *to) {
    struct rlhf__watched t;
    struct rlhf__error err;
    rlhf_status st = rlhf__watched_create(c, NULL, 0, &t, &err);
    if (st == RLHF_OK) st = score(&t, set, rows, n, side, elsewhere, to);
    rlhf__watched_finish(&t);
    to->status = st;
    return st;
}

static float number_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

// 1 when both are the same.
static int compare(struct rlhf__check *c, int32_t rule, const char *how, const struct scores *a,
                   const struct scores *b, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (a->seq[i] == b->seq[i] || a->failed[i] || b->failed[i]) continue;
        rlhf__board_found(c->board, rule, "row %u is paid %.9g, and %.9g %s", i,
                          (double)number_of(a->seq[i]), (double)number_of(b->seq[i]), how);
        return 0;
    }
    return 1;
}

// 1 when the data rows suit the reward; said once, when they do not.
static int rows_suit(struct rlhf__check *c, const struct rlhf__row_set *set) {
    const rlhf_reward_ops *ops = &c->plugin->ops.reward;
    struct rlhf__watched t;
    struct rlhf__error err;
    int suit = 1;
    if (rlhf__watched_create(c, NULL, 0, &t, &err) < 0) suit = 0;
    for (uint32_t i = 0; suit && ops->check_row && i < set->n && i < 64; i++) {
        const rlhf_str row = {set->row[i].meta, set->row[i].n_meta};
        rlhf__watched_begin(&t, "check_row()");
        if (rlhf__watched_end(&t, ops->check_row(t.self, row), &err) == RLHF_OK) continue;
        rlhf__board_fact(c->board, "it refuses data rows: %s (rows of your own: --rows FILE)",
                         err.text);
        suit = 0;
    }
    rlhf__watched_finish(&t);
    return suit;
}

// Twice with the same rows: on two threads, with arrays that end and that begin at a closed page.
static void twice(struct rlhf__check *c, const struct rlhf__row_set *set, const uint32_t *rows,
                  struct scores *a, struct scores *b) {
    if (score_afresh(c, set, rows, set->n, RLHF__GUARD_END, 0, a) < 0) return;
    if (score_afresh(c, set, rows, set->n, RLHF__GUARD_BEGIN, 1, b) < 0) {
        rlhf__board_found(c->board, RLHF__CHECK_REPEAT,
                          "rows that were scored are refused the "
                          "second time");
        return;
    }
    for (uint32_t i = 0; i < set->n; i++) {
        if (a->seq[i] != UNWRITTEN_A || b->seq[i] != UNWRITTEN_B || a->failed[i]) continue;
        rlhf__board_found(c->board, RLHF__CHECK_UNWRITTEN,
                          "of %u rows, out->seq[%u] was not written", set->n, i);
        a->status = RLHF_E_INVALID; // nothing more is to be learned of these
        return;
    }
    for (uint32_t i = 0; i < set->n; i++)
        if (a->verdict[i] > RLHF_VERDICT_WRONG) {
            rlhf__board_found(c->board, RLHF__CHECK_VERDICT, "out->verdict[%u] is %d", i,
                              a->verdict[i]);
            return;
        }
    if (!compare(c, RLHF__CHECK_REPEAT, "by a second instance", a, b, set->n))
        a->status = RLHF_E_INVALID;
}

// In another order of groups, a group at a time and, where the reward says so, a row at a time.
static void otherwise(struct rlhf__check *c, const struct rlhf__row_set *set, uint32_t *rows,
                      const struct scores *a, struct scores *b) {
    const uint32_t n = set->n;
    const int alone = (c->plugin->ops.reward.flags & RLHF_REWARD_ROW_ALONE) != 0;
    uint32_t at = 0;
    for (uint32_t g = (n + 3) / 4; g-- > 0;)
        for (uint32_t i = 4 * g; i < n && i < 4 * g + 4; i++)
            rows[at++] = i;
    rlhf__board_doing(c->board, "score() of %u rows, the last group first", n);
    if (score_afresh(c, set, rows, n, RLHF__GUARD_END, 0, b) == RLHF_OK)
        compare(c, RLHF__CHECK_ORDER, "when the last group stands first", a, b, n);
    for (uint32_t i = 0; i < n; i++)
        rows[i] = i;
    for (uint32_t i = 0; i < n; i += 4) {
        rlhf__board_doing(c->board, "score() of rows %u to %u alone", i, i + 3);
        score_afresh(c, set, rows + i, n - i < 4 ? n - i : 4, RLHF__GUARD_END, 0, b);
    }
    compare(c, RLHF__CHECK_ORDER, "when its group is scored alone", a, b, n);
    for (uint32_t i = 0; alone && i < n; i++) {
        rlhf__board_doing(c->board, "score() of row %u alone", i);
        score_afresh(c, set, rows + i, 1, RLHF__GUARD_END, 0, b);
    }
    if (alone) compare(c, RLHF__CHECK_ALONE, "when it is scored alone", a, b, n);
}

static int try_score(struct rlhf__check *c, int32_t step) {
    static const struct {
        uint32_t n;
        int32_t texts;
        const char *what;
    } forms[] = {{11, RLHF__ROWS_PLAIN, "rows of three groups"},
                 {1, RLHF__ROWS_PLAIN, "row"},
                 {4, RLHF__ROWS_EMPTY, "rows with empty responses"},
                 {16, RLHF__ROWS_INVALID, "rows of bytes that are no UTF-8"},
                 {4, RLHF__ROWS_BARE, "rows without data rows"},
                 {MANY, RLHF__ROWS_PLAIN, "rows"}};
    struct rlhf__row_set set = {0};
    struct scores a = {0}, b = {0};
    if (step >= (int32_t)(sizeof forms / sizeof *forms)) return 0;
    const uint32_t n = forms[step].n;
    uint32_t *rows = calloc(n, sizeof *rows);
    rlhf__board_doing(c->board, "score() of %u %s", n, forms[step].what);
    if (rows && rlhf__row_set_make(&set, n, forms[step].texts, c->rows) && scores_init(&a, n) &&
        scores_init(&b, n) && (forms[step].texts == RLHF__ROWS_BARE || rows_suit(c, &set))) {
        for (uint32_t i = 0; i < n; i++)
            rows[i] = i;
        twice(c, &set, rows, &a, &b);
        if (a.status == RLHF_OK && step == 0) otherwise(c, &set, rows, &a, &b);
        if (a.status == RLHF_OK && n == MANY)
            rlhf__board_fact(c->board, "score() takes %.3g microseconds a row of 10000",
                             1e6 * (a.seconds < b.seconds ? a.seconds : b.seconds) / MANY);
    }
    scores_finish(&a);
    scores_finish(&b);
    rlhf__row_set_finish(&set);
    free(rows);
    return 1;
}

// No memory for allocation `step` of a call; the instance must live on, and give the same later.
static int try_score_memory(struct rlhf__check *c, int32_t step) {
    static const uint32_t rows[] = {0, 1, 2, 3};
    struct rlhf__row_set set = {0};
    struct scores a = {0};
    struct rlhf__watched t = {.check = c};
    struct rlhf__error err;
    int more = 0;
    if (step >= 200) return 0;
    rlhf__board_doing(c->board, "score() of 4 rows with no memory for allocation %d", step + 1);
    if (rlhf__row_set_make(&set, 4, RLHF__ROWS_PLAIN, c->rows) && scores_init(&a, 4) &&
        rows_suit(c, &set) && rlhf__watched_create(c, NULL, 0, &t, &err) == RLHF_OK) {
        const int64_t before = rlhf__watched_allocs(&t);
        rlhf__watched_fail_alloc(&t, step + 1);
        score(&t, &set, rows, 4, RLHF__GUARD_END, 0, &a);
        more = rlhf__watched_allocs(&t) - before > step;
    }
    rlhf__watched_finish(&t);
    scores_finish(&a);
    rlhf__row_set_finish(&set);
    return more;
}

const struct rlhf__check_case rlhf__reward_cases[] = {
    {"score", RLHF__CHECK_CRASH, 0, try_score},
    {"score-memory", RLHF__CHECK_MEMORY, 0, try_score_memory},
    {NULL, 0, 0, NULL},
};
