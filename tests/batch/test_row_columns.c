// test_row_columns.c: every array of a batch is in the table of columns, and what is done with one
// column is done with all: copies, joins, and the structs that an algorithm gets.
#include "support/check.h"

#include "batch/row_columns.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, TOTAL = 9, D = 2, NAMED = 2 };

static const int32_t offset[ROWS + 1] = {0, 2, 6, 9};

// Returns a batch that has every column, each with different bytes.
static struct rlhf__rows make_rows(unsigned seed) {
    struct rlhf__rows e;
    assert_int_equal(rlhf__rows_init(&e, ROWS, TOTAL, NULL), RLHF_OK);
    memcpy(e.offset, offset, sizeof offset);
    e.d_hidden = D;
    e.n_rewards = 3;
    e.carry_rows = 2;
    e.carry_tokens = 1;
    for (size_t i = 0; i < rlhf__n_row_columns; i++) {
        const struct rlhf__row_column *c = &rlhf__row_columns[i];
        if (!c->always && c->repeat == 1)
            assert_int_equal(rlhf__rows_add(&e, c->rows_at, NULL), RLHF_OK);
    }
    assert_int_equal(rlhf__rows_add_named(&e, NAMED, NULL), RLHF_OK);
    for (size_t i = 0; i < rlhf__n_row_columns; i++) {
        const struct rlhf__row_column *c = &rlhf__row_columns[i];
        const size_t n = (c->per_token ? TOTAL : ROWS) * rlhf__row_column_bytes(&e, c);
        for (int k = 0; k < c->repeat; k++) {
            unsigned char *p = rlhf__row_column(&e, c, k);
            for (size_t b = 0; p && b < n; b++)
                p[b] = (unsigned char)(seed = seed * 1103515245u + 12345u) >> 1;
        }
    }
    for (uint32_t i = 0; i < ROWS; i++)
        e.prompt_len[i] = 1;
    return e;
}

// Row i of a and row k of b are equal in every column but `except`.
static void same_row(const struct rlhf__rows *a, uint32_t i, const struct rlhf__rows *b, uint32_t k,
                     const char *except) {
    for (size_t at = 0; at < rlhf__n_row_columns; at++) {
        const struct rlhf__row_column *c = &rlhf__row_columns[at];
        const size_t bytes = rlhf__row_column_bytes(a, c);
        const size_t x = c->per_token ? (size_t)a->offset[i] : i;
        const size_t y = c->per_token ? (size_t)b->offset[k] : k;
        const size_t n = c->per_token ? (size_t)(a->offset[i + 1] - a->offset[i]) : 1;
        assert_int_equal(bytes, rlhf__row_column_bytes(b, c));
        for (int r = 0; r < c->repeat; r++) {
            const char *p = rlhf__row_column(a, c, r), *q = rlhf__row_column(b, c, r);
            assert_int_equal(p != NULL, q != NULL);
            if (p && strcmp(c->name, except) != 0)
                assert_memory_equal(p + x * bytes, q + y * bytes, n * bytes);
        }
    }
}

// Every array of the struct is a column, apart from those that row_columns.h names.
static void all_arrays(void **state) {
    (void)state;
    size_t columns = 0;
    for (size_t i = 0; i < rlhf__n_row_columns; i++)
        columns += rlhf__row_columns[i].repeat * sizeof(void *);
    const size_t others = 4 * sizeof(void *); // offset, support, ref_row, ref_dev_hidden
    // n, total, flags, d_hidden, support_words, n_named, n_rewards, carry_rows, carry_tokens
    const size_t numbers = 9 * sizeof(uint32_t);
    assert_int_equal(sizeof(struct rlhf__rows), columns + others + (numbers + 7) / 8 * 8);
}

static void picked(void **state) {
    (void)state;
    struct rlhf__rows e = make_rows(1), some = {0};
    const uint32_t pick[] = {2, 0};
    assert_int_equal(rlhf__rows_pick(&some, &e, pick, 2, NULL), RLHF_OK);
    same_row(&e, 2, &some, 0, "");
    same_row(&e, 0, &some, 1, "");
    rlhf__rows_finish(&some);
    rlhf__rows_finish(&e);
}

static void joined(void **state) {
    (void)state;
    struct rlhf__rows a = make_rows(1), b = make_rows(2), all = {0};
    for (uint32_t i = 0; i < ROWS; i++)
        a.group[i] = b.group[i] = (int32_t)i;
    assert_int_equal(rlhf__rows_join(&all, &a, &b, NULL), RLHF_OK);
    for (uint32_t i = 0; i < ROWS; i++) {
        same_row(&a, i, &all, i, "");
        same_row(&b, i, &all, ROWS + i, "group"); // joining renumbers groups
        assert_int_equal(all.group[ROWS + i], ROWS + i);
    }
    rlhf__rows_finish(&all);
    rlhf__rows_finish(&a);
    rlhf__rows_finish(&b);
}

static const char *pointer(const void *of, uint16_t at) {
    const char *p;
    memcpy(&p, (const char *)of + at, sizeof p);
    return p;
}

// An algorithm gets every column of its struct from the right row onward, and no column whose need
// is not fulfilled.
static void passed_on(void **state) {
    (void)state;
    struct rlhf__rows e = make_rows(1);
    enum { ALL = RLHF__NEEDS_REFERENCE | RLHF__NEEDS_VALUE };
    e.flags = RLHF__DRAWN;
    for (uint32_t has = 0; has <= ALL; has++) {
        rlhf_rollout r = {.size = sizeof r};
        rlhf_loss_in in = {.size = sizeof in};
        rlhf_advantages out = {.size = sizeof out};
        rlhf__columns_to_rollout(&e, has, &r);
        rlhf__columns_to_results(&e, &out);
        rlhf__columns_to_loss(&e, 1, has, &in);
        for (size_t i = 0; i < rlhf__n_row_columns; i++) {
            const struct rlhf__row_column *c = &rlhf__row_columns[i];
            const int given = !(c->needs & ALL & ~has);
            const char *all = rlhf__row_column(&e, c, 0);
            const size_t first = (c->per_token ? 2 : 1) * rlhf__row_column_bytes(&e, c);
            if (c->result_at) assert_ptr_equal(pointer(&out, c->result_at), all);
            for (size_t k = 0; c->result_at && k < 2 * first; k++)
                assert_int_equal(all[k], 0);
            if (c->rollout_at) assert_ptr_equal(pointer(&r, c->rollout_at), given ? all : NULL);
            if (c->loss_at) assert_ptr_equal(pointer(&in, c->loss_at), given ? all + first : NULL);
        }
    }
    e.flags = 0;
    rlhf_loss_in in = {.size = sizeof in};
    rlhf__columns_to_loss(&e, 0, ALL, &in);
    assert_null(in.version);
    assert_null(in.logp_sampled);
    assert_non_null(in.logp_old);
    rlhf__rows_finish(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_arrays), cmocka_unit_test(picked),
                                       cmocka_unit_test(joined), cmocka_unit_test(passed_on)};
    return cmocka_run_group_tests_name("row_columns", tests, NULL, NULL);
}
