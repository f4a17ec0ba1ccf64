// test_samples.c: cutting texts to columns, the sample table, and rows of samples.jsonl.
#include "support/scratch.h"

#include "base/printable.h"
#include "report/samples.h"

#include <math.h>

static void clip(const char *text, size_t n, int columns, const char *want, int want_used) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    int used = rlhf__put_clipped(&b, (rlhf_str){text, n}, columns);
    assert_string_equal(rlhf__buf_text(&b), want);
    assert_int_equal(used, want_used);
    rlhf__buf_finish(&b);
}

static void clipping_counts_columns_not_bytes(void **state) {
    (void)state;
    clip("abc", 3, 3, "abc", 3);
    clip("abcd", 4, 3, "...", 3);
    clip("abcdefgh", 8, 6, "abc...", 6);
    clip("a\nb\tc\x1b[2J", 9, 20, "a b c [2J", 9);
    clip("\xc3\xa9\xc3\xa9\xc3\xa9", 6, 3, "\xc3\xa9\xc3\xa9\xc3\xa9", 3);
    clip("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 10, 4, "\xc3\xa9...", 4);
    clip("\xe6\xbc\xa2\xe5\xad\x97", 6, 4, "\xe6\xbc\xa2\xe5\xad\x97", 4); // two columns each
    clip("\xe6\xbc\xa2\xe5\xad\x97\xe6\xbc\xa2", 9, 5, "\xe6\xbc\xa2...", 5);
    clip("a\xff\xc3", 3, 9, "a\xef\xbf\xbd\xef\xbf\xbd", 3);
    clip("abc", 3, 2, "ab", 2); // no room for dots
    clip("abc", 3, 0, "", 0);
    clip("", 0, 5, "", 0);
    clip("e\xcc\x81", 3, 1, "e\xcc\x81", 1); // a combining mark takes no column
}

static const struct rlhf__sample two[] = {
    {.prompt = {"This was", 8},
     .response = {" great, really great\n", 21},
     .reward = 0.93125,
     .ref_logp = -44.25,
     .logp = -40},
    {.prompt = {"\xc3\x89t\xc3\xa9", 5},
     .response = {" \xff", 2},
     .reward = -1,
     .ref_logp = NAN,
     .logp = NAN},
};

static void check_table(int width, int boxed, const char *want) {
    char got[2048] = "";
    FILE *f = tmpfile();
    assert_non_null(f);
    rlhf__samples_table(f, &(struct rlhf__sample_table){.phase = 3, .width = width, .boxed = boxed},
                        two, 2);
    rewind(f);
    size_t n = fread(got, 1, sizeof got - 1, f);
    got[n] = '\0';
    fclose(f);
    assert_string_equal(got, want);
}

// Even if the prompt is long, the response gets two thirds of the line. The cut falls between
// characters.
static void a_long_prompt_shows_its_end(void **state) {
    (void)state;
    static const char prompt[] = "It begins on a train at night, \xc3\xa9t\xc3\xa9";
    struct rlhf__sample one = {.prompt = {prompt, sizeof prompt - 1},
                               .response = {" and ends there too", 19},
                               .reward = 0.5,
                               .ref_logp = -1,
                               .logp = -1};
    char text[512] = "";
    FILE *f = tmpfile();
    assert_non_null(f);
    rlhf__samples_table(f, &(struct rlhf__sample_table){.phase = 1, .width = 52}, &one, 1);
    rewind(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    assert_non_null(strstr(text, "...ght, \xc3\xa9t\xc3\xa9 \xc2\xbb and"));
    assert_null(strstr(text, "train"));
}

static void the_table_fits_its_width(void **state) {
    (void)state;
    check_table(42, 0,
                "   reward   ref logp  text of phase 3\n"
                "    0.931    -44.250  This was \xc2\xbb great,...\n"
                "   -1.000             \xc3\x89t\xc3\xa9 \xc2\xbb \xef\xbf\xbd\n");
    check_table(42, 1,
                "┌───────────┬───────────┬────────────────┐\n"
                "│    reward │  ref logp │ text of phase  │\n"
                "├───────────┼───────────┼────────────────┤\n"
                "│     0.931 │   -44.250 │ This was »     │\n"
                "│           │           │ great, really  │\n"
                "│           │           │ great          │\n"
                "│    -1.000 │           │ Été » \xef\xbf\xbd        │\n"
                "└───────────┴───────────┴────────────────┘\n");
}

// There is one column per reward. The reference's log-probs have a column if enough space remains
// for the text.
static void several_rewards(void **state) {
    (void)state;
    static const float paid[] = {0.5F, -1};
    static const char *const names[] = {"sentiment", "how long it is"};
    struct rlhf__sample one = {.prompt = {"So", 2},
                               .response = {" it was", 7},
                               .reward = -0.5,
                               .ref_logp = -3,
                               .logp = -3,
                               .paid = paid};
    struct rlhf__sample_table t = {
        .phase = 1, .rewards = names, .n_rewards = 2, .width = 80, .boxed = 1};
    for (int wide = 0; wide < 2; wide++) {
        char text[2048] = "";
        FILE *f = tmpfile();
        assert_non_null(f);
        t.width = wide ? 100 : 80;
        rlhf__samples_table(f, &t, &one, 1);
        rewind(f);
        text[fread(text, 1, sizeof text - 1, f)] = 0;
        fclose(f);
        assert_non_null(strstr(text, wide ? "│    reward │ sentiment │ how lo... │  ref logp │ text"
                                          : "│    reward │ sentiment │ how lo... │ text"));
        assert_non_null(strstr(text, "│    -0.500 │     0.500 │    -1.000 │"));
    }
}

static void rows_are_utf8_json(void **state) {
    struct scratch *s = *state;
    struct rlhf__samples *out;
    struct rlhf__error err = {0};
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__folder *dir = scratch_folder(s->dir);
    check_ok(rlhf__samples_open(dir, -1, NULL, &out, &err), &err);
    check_ok(rlhf__samples_write(out, 3, two, 2, &err), &err);
    check_ok(rlhf__samples_write(out, 4, two, 1, &err), &err);
    rlhf__samples_close(out);
    check_ok(rlhf__samples_open(dir, 3, NULL, &out, &err), &err); // resumed after phase 3
    rlhf__folder_close(dir);
    rlhf__samples_close(out);
    check_ok(rlhf__file_read(scratch_path(s, "samples.jsonl"), 1 << 20, &b, &err), &err);
    assert_string_equal(
        rlhf__buf_text(&b),
        "{\"phase\": 3, \"prompt\": \"This was\", \"response\": \" great, really "
        "great\\n\", \"reward\": 0.93125, \"ref_logp\": -44.25, \"logp\": -40}\n"
        "{\"phase\": 3, \"prompt\": \"\xc3\x89t\xc3\xa9\", \"response\": \" \xef\xbf\xbd\", "
        "\"reward\": -1, \"ref_logp\": null, \"logp\": null}\n");
    rlhf__buf_finish(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clipping_counts_columns_not_bytes),
        cmocka_unit_test(the_table_fits_its_width),
        cmocka_unit_test(a_long_prompt_shows_its_end),
        cmocka_unit_test(several_rewards),
        cmocka_unit_test_setup_teardown(rows_are_utf8_json, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("report_samples", tests, NULL, NULL);
}
