// test_shared_batch.c: converts rows of a group between two layouts. In the compact layout, which
// the model gets, rows share their prompt. In the other layout, every row is complete. Also tests
// slices of such rows.
#include "support/check.h"

#include "batch/shared_batch.h"

#include <string.h>

#define ROWS 8

// prompt | response, group:
//   0: 1 2 3 4 | 10 11   0
//   1: 1 2 3 4 | 12      0
//   2: 1 2 3 4 |         0   no response at all
//   3: 1 2 3 4 | 13 14   1   the same prompt, another group
//   4: 5       | 15      2   a prompt of one token
//   5: 5       | 16 17   2
//   6: 6 7     | 18      3
//   7: 6 7     | 19 20   3
static const int32_t rows[ROWS][2] = {{4, 2}, {4, 1}, {4, 0}, {4, 2},
                                      {1, 1}, {1, 2}, {2, 1}, {2, 2}};
static const int32_t groups[ROWS] = {0, 0, 0, 1, 2, 2, 3, 3};
static const int32_t first_id[ROWS] = {1, 1, 1, 1, 5, 5, 6, 6};

static struct rlhf__rows make_rows(uint32_t flags) {
    struct rlhf__rows e = {0};
    uint32_t total = 0;
    int32_t next = 10;
    for (int i = 0; i < ROWS; i++)
        total += (uint32_t)(rows[i][0] + rows[i][1]);
    assert_int_equal(rlhf__rows_init(&e, ROWS, total, NULL), RLHF_OK);
    for (int i = 0; i < ROWS; i++) {
        int32_t at = e.offset[i];
        for (int32_t k = 0; k < rows[i][0]; k++)
            e.ids[at + k] = first_id[i] + k;
        for (int32_t k = 0; k < rows[i][1]; k++)
            e.ids[at + rows[i][0] + k] = next++;
        e.prompt_len[i] = rows[i][0];
        e.group[i] = groups[i];
        e.offset[i + 1] = at + rows[i][0] + rows[i][1];
    }
    e.flags = flags;
    return e;
}

static void a_prompt_stands_once(void **state) {
    (void)state;
    struct rlhf__rows e = make_rows(RLHF__SHARE_PROMPTS);
    struct rlhf__shared_batch b = {0};
    assert_int_equal(rlhf__shared_batch_fill(&b, &e, 0, ROWS, 1, NULL), RLHF_OK);
    static const int32_t ids[] = {1,  2,  3, 4,  10, 11, 4,  12, 4, 1,  2, 3,  4,
                                  13, 14, 5, 15, 5,  16, 17, 6,  7, 18, 7, 19, 20};
    static const int32_t offset[] = {0, 3, 6, 8, 9, 15, 17, 20, 21, 23, 26};
    static const int32_t prompt_len[] = {3, 1, 1, 1, 4, 1, 1, 1, 1, 1};
    static const int32_t prefix[] = {-1, 0, 0, 0, -1, -1, -1, -1, 7, 7};
    assert_int_equal(b.is_shared, 1);
    assert_int_equal(b.compact.n, 10);
    assert_int_equal(b.compact.total, 26);
    assert_memory_equal(b.compact.ids, ids, sizeof ids);
    assert_memory_equal(b.compact.offset, offset, sizeof offset);
    assert_memory_equal(b.compact.prompt_len, prompt_len, sizeof prompt_len);
    assert_memory_equal(b.compact.prefix, prefix, sizeof prefix);
    assert_int_equal(b.full.n, ROWS);
    assert_int_equal(b.full.total, e.total);
    assert_null(b.full.prefix);
    rlhf__shared_batch_finish(&b);
    rlhf__rows_finish(&e);
}

static void nothing_to_share(void **state) {
    (void)state;
    struct rlhf__rows e = make_rows(RLHF__SHARE_PROMPTS);
    struct rlhf__shared_batch b = {0};
    // In rows 2 to 5, no prompt is shared. The first two groups have only one row each in this
    // range, and the other two rows have prompts of one token.
    assert_int_equal(rlhf__shared_batch_fill(&b, &e, 2, 6, 1, NULL), RLHF_OK);
    assert_int_equal(b.is_shared, 0);
    assert_ptr_equal(b.compact.ids, e.ids + e.offset[2]);
    assert_null(b.compact.prefix);
    assert_int_equal(rlhf__shared_batch_fill(&b, &e, 0, ROWS, 0, NULL), RLHF_OK);
    assert_int_equal(b.is_shared, 0);
    assert_int_equal(b.compact.n, ROWS);
    // A prompt that differs in its first token is a separate prompt.
    e.ids[0] = 9;
    assert_int_equal(rlhf__shared_batch_fill(&b, &e, 0, 2, 1, NULL), RLHF_OK);
    assert_int_equal(b.is_shared, 0);
    rlhf__shared_batch_finish(&b);
    rlhf__rows_finish(&e);
}

// Numbers that depend only on a token and the tokens before it survive both conversions.
static void numbers_move_between_the_layouts(void **state) {
    (void)state;
    struct rlhf__rows e = make_rows(RLHF__SHARE_PROMPTS);
    struct rlhf__shared_batch b = {0};
    float full[80] = {0}, compact[80] = {0}, back[80] = {0};
    assert_int_equal(rlhf__shared_batch_fill(&b, &e, 0, ROWS, 1, NULL), RLHF_OK);
    for (uint32_t t = 0; t < b.compact.total; t++) {
        compact[2 * t] = (float)b.compact.ids[t];
        compact[2 * t + 1] = -(float)b.compact.ids[t];
    }
    rlhf__shared_batch_expand(&b, full, compact, 2);
    for (uint32_t t = 0; t < e.total; t++) {
        assert_true(full[2 * t] == (float)e.ids[t]);
        assert_true(full[2 * t + 1] == -(float)e.ids[t]);
    }
    rlhf__shared_batch_contract(&b, back, full, 2);
    assert_memory_equal(back, compact, sizeof back);
    // All heads that exist in both layouts.
    float logp[40] = {0}, value[40] = {0}, score[40] = {0}, clogp[40] = {0}, cvalue[40] = {0};
    rlhf_heads f = {.size = sizeof f, .logp = logp, .value = value, .token_score = score};
    rlhf_heads c = {.size = sizeof c, .logp = clogp, .value = cvalue};
    for (uint32_t t = 0; t < b.compact.total; t++) {
        clogp[t] = compact[2 * t];
        cvalue[t] = 100 + compact[2 * t];
    }
    rlhf__shared_heads_expand(&b, &f, &c);
    for (uint32_t t = 0; t < e.total; t++)
        assert_true(logp[t] == (float)e.ids[t] && value[t] == 100 + logp[t] && score[t] == 0);
    memset(cvalue, 0, sizeof cvalue);
    rlhf__shared_heads_contract(&b, &c, &f);
    for (uint32_t t = 0; t < b.compact.total; t++)
        assert_true(cvalue[t] == 100 + compact[2 * t]);
    rlhf__shared_batch_finish(&b);
    rlhf__rows_finish(&e);
}

static void slices_count_what_the_model_computes(void **state) {
    (void)state;
    struct rlhf__rows e = make_rows(RLHF__SHARE_PROMPTS);
    // In the compact layout, row 0 costs 6 tokens, row 1 two more, row 2 one more, and row 3 six
    // more.
    assert_int_equal(rlhf__rows_slice_end(&e, 0, 9, 1), 3);
    assert_int_equal(rlhf__rows_slice_end(&e, 0, 8, 1), 2);
    assert_int_equal(rlhf__rows_slice_end(&e, 0, 15, 1), 4);
    assert_int_equal(rlhf__rows_slice_end(&e, 0, 11, 0), 2);
    // A slice that begins with row 1 must include the prompt. So in this slice, row 1 costs 5
    // tokens and row 2 one more.
    assert_int_equal(rlhf__rows_slice_end(&e, 1, 5, 1), 2);
    assert_int_equal(rlhf__rows_slice_end(&e, 1, 6, 1), 3);
    for (int64_t max = 1; max < 40; max++)
        for (uint32_t from = 0; from < ROWS; from++) {
            struct rlhf__shared_batch b = {0};
            uint32_t to = rlhf__rows_slice_end(&e, from, max, 1);
            assert_int_equal(rlhf__shared_batch_fill(&b, &e, from, to, 1, NULL), RLHF_OK);
            assert_true(b.compact.total <= max || to == from + 1);
            if (to < ROWS) {
                assert_int_equal(rlhf__shared_batch_fill(&b, &e, from, to + 1, 1, NULL), RLHF_OK);
                assert_true(b.compact.total > max);
            }
            rlhf__shared_batch_finish(&b);
        }
    rlhf__rows_finish(&e);
}

static void whole_groups_are_not_split(void **state) {
    (void)state;
    struct rlhf__rows e = make_rows(RLHF__WHOLE_GROUPS);
    assert_int_equal(rlhf__rows_group_end(&e, 0), 3);
    assert_int_equal(rlhf__rows_group_end(&e, 1), 3);
    assert_int_equal(rlhf__rows_slice_end(&e, 0, 1, 0), 3); // one group although it is too long
    assert_int_equal(rlhf__rows_slice_end(&e, 0, 21, 0), 4);
    assert_int_equal(rlhf__rows_slice_end(&e, 0, 23, 0), 4); // half of group 2 would fit
    assert_int_equal(rlhf__rows_slice_end(&e, 0, 26, 0), 6);
    const uint32_t pick[] = {4, 5};
    struct rlhf__rows p = {0};
    assert_int_equal(rlhf__rows_pick(&p, &e, pick, 2, NULL), RLHF_OK);
    assert_int_equal(p.flags, RLHF__WHOLE_GROUPS);
    rlhf__rows_finish(&p);
    rlhf__rows_finish(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_stands_once),
        cmocka_unit_test(nothing_to_share),
        cmocka_unit_test(numbers_move_between_the_layouts),
        cmocka_unit_test(slices_count_what_the_model_computes),
        cmocka_unit_test(whole_groups_are_not_split),
    };
    return cmocka_run_group_tests_name("shared_batch", tests, NULL, NULL);
}
