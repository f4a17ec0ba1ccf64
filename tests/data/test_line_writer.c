// test_line_writer.c: files of JSON Lines appear complete or not at all.
#include "support/scratch.h"

#include "data/lines.h"

#include <sys/stat.h>
#include <unistd.h>

static rlhf_status put_rows(struct rlhf__line_writer *w, int n, struct rlhf__error *err) {
    for (int i = 0; i < n; i++) {
        rlhf_status st = rlhf__line_writer_put_new(
            w, json_pack("{s:i, s:s}", "row", i, "text", "a\nb \"c\""), err);
        if (st != RLHF_OK) return st;
    }
    return RLHF_OK;
}

static void write_rows(const char *path, int n) {
    struct rlhf__error err = {0};
    struct rlhf__line_writer *w = NULL;
    check_ok(rlhf__line_writer_open(path, &w, &err), &err);
    assert_false(rlhf__is_file(path)); // not before it is complete
    check_ok(put_rows(w, n, &err), &err);
    assert_false(rlhf__is_file(path));
    check_ok(rlhf__line_writer_commit(w, &err), &err);
}

static void check_rows(const char *path, int n) {
    struct rlhf__error err = {0};
    struct rlhf__lines *lines = NULL;
    rlhf_str line;
    int64_t number = 0;
    int more = 1;
    check_ok(rlhf__lines_open(path, NULL, &lines, &err), &err);
    for (int i = 0; i < n; i++) {
        char want[64];
        snprintf(want, sizeof want, "{\"row\": %d, \"text\": \"a\\nb \\\"c\\\"\"}", i);
        check_ok(rlhf__lines_next(lines, &line, &number, &more, &err), &err);
        assert_true(more);
        assert_int_equal(line.len, strlen(want));
        assert_memory_equal(line.ptr, want, line.len);
    }
    check_ok(rlhf__lines_next(lines, &line, &number, &more, &err), &err);
    assert_false(more);
    rlhf__lines_close(lines);
}

static void plain(void **state) {
    struct scratch *s = *state;
    write_rows(scratch_path(s, "a.jsonl"), 3);
    check_rows(scratch_path(s, "a.jsonl"), 3);
}

// The file is larger than the compressor's buffer. Writing the same lines gives the same bytes.
static void gzip(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__buf a = RLHF__BUF_INIT, b = RLHF__BUF_INIT;
    write_rows(scratch_path(s, "a.jsonl.gz"), 40000);
    write_rows(scratch_path(s, "b.jsonl.gz"), 40000);
    check_rows(scratch_path(s, "a.jsonl.gz"), 40000);
    check_ok(rlhf__file_read(scratch_path(s, "a.jsonl.gz"), 1 << 24, &a, &err), &err);
    check_ok(rlhf__file_read(scratch_path(s, "b.jsonl.gz"), 1 << 24, &b, &err), &err);
    int packed = a.len > 2 && (unsigned char)a.data[0] == 0x1f;
    int same = a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
    rlhf__buf_finish(&a);
    rlhf__buf_finish(&b);
    assert_true(packed);
    assert_true(same);
}

static void aborted(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__line_writer *w = NULL;
    check_ok(rlhf__line_writer_open(scratch_path(s, "a.jsonl.gz"), &w, &err), &err);
    check_ok(put_rows(w, 5, &err), &err);
    rlhf__line_writer_abort(w);
    assert_false(rlhf__is_file(scratch_path(s, "a.jsonl.gz")));
    check_error(rlhf__line_writer_open(scratch_path(s, "none/a.jsonl"), &w, &err), RLHF_E_IO, &err,
                "a.jsonl");
    rlhf__line_writer_abort(NULL);
}

// Only a regular file is replaced, and only if forced.
static void targets(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    const char *none = scratch_path(s, "none"), *file = scratch_path(s, "file");
    const char *pipe = scratch_path(s, "pipe"), *link = scratch_path(s, "link");
    const char *dangling = scratch_path(s, "dangling");
    write_rows(file, 1);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(symlink("file", link), 0);
    assert_int_equal(symlink("nowhere", dangling), 0);
    for (int force = 0; force < 2; force++) {
        check_ok(rlhf__line_writer_free_target("pairs", none, force, &err), &err);
        check_error(rlhf__line_writer_free_target("pairs", pipe, force, &err), RLHF_E_INVALID, &err,
                    "is not a regular file");
        check_error(rlhf__line_writer_free_target("pairs", link, force, &err), RLHF_E_INVALID, &err,
                    "is a link, not a regular file");
        check_error(rlhf__line_writer_free_target("pairs", dangling, force, &err), RLHF_E_INVALID,
                    &err, "is a link, not a regular file");
        check_error(rlhf__line_writer_free_target("pairs", s->dir, force, &err), RLHF_E_INVALID,
                    &err, "is a directory");
    }
    check_error(rlhf__line_writer_free_target("pairs", file, 0, &err), RLHF_E_INVALID, &err,
                "--force replaces it");
    check_ok(rlhf__line_writer_free_target("pairs", file, 1, &err), &err);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(plain, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(gzip, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(aborted, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(targets, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests_name("line_writer", tests, NULL, NULL);
}
