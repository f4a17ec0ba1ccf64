// test_metrics.c: writes rows of metrics.jsonl, and truncates them for a resumed run.
#include "support/scratch.h"

#include "report/jsonl.h"
#include "report/metrics.h"
#include "report/run_history.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rlhf__metrics *open_run(struct scratch *s, int64_t keep) {
    struct rlhf__metrics *m;
    struct rlhf__error err = {0};
    struct rlhf__folder *dir = scratch_folder(s->dir);
    check_ok(rlhf__metrics_open(dir, keep, NULL, &m, &err), &err);
    rlhf__folder_close(dir);
    return m;
}

static void flush(struct rlhf__metrics *m, int64_t phase) {
    struct rlhf__error err = {0};
    check_ok(rlhf__metrics_flush(m, phase, &err), &err);
}

static void check_rows(struct scratch *s, const char *want) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    check_ok(rlhf__file_read(scratch_path(s, "metrics.jsonl"), 1 << 20, &b, &err), &err);
    assert_string_equal(rlhf__buf_text(&b), want);
    rlhf__buf_finish(&b);
}

static void rows_are_sorted_and_start_afresh(void **state) {
    struct scratch *s = *state;
    struct rlhf__metrics *m = open_run(s, -1);
    double v = 5;
    rlhf__metrics_set(m, "z", 1);
    rlhf__metrics_set(m, "a/b", 0.1);
    rlhf__metrics_put(m, "m", NAN);
    rlhf__metrics_set(m, "z", 2);      // replaces the value
    rlhf__metrics_set(m, "phase", 99); // the row already has this metric
    assert_true(rlhf__metrics_get(m, "z", &v) && v == 2);
    assert_false(rlhf__metrics_get(m, "y", &v));
    flush(m, 1);
    assert_false(rlhf__metrics_get(m, "z", &v));
    rlhf__metrics_set(m, "z", -3);
    flush(m, 2);
    rlhf__metrics_close(m);
    check_rows(s,
               "{\"phase\": 1, \"a/b\": 0.1, \"m\": null, \"z\": 2}\n{\"phase\": 2, \"z\": -3}\n");
}

// Within a phase, reports of plugins are combined. But a value that the host reports replaces the
// host's earlier value.
static void reports_are_combined(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__metrics *m;
    struct rlhf__log log;
    char *said = NULL;
    size_t n = 0;
    double v = 5;
    rlhf__log_init(&log);
    log.out = open_memstream(&said, &n);
    assert_non_null(log.out);
    struct rlhf__folder *dir = scratch_folder(s->dir);
    check_ok(rlhf__metrics_open(dir, -1, &log, &m, &err), &err);
    rlhf__folder_close(dir);
    rlhf__metrics_report(m, "mean", 0.1, 7, RLHF_COMBINE_MEAN);
    assert_true(rlhf__metrics_get(m, "mean", &v) && v == 0.1);
    rlhf__metrics_report(m, "mean", 0.5, 7, RLHF_COMBINE_MEAN);
    rlhf__metrics_report(m, "none", 3, 0, RLHF_COMBINE_MEAN); // without weight
    rlhf__metrics_reported(m, "sum", 2, 3, RLHF_COMBINE_SUM);
    rlhf__metrics_reported(m, "sum", 1, 1, RLHF_COMBINE_SUM);
    rlhf__metrics_report(m, "most", 2, 1, RLHF_COMBINE_MAX);
    rlhf__metrics_report(m, "most", -2, 1, RLHF_COMBINE_MAX);
    assert_int_equal(fflush(log.out), 0);
    assert_null(strstr(said, "in one phase"));
    rlhf__metrics_report(m, "most", 9, 1, RLHF_COMBINE_SUM); // left out
    rlhf__metrics_report(m, "most", 9, 1, RLHF_COMBINE_MIN);
    rlhf__metrics_report(m, "own", 2, 1, RLHF_COMBINE_SUM);
    rlhf__metrics_set(m, "own", 5);
    struct rlhf__metrics_under held_out = {m, "eval/"};
    rlhf__metrics_under_reported(&held_out, "sum", 100, 1, RLHF_COMBINE_SUM);
    rlhf__metrics_under_reported(&held_out, "sum", 11, 1, RLHF_COMBINE_SUM);
    rlhf__metrics_under_put(&held_out, "own", 6);
    flush(m, 1);
    rlhf__metrics_report(m, "most", 1, 1, RLHF_COMBINE_SUM); // the next phase begins
    flush(m, 2);
    rlhf__metrics_close(m);
    check_rows(s, "{\"phase\": 1, \"eval/own\": 6, \"eval/sum\": 111, \"mean\": 0.3, "
                  "\"most\": 2, \"own\": 5, \"sum\": 7}\n"
                  "{\"phase\": 2, \"most\": 1}\n");
    fclose(log.out);
    const char *first = strstr(said, "the metric \"most\" is reported as \"max\" and as \"sum\" "
                                     "in one phase; the first counts");
    assert_non_null(first);
    assert_null(strstr(strstr(first, "counts"), "in one phase"));
    free(said);
    rlhf__log_finish(&log);
}

static void a_resumed_run_cuts_later_rows(void **state) {
    struct scratch *s = *state;
    scratch_text(
        s, "metrics.jsonl",
        "{\"phase\": 1, \"a\": 1}\n{\"phase\": 2, \"a\": 2}\n{\"phase\": 3, \"a\": 3}\n{\"pha");
    struct rlhf__metrics *m = open_run(s, 2);
    rlhf__metrics_set(m, "a", 4);
    flush(m, 3);
    rlhf__metrics_close(m);
    check_rows(s, "{\"phase\": 1, \"a\": 1}\n{\"phase\": 2, \"a\": 2}\n{\"phase\": 3, \"a\": 4}\n");
    rlhf__metrics_close(open_run(s, 99)); // whole lines stay
    check_rows(s, "{\"phase\": 1, \"a\": 1}\n{\"phase\": 2, \"a\": 2}\n{\"phase\": 3, \"a\": 4}\n");
    rlhf__metrics_close(open_run(s, 0));
    check_rows(s, "");
}

static void an_unfinished_line_goes(void **state) {
    struct scratch *s = *state;
    scratch_text(s, "metrics.jsonl", "{\"phase\": 1}\n{\"phase\": 2}");
    rlhf__metrics_close(open_run(s, 9));
    check_rows(s, "{\"phase\": 1}\n");
}

// An invalid line stays. A row of a later phase goes. Neither removes other rows.
static void a_bad_line_in_the_middle_removes_no_row(void **state) {
    struct scratch *s = *state;
    static const struct {
        const char *before, *after;
    } cases[] = {
        {"{\"phase\": 1}\nno JSON\n{\"phase\": 2}\n", "{\"phase\": 1}\nno JSON\n{\"phase\": 2}\n"},
        {"{\"phase\": 1}\n{\"phase\": 91}\n{\"phase\": 2}\n{\"phase\": 3}\n",
         "{\"phase\": 1}\n{\"phase\": 2}\n"},
        {"[]\n{\"phase\": 3}\n{}\n{\"phase\": 2}\n", "[]\n{}\n{\"phase\": 2}\n"},
        {"[]\n{\"phase\": 2}\n", "[]\n{\"phase\": 2}\n"},
        {"{\"phase\": 2}\n\n{\"phase\": 3}\n\n{\"phase\": 4}\n", "{\"phase\": 2}\n\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scratch_text(s, "metrics.jsonl", cases[i].before);
        rlhf__metrics_close(open_run(s, 2));
        check_rows(s, cases[i].after);
    }
}

// The second file is refused, and the first file is not changed.
static void no_link_is_followed(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__metrics *m;
    scratch_text(s, "other", "{\"phase\": 1}\n{\"phase\": 2}\n");
    assert_int_equal(symlink("other", scratch_path(s, "metrics.jsonl")), 0);
    struct rlhf__folder *dir = scratch_folder(s->dir);
    for (int keep = -1; keep < 2; keep++)
        check_error(rlhf__metrics_open(dir, keep, NULL, &m, &err), RLHF_E_INVALID, &err,
                    "metrics.jsonl is a symbolic link");
    rlhf__folder_close(dir);
    assert_int_equal(remove(scratch_path(s, "metrics.jsonl")), 0);
    assert_int_equal(rename(scratch_path(s, "other"), scratch_path(s, "metrics.jsonl")), 0);
    check_rows(s, "{\"phase\": 1}\n{\"phase\": 2}\n");
}

static rlhf_status count_row(void *arg, json_t *row, struct rlhf__error *err) {
    (void)row;
    (void)err;
    ++*(int *)arg;
    return RLHF_OK;
}

// A missing file has no rows. A file that cannot be read is an error.
static void what_is_not_read_is_said(void **state) {
    struct scratch *s = *state;
    struct rlhf__folder *dir = scratch_folder(s->dir);
    struct rlhf__error err = {0};
    struct rlhf__run_history h = {0};
    int n = 0;
    check_ok(rlhf__jsonl_each(dir, "rows.jsonl", count_row, &n, &err), &err);
    assert_int_equal(n, 0);
    scratch_text(s, "rows.jsonl", "{\"phase\": 1}\n{\"phase\": 2}\n");
    check_ok(rlhf__jsonl_each(dir, "rows.jsonl", count_row, &n, &err), &err);
    assert_int_equal(n, 2);
    assert_int_equal(mkdir(scratch_path(s, "metrics.jsonl"), 0700), 0);
    assert_true(rlhf__run_history_read(&h, dir, 9, &err) < 0);
    assert_non_null(strstr(err.text, "metrics.jsonl"));
    rlhf__run_history_finish(&h);
    rlhf__folder_close(dir);
}

static void many_names(void **state) {
    struct scratch *s = *state;
    struct rlhf__metrics *m = open_run(s, -1);
    char name[32];
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "n%d", (i * 7919) % 500);
        rlhf__metrics_set(m, name, i);
    }
    for (int i = 0; i < 500; i++) {
        double v = -1;
        snprintf(name, sizeof name, "n%d", (i * 7919) % 500);
        assert_true(rlhf__metrics_get(m, name, &v) && v == i);
    }
    rlhf__metrics_close(m);
}

// In the child, the second row does not fit on the disk. Returns 0 if that row is refused and the
// first row stays whole.
static int fill_the_disk(const char *dir) {
    struct rlimit limit = {40, 40};
    struct rlhf__error err = {0};
    struct rlhf__metrics *m;
    signal(SIGXFSZ, SIG_IGN);
    struct rlhf__folder *f = NULL;
    if (rlhf__folder_open(NULL, dir, &f, &err) != RLHF_OK) return 1;
    if (rlhf__metrics_open(f, -1, NULL, &m, &err) != RLHF_OK) return 1;
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    rlhf__metrics_set(m, "a", 1);
    if (rlhf__metrics_flush(m, 1, &err) != RLHF_OK) return 3;
    rlhf__metrics_set(m, "a", 0.123456789);
    if (rlhf__metrics_flush(m, 2, &err) != RLHF_E_IO) return 4;
    return strstr(err.text, "metrics.jsonl: cannot write: File too large") ? 0 : 5;
}

static void a_full_disk_leaves_whole_rows(void **state) {
    struct scratch *s = *state;
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(fill_the_disk(s->dir));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    check_rows(s, "{\"phase\": 1, \"a\": 1}\n");
}

// A resume reads line by line. A line may be longer than what is kept in memory, and a file may end
// in a hole of gigabytes, as after a power failure.
static void a_huge_file_is_read_in_constant_memory(void **state) {
    struct scratch *s = *state;
    const size_t n = (size_t)9 << 20;
    char *text = calloc(1, n + 200);
    struct rlimit old, most;
    assert_non_null(text);
    snprintf(text, 40, "{\"phase\": 1, \"a\": \"");
    memset(text + strlen(text), 'x', n);
    snprintf(text + strlen(text), 100, "\"}\n{\"phase\": 2, \"a\": 1}\n");
    const char *kept = scratch_bytes(s, "kept", text, strlen(text));
    char *second = strchr(text, '\n') + 1;
    snprintf(second, 100, "{\"phase\": 3, \"a\": 1}\n{\"phase\": 2, \"a\": 1}\n");
    const char *path = scratch_bytes(s, "metrics.jsonl", text, strlen(text));
    assert_int_equal(truncate(path, (off_t)2 << 30), 0);
    assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
    most = old;
#ifndef RLHF_SANITIZED // the address sanitizer reserves terabytes
    most.rlim_cur = (rlim_t)1 << 30;
#endif
    assert_int_equal(setrlimit(RLIMIT_AS, &most), 0);
    rlhf__metrics_close(open_run(s, 2));
    assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
    struct rlhf__buf a = RLHF__BUF_INIT, b = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    check_ok(rlhf__file_read(kept, 1 << 24, &a, &err), &err);
    check_ok(rlhf__file_read(path, 1 << 24, &b, &err), &err);
    assert_int_equal(a.len, b.len);
    assert_memory_equal(a.data, b.data, a.len);
    rlhf__buf_finish(&a);
    rlhf__buf_finish(&b);
    free(text);
}

#define T(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(rows_are_sorted_and_start_afresh),
        T(reports_are_combined),
        T(a_resumed_run_cuts_later_rows),
        T(an_unfinished_line_goes),
        T(what_is_not_read_is_said),
        T(many_names),
        T(a_bad_line_in_the_middle_removes_no_row),
        T(no_link_is_followed),
        T(a_full_disk_leaves_whole_rows),
        T(a_huge_file_is_read_in_constant_memory),
    };
    return cmocka_run_group_tests_name("report_metrics", tests, NULL, NULL);
}
