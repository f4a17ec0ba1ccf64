// test_table.c: checks the columns of tables and the names of several runs as one text.
#include "support/check.h"

#include "runs/columns.h"
#include "runs/name_range.h"

#include <string.h>

static const struct rlhf__text_table_column columns[] = {{"run", 0}, {"phase", 1}, {"", 0}};

static void add(struct rlhf__text_table *t, const char *a, const char *b, const char *c) {
    rlhf__text_table_cell(t, a);
    rlhf__text_table_cell(t, b);
    rlhf__text_table_cell(t, c);
}

// Prints a table of two rows into at most `width` columns.
static void prints(int width, size_t left, const char *want) {
    struct rlhf__text_table t = {.n_columns = 3};
    struct rlhf__buf out = RLHF__BUF_INIT;
    memcpy(t.column, columns, sizeof columns);
    add(&t, "a\xc3\xa9", "1/10", "note \x1b[31m");
    add(&t, "long-name", "10/10", "");
    assert_int_equal(rlhf__text_table_put(&t, width, &out), left);
    assert_string_equal(rlhf__buf_text(&out), want);
    rlhf__buf_finish(&out);
    rlhf__text_table_finish(&t);
}

static void columns_are_dropped_from_the_right(void **state) {
    (void)state;
    const char *all = "run        phase\n"
                      "a\xc3\xa9          1/10  note \\x1b[31m\n"
                      "long-name  10/10\n";
    prints(0, 3, all);
    prints(31, 3, all);
    prints(30, 2, "run        phase\na\xc3\xa9          1/10\nlong-name  10/10\n");
    prints(16, 2, "run        phase\na\xc3\xa9          1/10\nlong-name  10/10\n");
    prints(15, 1, "run\na\xc3\xa9\nlong-name\n");
    prints(7, 1, "run\na\xc3\xa9\nlong...\n");
}

static void a_table_without_titles(void **state) {
    (void)state;
    struct rlhf__text_table t = {.column = {{"", 0}, {"", 0}}, .n_columns = 2};
    struct rlhf__buf out = RLHF__BUF_INIT;
    rlhf__text_table_cell(&t, "a");
    rlhf__text_table_cell(&t, "b");
    rlhf__text_table_cell(&t, "an unfinished row is not shown");
    rlhf__text_table_put(&t, 0, &out);
    assert_string_equal(rlhf__buf_text(&out), "a                               b\n");
    rlhf__buf_finish(&out);
    rlhf__text_table_finish(&t);
}

#define NAMES(want, ...)                                                                           \
    do {                                                                                           \
        const char *const names[] = {__VA_ARGS__};                                                 \
        struct rlhf__buf out = RLHF__BUF_INIT;                                                     \
        rlhf__put_name_range(&out, names, sizeof names / sizeof *names);                           \
        assert_string_equal(rlhf__buf_text(&out), want);                                           \
        rlhf__buf_finish(&out);                                                                    \
    } while (0)

static void names(void **state) {
    (void)state;
    NAMES("seed-1", "seed-1");
    NAMES("seed-1 .. 3", "seed-3", "seed-1", "seed-2");
    NAMES("seed-9 .. 11", "seed-10", "seed-9", "seed-11");
    NAMES("seed-1, 2, 5", "seed-5", "seed-2", "seed-1");
    NAMES("1 .. 2", "1", "2");
    NAMES("seed-01, seed-02", "seed-01", "seed-02"); // 1 and 01 would be the same
    NAMES("a, b", "a", "b");
    NAMES("seed-1, seed-", "seed-1", "seed-");
    NAMES("a, b, c, d", "a", "b", "c", "d");
    NAMES("a, b, c and 2 more", "a", "b", "c", "d", "e");
    NAMES("x1234567890, x1234567891", "x1234567890", "x1234567891"); // too long for a number
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_dropped_from_the_right),
        cmocka_unit_test(a_table_without_titles),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
