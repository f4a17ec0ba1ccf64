// test_experience.c: when rows are removed, their tokens, their texts and the judge's scores are
// removed with them.
#include "support/scratch.h"

#include "sample/experience.h"

#define ROWS 5

// Row i has i + 2 tokens of number i, one of which is the prompt, and the text "row i".
static void make(struct rlhf__experience *x) {
    struct rlhf__error err = {0};
    struct rlhf__scored *s = &x->scored;
    memset(x, 0, sizeof *x);
    check_ok(rlhf__rows_init(&x->rows, ROWS, 20, &err), &err);
    s->n = ROWS;
    s->prompt = calloc(ROWS, sizeof *s->prompt);
    s->response = calloc(ROWS, sizeof *s->response);
    s->meta = calloc(ROWS, sizeof *s->meta);
    s->text = calloc(ROWS, sizeof *s->text);
    s->scored_len = calloc(ROWS, sizeof *s->scored_len);
    s->no_period = calloc(ROWS, 1);
    s->verdict = calloc(ROWS, 1);
    x->judged = calloc(ROWS, sizeof *x->judged);
    x->drawn = ROWS;
    for (int32_t i = 0; i < ROWS; i++) {
        char text[16];
        x->rows.offset[i + 1] = x->rows.offset[i] + i + 2;
        x->rows.prompt_len[i] = 1;
        x->rows.source[i] = 10 + i;
        for (int32_t k = x->rows.offset[i]; k < x->rows.offset[i + 1]; k++) {
            x->rows.ids[k] = i;
            x->rows.token[RLHF__LOGP_OLD][k] = (float)i;
        }
        snprintf(text, sizeof text, "row %d", i);
        s->text[i] = strdup(text);
        s->response[i] = (rlhf_str){s->text[i], strlen(text)};
        s->scored_len[i] = i;
        s->no_period[i] = i == 3;
        s->verdict[i] = i == 4;
        x->judged[i] = (float)i / 8;
    }
}

static void check_row(const struct rlhf__experience *x, uint32_t at, int32_t was) {
    char text[16];
    snprintf(text, sizeof text, "row %d", was);
    assert_int_equal(x->rows.source[at], 10 + was);
    assert_int_equal(x->rows.offset[at + 1] - x->rows.offset[at], was + 2);
    assert_int_equal(x->rows.ids[x->rows.offset[at]], was);
    assert_true(x->rows.token[RLHF__LOGP_OLD][x->rows.offset[at + 1] - 1] == (float)was);
    assert_string_equal(x->scored.response[at].ptr, text);
    assert_ptr_equal(x->scored.response[at].ptr, x->scored.text[at]);
    assert_int_equal(x->scored.scored_len[at], was);
    assert_int_equal(x->scored.no_period[at], was == 3);
    assert_int_equal(x->scored.verdict[at], was == 4);
    assert_true(x->judged[at] == (float)was / 8);
}

static void what_is_kept_stays_together(void **state) {
    (void)state;
    struct rlhf__error err = {0};
    struct rlhf__experience x;
    make(&x);
    check_ok(rlhf__experience_keep(&x, (uint8_t[]){0, 1, 0, 1, 1}, &err), &err);
    assert_int_equal(x.rows.n, 3);
    assert_int_equal(x.scored.n, 3);
    assert_int_equal(x.drawn, ROWS); // the number of rows before the removal
    check_row(&x, 0, 1);
    check_row(&x, 1, 3);
    check_row(&x, 2, 4);
    check_ok(rlhf__experience_keep(&x, (uint8_t[]){1, 1, 0}, &err), &err);
    assert_int_equal(x.rows.n, 2);
    check_row(&x, 1, 3);
    rlhf__experience_finish(&x);
    rlhf__experience_finish(&x); // x is zeroed
}

static void all_and_none(void **state) {
    (void)state;
    struct rlhf__error err = {0};
    struct rlhf__experience x;
    make(&x);
    const int32_t *ids = x.rows.ids;
    check_ok(rlhf__experience_keep(&x, (uint8_t[]){1, 1, 1, 1, 1}, &err), &err);
    assert_ptr_equal(x.rows.ids, ids); // not copied
    for (int32_t i = 0; i < ROWS; i++)
        check_row(&x, (uint32_t)i, i);
    check_ok(rlhf__experience_keep(&x, (uint8_t[]){0, 0, 0, 0, 0}, &err), &err);
    assert_int_equal(x.rows.n, 0);
    assert_int_equal(x.scored.n, 0);
    rlhf__experience_finish(&x);
}

// ---- the reference's states ----

static void count_release(void *ctx, rlhf_dev dev) {
    if (dev) ++*(int *)ctx;
}

// After rows are removed, the remaining rows still refer to their own states. The memory of the
// states is freed once, with the experience.
static void states_are_known_by_row(void **state) {
    (void)state;
    struct rlhf__error err = {0};
    struct rlhf__experience x;
    int released = 0, there = 0;
    const rlhf_compute c = {.size = sizeof c, .ctx = &released, .release = count_release};
    make(&x);
    x.compute = &c;
    x.ref_hidden = (rlhf_dev)&there;
    check_ok(rlhf__rows_refer(&x.rows, x.ref_hidden, &err), &err);
    for (int32_t i = 0; i < 15; i++) // 1 + 2 + 3 + 4 + 5 response tokens
        assert_int_equal(x.rows.ref_row[i], i);
    check_ok(rlhf__experience_keep(&x, (uint8_t[]){0, 1, 0, 1, 0}, &err), &err);
    static const int32_t left[] = {1, 2, 6, 7, 8, 9};
    assert_memory_equal(x.rows.ref_row, left, sizeof left);
    assert_ptr_equal(x.rows.ref_dev_hidden, &there);
    assert_int_equal(released, 0);
    rlhf__experience_finish(&x);
    assert_int_equal(released, 1);
    rlhf__experience_finish(&x);
    assert_int_equal(released, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_kept_stays_together),
        cmocka_unit_test(all_and_none),
        cmocka_unit_test(states_are_known_by_row),
    };
    return cmocka_run_group_tests_name("sample/experience", tests, NULL, NULL);
}
