// test_loading.c: a small file can contain very many rows. Loading stops at a limit, and when the
// user cancels.
#include "support/check.h"

#include "data/dataset.h"
#include "data/lines.h"
#include "data/preferences.h"
#include "data/prompts.h"
#include "data/token_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

struct fixture {
    char dir[256], path[300];
    struct rlhf__tokenizer *tok;
};

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    struct rlhf__error err;
    const char *tmp = getenv("TMPDIR");
    if (!f) return -1;
    snprintf(f->dir, sizeof f->dir, "%s/rlhf-loading-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(f->dir)) return -1;
    snprintf(f->path, sizeof f->path, "%s/rows.jsonl.gz", f->dir);
    *state = f;
    return rlhf__tokenizer_open("../text/data/bpe", &f->tok, &err) == RLHF_OK ? 0 : -1;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    unlink(f->path);
    rmdir(f->dir);
    rlhf__tokenizer_close(f->tok);
    free(f);
    return 0;
}

// Writes a compressed file of n equal rows, which takes a few KiB on disk.
static void write_rows(const struct fixture *f, const char *row, int n) {
    gzFile out = gzopen(f->path, "wb9");
    assert_non_null(out);
    for (int i = 0; i < n; i++)
        assert_true(gzprintf(out, "%s\n", row) > 0);
    assert_int_equal(gzclose(out), Z_OK);
}

static void says(const struct rlhf__error *err, const char *part) {
    if (!strstr(err->text, part)) fail_msg("expected \"%s\" in: %s", part, err->text);
}

static rlhf_status open_text(const struct fixture *f, const struct rlhf__loading *l,
                             struct rlhf__dataset **ds, struct rlhf__error *err) {
    const char *paths[] = {f->path};
    struct rlhf__dataset_opts o = {
        .paths = paths, .n_paths = 1, .need = RLHF__FIELD_BIT(RLHF__FIELD_TEXT), .loading = l};
    return rlhf__dataset_open(&o, ds, err);
}

static void rows_stop_at_the_bound(void **state) {
    const struct fixture *f = *state;
    const struct rlhf__loading one = {.max_mib = 1}, two = {.max_mib = 2, .setting = "--max-mib"};
    struct rlhf__dataset *ds = NULL;
    struct rlhf__error err;
    write_rows(f, "{\"text\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}", 15000);
    assert_int_equal(open_text(f, &one, &ds, &err), RLHF_E_INVALID);
    says(&err, "rows.jsonl.gz:");
    says(&err, "1 MiB that data.max_mib allows (the file has 0.0 MiB)");
    assert_int_equal(open_text(f, &two, &ds, &err), RLHF_OK);
    // Memory suffices for the rows, but not for the rows and their tokens.
    struct rlhf__token_opts t = {.field = RLHF__FIELD_TEXT, .max_len = 64, .loading = &two};
    struct rlhf__token_rows rows;
    assert_int_equal(rlhf__token_rows_init(&rows, ds, f->tok, &t, &err), RLHF_E_INVALID);
    says(&err, "2 MiB that --max-mib allows");
    rlhf__dataset_close(ds);
}

// The memory that each row needs in addition to its bytes counts, too.
static void short_rows_count(void **state) {
    const struct fixture *f = *state;
    const struct rlhf__loading one = {.max_mib = 1};
    struct rlhf__dataset *ds = NULL;
    struct rlhf__error err;
    write_rows(f, "{\"text\":\"\"}", 30000);
    assert_int_equal(open_text(f, &one, &ds, &err), RLHF_E_INVALID);
    says(&err, "data.max_mib");
}

static rlhf_status open_prompts(const struct fixture *f, const struct rlhf__loading *l,
                                struct rlhf__error *err) {
    const char *paths[] = {f->path};
    struct rlhf__prompt_opts o = {.paths = paths, .n_paths = 1, .max_tokens = 64, .loading = l};
    struct rlhf__prompts *set = NULL;
    rlhf_status st = rlhf__prompts_open(&o, f->tok, &set, err);
    rlhf__prompts_close(set);
    return st;
}

static rlhf_status open_pairs(const struct fixture *f, const struct rlhf__loading *l,
                              struct rlhf__error *err) {
    const char *paths[] = {f->path};
    struct rlhf__preference_opts o = {.paths = paths, .n_paths = 1, .max_tokens = 64, .loading = l};
    struct rlhf__preferences *set = NULL;
    rlhf_status st = rlhf__preferences_open(&o, f->tok, &set, err);
    if (st == RLHF_OK) rlhf__preferences_close(set);
    return st;
}

static void prompts_and_preferences_stop_too(void **state) {
    const struct fixture *f = *state;
    const struct rlhf__loading one = {.max_mib = 1};
    struct rlhf__error err;
    write_rows(f, "{\"prompt\": \"aaaaaaaaaaaaaaaaaa\"}", 9000);
    assert_int_equal(open_prompts(f, &one, &err), RLHF_E_INVALID);
    says(&err, "rows.jsonl.gz:");
    says(&err, "data.max_mib");
    write_rows(f, "{\"prompt\":\"aaaaaaaaaa\",\"chosen\":\"bbbbbbbbbb\",\"rejected\":\"cccccccc\"}",
               12000);
    assert_int_equal(open_pairs(f, &one, &err), RLHF_E_INVALID);
    says(&err, "data.max_mib");
}

static void a_line_has_a_bound(void **state) {
    const struct fixture *f = *state;
    struct rlhf__dataset *ds = NULL;
    struct rlhf__error err;
    size_t n = RLHF__LINE_MAX + 1000;
    char *line = malloc(n + 1);
    assert_non_null(line);
    memset(line, ' ', n);
    line[n] = '\0';
    gzFile out = gzopen(f->path, "wb1");
    assert_true(gzputs(out, "{\"text\": \"a\"}\n") > 0 && gzputs(out, line) > 0);
    assert_int_equal(gzclose(out), Z_OK);
    free(line);
    assert_int_equal(open_text(f, NULL, &ds, &err), RLHF_E_INVALID);
    says(&err, "rows.jsonl.gz:2: the line is longer than the 8 MiB a line may have");
}

static void loading_can_be_stopped(void **state) {
    const struct fixture *f = *state;
    volatile sig_atomic_t cancelled = 0;
    const struct rlhf__loading l = {.cancelled = &cancelled};
    struct rlhf__dataset *ds = NULL;
    struct rlhf__error err;
    write_rows(f, "{\"text\": \"a\", \"prompt\": \"b\", \"chosen\": \"c\", \"rejected\": \"d\"}",
               2000);
    assert_int_equal(open_text(f, &l, &ds, &err), RLHF_OK);
    cancelled = 2;
    struct rlhf__token_opts t = {.field = RLHF__FIELD_TEXT, .max_len = 64, .loading = &l};
    struct rlhf__token_rows rows;
    assert_int_equal(rlhf__token_rows_init(&rows, ds, f->tok, &t, &err), RLHF_E_CANCELLED);
    rlhf__dataset_close(ds);
    assert_int_equal(open_text(f, &l, &ds, &err), RLHF_E_CANCELLED);
    assert_int_equal(open_prompts(f, &l, &err), RLHF_E_CANCELLED);
    assert_int_equal(open_pairs(f, &l, &err), RLHF_E_CANCELLED);
    // Invalid lines are counted as well.
    write_rows(f, "", 2000);
    assert_int_equal(open_text(f, &l, &ds, &err), RLHF_E_CANCELLED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rows_stop_at_the_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(short_rows_count, setup, teardown),
        cmocka_unit_test_setup_teardown(prompts_and_preferences_stop_too, setup, teardown),
        cmocka_unit_test_setup_teardown(a_line_has_a_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(loading_can_be_stopped, setup, teardown),
    };
    return cmocka_run_group_tests_name("data_loading", tests, NULL, NULL);
}
