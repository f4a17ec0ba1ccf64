// test_policy_rows.c: rows of several turns. Counting, picking and joining rows take the author of
// each token into account. Also tests the layout in which algorithms see such rows.
#include "support/check.h"

#include "batch/diversity.h"
#include "batch/policy_rows.h"
#include "batch/shared_batch.h"

#include <rlhf/reward.h>

#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, TOTAL = 24 };

// One character per token. p: prompt; .: given; 0 or 1: sampled by the policy in that turn.
static const char *const who[ROWS] = {"ppp00..1", "ppp0.11.", "pp000", "ppp"};

static struct rlhf__rows make_rows(void) {
    struct rlhf__rows e = {0};
    uint32_t total = 0;
    for (int i = 0; i < ROWS; i++)
        total += (uint32_t)strlen(who[i]);
    assert_int_equal(total, TOTAL);
    assert_int_equal(rlhf__rows_init(&e, ROWS, total, NULL), RLHF_OK);
    assert_int_equal(rlhf__rows_add_turns(&e, NULL), RLHF_OK);
    for (int i = 0, t = 0; i < ROWS; i++) {
        e.prompt_len[i] = (int32_t)strspn(who[i], "p");
        e.group[i] = i / 2;
        e.end[i] = (uint8_t)(1 + i);
        for (const char *c = who[i]; *c; c++, t++) {
            e.ids[t] = *c == 'p' ? (int32_t)(c - who[i]) : 100 + t;
            if (*c != 'p' && *c != '.') e.turn[t] = *c - '0';
            e.token[RLHF__LOGP_OLD][t] = (float)-t;
        }
        e.offset[i + 1] = t;
    }
    return e;
}

static void counts(void **state) {
    (void)state;
    struct rlhf__rows e = make_rows();
    static const int64_t tokens[ROWS] = {3, 3, 3, 0};
    static const int32_t last[ROWS] = {7, 5, 2, 3}, ends[ROWS] = {8, 7, 5, 3};
    for (uint32_t i = 0; i < ROWS; i++) {
        int32_t end;
        assert_int_equal(rlhf__rows_response_tokens(&e, i, i + 1), tokens[i]);
        assert_int_equal(rlhf__rows_last_turn(&e, i, &end), last[i]);
        assert_int_equal(end, ends[i]);
    }
    // In row 0, the policy sampled tokens 3, 4 and 7.
    memset(e.token[RLHF__LOGP_REF], 0, TOTAL * sizeof(float));
    e.token[RLHF__LOGP_REF][4] = 0.5F;
    e.token[RLHF__LOGP_REF][5] = 9; // a given token
    const float *const old = e.token[RLHF__LOGP_OLD], *const ref = e.token[RLHF__LOGP_REF];
    assert_true(rlhf__rows_response_sum(&e, 0, old, NULL) == -14);
    assert_true(rlhf__rows_response_sum(&e, 0, old, ref) == -14.5);
    assert_true(rlhf__rows_response_sum(&e, 3, old, NULL) == 0);
    assert_int_equal(rlhf__rows_response_tokens(&e, 0, ROWS), 9);
    assert_int_equal(rlhf__rows_response_tokens(&e, 1, 1), 0);
    // Marking a given token as left out does not reduce the count.
    assert_int_equal(RLHF__ROWS_ADD(&e, left_out, NULL), RLHF_OK);
    e.left_out[3] = e.left_out[5] = 1;
    assert_int_equal(rlhf__rows_loss_tokens(&e, 0, ROWS), 8);
    rlhf__rows_finish(&e);
}

// 3-grams do not cross turns, so only row 2 has one.
static void repeats_within_turns(void **state) {
    (void)state;
    struct rlhf__rows e = make_rows();
    double distinct = 0;
    for (int32_t t = 0; t < TOTAL; t++)
        e.ids[t] = 7;
    assert_int_equal(rlhf__rows_distinct3(&e, &distinct, NULL), RLHF_OK);
    assert_true(distinct >= 1 && distinct <= 1);
    free(e.turn);
    e.turn = NULL; // with one turn there are 3 + 3 + 1 n-grams, all the same
    assert_int_equal(rlhf__rows_distinct3(&e, &distinct, NULL), RLHF_OK);
    assert_true(distinct > 0.14 && distinct < 0.15);
    rlhf__rows_finish(&e);
}

// ---- turns go with the rows ----

static void same_row(const struct rlhf__rows *a, uint32_t i, const struct rlhf__rows *b,
                     uint32_t k) {
    const size_t len = (size_t)(a->offset[i + 1] - a->offset[i]);
    assert_int_equal(b->offset[k + 1] - b->offset[k], len);
    assert_memory_equal(a->turn + a->offset[i], b->turn + b->offset[k], len * sizeof *a->turn);
    assert_int_equal(a->end[i], b->end[k]);
}

static void picked(void **state) {
    (void)state;
    struct rlhf__rows e = make_rows(), part = {0};
    const uint32_t pick[] = {2, 0, 1};
    assert_int_equal(rlhf__rows_add_support(&e, 40, NULL), RLHF_OK);
    for (uint32_t k = 0; k < 9 * e.support_words; k++)
        e.support[k] = k;
    assert_int_equal(rlhf__rows_pick(&part, &e, pick, 3, NULL), RLHF_OK);
    for (uint32_t k = 0; k < 3; k++)
        same_row(&e, pick[k], &part, k);
    // Each token keeps its own support. The tokens of row 2 were the seventh to ninth of the batch.
    assert_int_equal(part.support[0], 6 * e.support_words);
    assert_int_equal(part.support[3 * e.support_words], 0);
    rlhf__rows_finish(&part);
    rlhf__rows_finish(&e);
}

// If rows of one turn are joined to others, their turn is 0.
static void joined(void **state) {
    (void)state;
    struct rlhf__rows e = make_rows(), plain = make_rows(), all = {0};
    free(plain.turn);
    free(plain.end);
    plain.turn = NULL;
    plain.end = NULL;
    assert_int_equal(rlhf__rows_join(&all, &e, &plain, NULL), RLHF_OK);
    for (uint32_t k = 0; k < ROWS; k++)
        same_row(&e, k, &all, k);
    for (int32_t t = 0; t < TOTAL; t++)
        assert_int_equal(all.turn[TOTAL + t], plain.ids[t] < 100 ? -1 : 0);
    assert_int_equal(all.end[ROWS], RLHF_EPISODE_OPEN);
    assert_int_equal(rlhf__rows_response_tokens(&all, ROWS, 2 * ROWS), 13);
    rlhf__rows_finish(&all);
    rlhf__rows_finish(&plain);
    rlhf__rows_finish(&e);
}

// Rows 0 and 1 share the prompt "ppp". The first two of its tokens are stored once, as a prefix.
static void shared_prompts(void **state) {
    (void)state;
    struct rlhf__rows e = make_rows();
    struct rlhf__shared_batch b = {0};
    static const int32_t turn[] = {-1, -1, -1, 0, 0, -1, -1, 1, -1, 0, -1, 1, 1, -1};
    e.flags = RLHF__SHARE_PROMPTS;
    assert_int_equal(rlhf__shared_batch_fill(&b, &e, 0, 2, 1, NULL), RLHF_OK);
    assert_true(b.is_shared);
    assert_ptr_equal(b.full.turn, e.turn);
    assert_int_equal(b.compact.total, sizeof turn / sizeof *turn);
    assert_memory_equal(b.compact.turn, turn, sizeof turn);
    rlhf__shared_batch_finish(&b);
    assert_int_equal(rlhf__shared_batch_fill(&b, &e, 1, 3, 0, NULL), RLHF_OK);
    assert_ptr_equal(b.compact.turn, e.turn + e.offset[1]);
    rlhf__shared_batch_finish(&b);
    rlhf__rows_finish(&e);
}

// ---- the policy's tokens ----

static void laid_out(void **state) {
    (void)state;
    struct rlhf__rows e = make_rows();
    struct rlhf__policy_rows p = {0};
    static const int32_t at[] = {0, 1, 2, 3, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    static const int32_t offset[] = {0, 6, 11, 14};
    float full[TOTAL];
    uint8_t marks[TOTAL] = {0};
    assert_int_equal(rlhf__policy_rows_fill(&p, &e, 1, 4, sizeof(float) + 1, NULL), RLHF_OK);
    assert_int_equal(p.n, 3);
    assert_int_equal(p.total, sizeof at / sizeof *at);
    assert_memory_equal(p.at, at, sizeof at);
    assert_memory_equal(p.offset, offset, sizeof offset);
    float *own = rlhf__policy_rows_take(&p, e.token[RLHF__LOGP_OLD] + e.offset[1], sizeof(float));
    marks[5] = 9;
    const uint8_t *bytes = rlhf__policy_rows_take(&p, marks, 1);
    assert_non_null(own);
    assert_non_null(bytes);
    assert_null(rlhf__policy_rows_take(&p, NULL, 1));
    for (uint32_t k = 0; k < p.total; k++) {
        const float want = (float)-(e.offset[1] + at[k]);
        assert_memory_equal(&own[k], &want, sizeof want);
        assert_int_equal(bytes[k], at[k] == 5 ? 9 : 0);
        own[k] = (float)k + 1;
    }
    memset(full, 0, sizeof full);
    rlhf__policy_rows_put(&p, full, own, sizeof *own);
    for (int32_t t = 0, k = 0; t < 16; t++) {
        const float want = at[k] == t ? (float)k + 1 : 0;
        assert_memory_equal(&full[t], &want, sizeof want);
        k += at[k] == t;
    }
    rlhf__policy_rows_put(&p, NULL, own, sizeof *own);
    rlhf__policy_rows_put(&p, full, NULL, sizeof *own);
    rlhf__policy_rows_finish(&p);
    rlhf__rows_finish(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),         cmocka_unit_test(repeats_within_turns),
        cmocka_unit_test(picked),         cmocka_unit_test(joined),
        cmocka_unit_test(shared_prompts), cmocka_unit_test(laid_out)};
    return cmocka_run_group_tests_name("policy_rows", tests, NULL, NULL);
}
