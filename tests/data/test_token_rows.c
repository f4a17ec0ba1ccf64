// test_token_rows.c: datasets tokenized once: cutting, splitting, bos and eos, threads.
#include "support/scratch.h"

#include "data/token_rows.h"

#define BPE_DIR "../text/data/bpe"

struct fixture {
    struct rlhf__tokenizer *tok;
    struct rlhf__dataset *ds;
    struct scratch *scratch;
};

static int setup(void **state) {
    static struct fixture f; // one group of tests at a time
    struct rlhf__error err = {0};
    void *scratch = NULL;
    f = (struct fixture){0};
    if (scratch_setup(&scratch) || rlhf__tokenizer_open(BPE_DIR, &f.tok, &err)) return -1;
    f.scratch = scratch;
    *state = &f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    void *scratch = f->scratch;
    rlhf__dataset_close(f->ds);
    rlhf__tokenizer_close(f->tok);
    return scratch_teardown(&scratch);
}

static void load(struct fixture *f, const char *text) {
    const char *paths[] = {scratch_text(f->scratch, "a.txt", text)};
    struct rlhf__dataset_opts o = {
        .paths = paths, .n_paths = 1, .need = RLHF__FIELD_BIT(RLHF__FIELD_TEXT)};
    struct rlhf__error err = {0};
    rlhf__dataset_close(f->ds);
    f->ds = NULL;
    check_ok(rlhf__dataset_open(&o, &f->ds, &err), &err);
}

static struct rlhf__token_rows make(struct fixture *f, struct rlhf__token_opts o) {
    struct rlhf__token_rows rows;
    struct rlhf__error err = {0};
    check_ok(rlhf__token_rows_init(&rows, f->ds, f->tok, &o, &err), &err);
    return rows;
}

// Returns all tokens of dataset row i: [bos] ids [eos].
static struct rlhf__ids whole(struct fixture *f, int64_t i, uint32_t flags) {
    struct rlhf__ids ids = {0};
    struct rlhf__error err = {0};
    check_ok(
        rlhf__tokenizer_encode(f->tok, rlhf__dataset_row(f->ds, i).text[0], flags, 0, &ids, &err),
        &err);
    return ids;
}

static void truncate_rows(void **state) {
    struct fixture *f = *state;
    load(f, "a b c d f g k l\nx\na b c d\n"); // 8, 1 and 4 tokens
    struct rlhf__token_opts o = {.max_len = 5, .encode_flags = RLHF__ENCODE_EOS, .min_len = 2};
    struct rlhf__token_rows rows = make(f, o);
    struct rlhf__ids first = whole(f, 0, 0), last = whole(f, 2, RLHF__ENCODE_EOS);
    int32_t got[5];
    assert_int_equal(rows.n, 3);
    assert_int_equal(rows.truncated, 1);
    assert_int_equal(rlhf__token_rows_len(&rows, 0), 5);
    rlhf__token_rows_copy(&rows, 0, got); // no eos, since the text does not end there
    assert_memory_equal(got, first.data, sizeof got);
    assert_int_equal(rlhf__token_rows_len(&rows, 1), 2);
    assert_int_equal(rlhf__token_rows_len(&rows, 2), 5); // fits exactly, including eos
    rlhf__token_rows_copy(&rows, 2, got);
    assert_memory_equal(got, last.data, sizeof got);
    rlhf__ids_finish(&first);
    rlhf__ids_finish(&last);
    rlhf__token_rows_finish(&rows);
    o.max_len = 4; // now the eos of the last row does not fit
    rows = make(f, o);
    assert_int_equal(rows.truncated, 2);
    rlhf__token_rows_finish(&rows);
}

// Every token but the first is the end of exactly one pair (context, next token).
static void split_rows(void **state) {
    struct fixture *f = *state;
    char text[4096] = "";
    for (int n = 1; n < 30; n++) {
        for (int k = 0; k < n; k++)
            strcat(text, k % 2 ? " b" : " a");
        strcat(text, "\n");
    }
    load(f, text);
    for (int32_t max = 2; max < 12; max++) {
        uint32_t flags = RLHF__ENCODE_BOS | RLHF__ENCODE_EOS;
        struct rlhf__token_opts o = {
            .max_len = max, .long_rows = RLHF__LONG_SPLIT, .encode_flags = flags};
        struct rlhf__token_rows rows = make(f, o);
        int64_t at = 0;
        for (int64_t i = 0; i < rlhf__dataset_rows(f->ds); i++) {
            struct rlhf__ids all = whole(f, i, flags);
            size_t next = 1; // the next token to predict
            for (; at < rows.n && rows.source[at] == i; at++) {
                int32_t ids[16], len = rlhf__token_rows_len(&rows, at);
                assert_in_range(len, 2, max);
                rlhf__token_rows_copy(&rows, at, ids);
                assert_memory_equal(ids, all.data + next - 1, (size_t)len * sizeof *ids);
                next += (size_t)len - 1;
            }
            assert_int_equal(next, all.n);
            rlhf__ids_finish(&all);
        }
        assert_int_equal(at, rows.n);
        rlhf__token_rows_finish(&rows);
    }
}

static void short_windows_are_dropped(void **state) {
    struct fixture *f = *state;
    load(f, "a b c d f g k\na\n"); // 7 tokens and 1
    struct rlhf__token_opts o = {.max_len = 4, .long_rows = RLHF__LONG_SPLIT, .min_len = 4};
    struct rlhf__token_rows rows = make(f, o);
    assert_int_equal(rows.n, 2); // 0..3, 3..6
    assert_int_equal(rows.dropped, 1);
    rlhf__token_rows_finish(&rows);
    load(f, "a b c d f\n");
    rows = make(f, o);
    assert_int_equal(rows.n, 1); // the window of 3..4 is too short
    assert_int_equal(rows.total, 4);
    assert_int_equal(rows.offset[1], 4);
    rlhf__token_rows_finish(&rows);
}

static void threads_do_not_matter(void **state) {
    struct fixture *f = *state;
    size_t cap = 1 << 18, n = 0;
    char *text = malloc(cap);
    assert_non_null(text);
    for (unsigned i = 0; n < cap - 200; i++)
        n += (size_t)sprintf(text + n, "row %u has %.*s ends\n", i, (int)(i * 7 % 90),
                             "one two three four five six seven eight nine ten eleven twelve "
                             "thirteen fourteen fifteen");
    load(f, text);
    free(text);
    struct rlhf__token_opts o = {.max_len = 9, .long_rows = RLHF__LONG_SPLIT, .threads = 1};
    struct rlhf__token_rows one = make(f, o), many;
    o.threads = 5;
    many = make(f, o);
    assert_int_equal(one.n, many.n);
    assert_memory_equal(one.offset, many.offset, (size_t)(one.n + 1) * sizeof *one.offset);
    assert_memory_equal(one.source, many.source, (size_t)one.n * sizeof *one.source);
    assert_memory_equal(one.ids16, many.ids16, (size_t)one.total * sizeof *one.ids16);
    rlhf__token_rows_finish(&one);
    rlhf__token_rows_finish(&many);
}

static void wordpiece_keeps_sep(void **state) {
    struct fixture *f = *state;
    struct rlhf__tokenizer *tok = NULL;
    struct rlhf__error err = {0};
    check_ok(rlhf__tokenizer_open("../text/data/wordpiece", &tok, &err), &err);
    load(f, "the the the the the\nthe\n");
    struct rlhf__token_opts o = {.max_len = 4, .encode_flags = RLHF__ENCODE_TEMPLATE};
    struct rlhf__token_rows rows;
    check_ok(rlhf__token_rows_init(&rows, f->ds, tok, &o, &err), &err);
    int32_t ids[4];
    assert_int_equal(rlhf__token_rows_len(&rows, 0), 4);
    rlhf__token_rows_copy(&rows, 0, ids);
    assert_int_equal(ids[0], rlhf__tokenizer_info(tok)->cls);
    assert_int_equal(ids[3], rlhf__tokenizer_info(tok)->sep);
    assert_int_equal(rlhf__token_rows_len(&rows, 1), 3);
    assert_int_equal(rows.truncated, 1);
    rlhf__token_rows_finish(&rows);
    rlhf__tokenizer_close(tok);
}

static void errors(void **state) {
    struct fixture *f = *state;
    struct rlhf__token_rows rows;
    struct rlhf__error err = {0};
    load(f, "a\nb\n");
    struct rlhf__token_opts o = {.max_len = 4, .min_len = 3};
    check_error(rlhf__token_rows_init(&rows, f->ds, f->tok, &o, &err), RLHF_E_INVALID, &err,
                "none of the 2 rows of the data has the 3 tokens");
    o = (struct rlhf__token_opts){.max_len = 4, .field = RLHF__FIELD_CHOSEN};
    check_error(rlhf__token_rows_init(&rows, f->ds, f->tok, &o, &err), RLHF_E_INVALID, &err,
                "a.txt:1: the row has no such field");
    o = (struct rlhf__token_opts){.max_len = 1, .long_rows = RLHF__LONG_SPLIT};
    check_error(rlhf__token_rows_init(&rows, f->ds, f->tok, &o, &err), RLHF_E_INVALID, &err,
                "allowed: 2 or more");
    assert_null(rows.offset);
}

int main(void) {
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(truncate_rows),         TEST(split_rows),          TEST(short_windows_are_dropped),
        TEST(threads_do_not_matter), TEST(wordpiece_keeps_sep), TEST(errors),
    };
    return cmocka_run_group_tests_name("token rows", tests, NULL, NULL);
}
