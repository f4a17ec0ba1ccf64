// test_agree.c: at barriers (agree.h), ranks agree on four things: failures, the barrier at which
// they are, the number of bytes they send, and that they do the same run. Also tests the sums of
// algorithms.
#include "support/check.h"
#include "support/team_threads.h"
#include "team/agree.h"
#include "team/identity.h"
#include "team/parts.h"
#include "team/reduce.h"

#include <stdio.h>
#include <string.h>

enum { RANKS = 3 };

struct seen {
    int what; // enum what
    rlhf_status status, second;
    struct rlhf__error err;
    double sum[4];
    char parts[64];
    int32_t left, saves;
};

enum what { FINE, ONE_FAILS, ALL_FAIL, DOORS, NUMBERS, REDUCE, PARTS, SAME, OTHER };

static rlhf_status send_parts(struct team_thread *t, struct seen *s) {
    struct rlhf__buf own = RLHF__BUF_INIT;
    struct rlhf__parts parts = {0};
    for (int32_t i = 0; i <= t->team.rank; i++)
        rlhf__buf_printf(&own, "%d", t->team.rank);
    rlhf_status st =
        rlhf__parts_exchange(&t->team, RLHF__BARRIER_ROLLOUT, 7, &own, RLHF_OK, &parts, &s->err);
    char *to = s->parts;
    for (int32_t k = 0; st == RLHF_OK && k < RANKS; k++) {
        struct rlhf__part p = rlhf__part_of(&parts, k);
        const size_t n = (size_t)(p.end - p.at);
        st = rlhf__part_get(&p, to, n, &s->err);
        to += n;
        *to++ = '|';
        if (st == RLHF_OK && rlhf__part_get(&p, to, 1, &s->err) == RLHF_OK) st = RLHF_E_INTERNAL;
    }
    rlhf__parts_finish(&parts);
    rlhf__buf_finish(&own);
    return st;
}

static rlhf_status compare(struct team_thread *t, struct seen *s, int other) {
    json_t *own = json_pack("{s:{s:i, s:s}, s:[i, i]}", "settings", "size", 8, "name",
                            other && t->team.rank == 2 ? "b" : "a", "list", 1, 2);
    const rlhf_status st = rlhf__team_same(&t->team, own, &s->err);
    json_decref(own);
    return st;
}

static void *meet(struct team_thread *t) {
    struct seen *s = t->arg;
    const int odd = t->team.rank == 1;
    struct rlhf__wish wish = {.save = t->team.rank == 0 ? 2 : 1, .same = 5};
    rlhf_status st = RLHF_OK;
    s->status = rlhf__team_agree(&t->team, RLHF__BARRIER_PASS, &wish, RLHF_OK, &s->err);
    if (s->what == ALL_FAIL || (s->what == ONE_FAILS && odd))
        st = rlhf__fail(&s->err, RLHF_E_IO, "no such file");
    if (s->what == NUMBERS && odd) wish.same = 6;
    if (s->what <= NUMBERS)
        s->status = rlhf__team_agree(
            &t->team, s->what == DOORS && odd ? RLHF__BARRIER_MINIBATCH : RLHF__BARRIER_PASS, &wish,
            st, &s->err);
    if (s->what == REDUCE) {
        const double own[4] = {t->team.rank == 2 ? -0.0 : 0.0, odd ? 0.1 : 0, 1e16 * odd + 1,
                               t->team.rank};
        memcpy(s->sum, own, sizeof own);
        s->status = rlhf__team_reduce(&t->team, s->sum, 4, &s->err);
    }
    if (s->what == PARTS) s->status = send_parts(t, s);
    if (s->what >= SAME) s->status = compare(t, s, s->what == OTHER);
    s->left = t->team.left;
    s->saves = t->team.saves;
    // After all ranks have agreed on a failure, they do not come to further barriers.
    s->second = s->left ? rlhf__team_agree(&t->team, RLHF__BARRIER_END, NULL, s->status, NULL) : 0;
    return NULL;
}

static void run(enum what what, struct seen seen[RANKS]) {
    void *arg[RANKS];
    memset(seen, 0, RANKS * sizeof *seen);
    for (int k = 0; k < RANKS; k++) {
        seen[k].what = (int)what;
        arg[k] = &seen[k];
    }
    team_threads_run(RANKS, meet, arg);
}

// Asserts that all ranks have this status and a message that contains `text`.
static void all_have(enum what what, rlhf_status status, const char *text) {
    struct seen seen[RANKS];
    run(what, seen);
    for (int k = 0; k < RANKS; k++) {
        assert_int_equal(seen[k].status, status);
        assert_int_equal(seen[k].left, 1);
        assert_int_equal(seen[k].second, status);
        if (!strstr(seen[k].err.text, text)) fail_msg("rank %d: %s", k, seen[k].err.text);
    }
}

static void test_fine(void **state) {
    struct seen seen[RANKS];
    (void)state;
    run(FINE, seen);
    for (int k = 0; k < RANKS; k++) {
        assert_int_equal(seen[k].status, RLHF_OK);
        assert_int_equal(seen[k].left, 0);
        assert_int_equal(seen[k].saves, 2); // rank 0 requested this
    }
}

static void test_failures(void **state) {
    struct seen seen[RANKS];
    (void)state;
    all_have(ONE_FAILS, RLHF_E_IO, "rank 1 on ");
    all_have(ONE_FAILS, RLHF_E_IO, ": no such file");
    all_have(ALL_FAIL, RLHF_E_IO, "no such file");
    run(ALL_FAIL, seen);
    assert_string_equal(seen[2].err.text, "no such file"); // a shared error does not name a rank
    all_have(DOORS, RLHF_E_INTERNAL, "is at a forward pass (barrier 1), rank 1 on ");
    all_have(NUMBERS, RLHF_E_INTERNAL, "has 5, rank 1 on ");
}

static void test_reduce(void **state) {
    struct seen seen[RANKS];
    (void)state;
    run(REDUCE, seen);
    for (int k = 0; k < RANKS; k++) {
        const double minus_zero = -0.0, tenth = 0.1, ordered = 1 + (1e16 + 1) + 1;
        assert_int_equal(seen[k].status, RLHF_OK);
        assert_memory_equal(&seen[k].sum[0], &minus_zero, sizeof minus_zero);
        assert_memory_equal(&seen[k].sum[1], &tenth, sizeof tenth);
        assert_memory_equal(&seen[k].sum[2], &ordered, sizeof ordered);
        assert_true(seen[k].sum[3] == 3);
    }
}

static void test_parts(void **state) {
    struct seen seen[RANKS];
    (void)state;
    run(PARTS, seen);
    for (int k = 0; k < RANKS; k++) {
        assert_int_equal(seen[k].status, RLHF_OK);
        assert_string_equal(seen[k].parts, "0|11|222|");
    }
}

static void test_identity(void **state) {
    struct seen seen[RANKS];
    (void)state;
    run(SAME, seen);
    for (int k = 0; k < RANKS; k++)
        assert_int_equal(seen[k].status, RLHF_OK);
    all_have(OTHER, RLHF_E_INVALID, "settings.name is \"a\" for rank 0 on ");
    all_have(OTHER, RLHF_E_INVALID, " and \"b\" for rank 2 on ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fine),     cmocka_unit_test(test_failures),
        cmocka_unit_test(test_reduce),   cmocka_unit_test(test_parts),
        cmocka_unit_test(test_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
