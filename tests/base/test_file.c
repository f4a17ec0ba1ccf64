// test_file.c: reads files. Also checks that a writer leaves either the old file or the new one,
// whatever fails.
#include "base/file.h"
#include "support/scratch.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int entries(const char *dir) {
    int n = 0;
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void check_content(const char *path, const char *want) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    struct rlhf__error err = {0};
    check_ok(rlhf__file_read(path, 1 << 20, &b, &err), &err);
    assert_string_equal(rlhf__buf_text(&b), want);
    rlhf__buf_finish(&b);
}

static void commit_replaces_and_abort_does_not(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__file_writer *w;
    const char *path = scratch_text(s, "f", "old");
    check_ok(rlhf__file_writer_open(NULL, path, &w, &err), &err);
    check_ok(rlhf__file_writer_put(w, "new", 3, &err), &err);
    check_content(path, "old");
    rlhf__file_writer_abort(w);
    check_content(path, "old");
    assert_int_equal(entries(s->dir), 1);
    check_ok(rlhf__file_write(NULL, path, "newer", 5, &err), &err);
    check_content(path, "newer");
    assert_int_equal(entries(s->dir), 1);
    rlhf__file_writer_abort(NULL);
}

static void large_and_small_pieces_keep_their_order(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__file_writer *w;
    enum { BIG = 700000 };
    static char big[BIG + 1];
    memset(big, 'b', BIG);
    const char *path = scratch_path(s, "f");
    check_ok(rlhf__file_writer_open(NULL, path, &w, &err), &err);
    check_ok(rlhf__file_writer_put(w, "a", 1, &err), &err);
    check_ok(rlhf__file_writer_put(w, big, BIG, &err), &err);
    check_ok(rlhf__file_writer_put(w, "c", 1, &err), &err);
    check_ok(rlhf__file_writer_commit(w, &err), &err);
    struct rlhf__buf b = RLHF__BUF_INIT;
    check_ok(rlhf__file_read(path, 1 << 20, &b, &err), &err);
    assert_int_equal(b.len, BIG + 2);
    assert_true(b.data[0] == 'a' && b.data[1] == 'b' && b.data[BIG] == 'b' &&
                b.data[BIG + 1] == 'c');
    rlhf__buf_finish(&b);
}

// Runs in a child, because the limit cannot be raised again. Returns 0 on success.
static int write_over_the_limit(const char *path) {
    struct rlimit limit = {4096, 4096};
    struct rlhf__error err = {0};
    struct rlhf__file_writer *w;
    static char bytes[600000];
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 10;
    if (rlhf__file_writer_open(NULL, path, &w, &err) != RLHF_OK) return 11;
    if (rlhf__file_writer_put(w, bytes, sizeof bytes, &err) != RLHF_E_IO) return 12;
    if (!strstr(err.text, "cannot write: File too large")) return 13;
    if (rlhf__file_writer_put(w, "x", 1, &err) != RLHF_OK && err.code != RLHF_E_IO) return 14;
    if (rlhf__file_writer_commit(w, &err) != RLHF_E_IO) return 15;
    // Writing a small file fails only at commit, when the buffer is flushed.
    if (rlhf__file_writer_open(NULL, path, &w, &err) != RLHF_OK) return 16;
    if (rlhf__file_writer_put(w, bytes, 10000, &err) != RLHF_OK) return 17;
    return rlhf__file_writer_commit(w, &err) == RLHF_E_IO ? 0 : 18;
}

static void a_full_disk_leaves_the_old_file(void **state) {
    struct scratch *s = *state;
    const char *path = scratch_text(s, "f", "old");
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(write_over_the_limit(path));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    check_content(path, "old");
    assert_int_equal(entries(s->dir), 1);
}

// If a link already has the temporary file's name, the writer leaves the link's target alone.
static void a_planted_link_is_not_followed(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    char temp[64];
    snprintf(temp, sizeof temp, "f.tmp-%ld", (long)getpid());
    scratch_text(s, "victim", "precious");
    assert_int_equal(symlink("victim", scratch_path(s, temp)), 0);
    check_ok(rlhf__file_write(NULL, scratch_path(s, "f"), "new", 3, &err), &err);
    check_content(scratch_path(s, "f"), "new");
    check_content(scratch_path(s, "victim"), "precious");
    assert_int_equal(entries(s->dir), 2);
}

// An open folder stays the same folder when the process changes its working directory.
static void a_folder_is_held(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(mkdir(scratch_path(s, "a"), 0777), 0);
    assert_int_equal(chdir(s->dir), 0);
    struct rlhf__folder *a = scratch_folder("a"), *b = NULL;
    assert_int_equal(chdir("/"), 0);
    check_ok(rlhf__folder_make(a, "b", NULL, &b, &err), &err);
    check_ok(rlhf__file_write(b, "f", "text", 4, &err), &err);
    check_content(scratch_path(s, "a/b/f"), "text");
    assert_int_equal(rename(scratch_path(s, "a"), scratch_path(s, "c")), 0);
    check_ok(rlhf__file_write(a, "b/g", "more", 4, &err), &err);
    check_content(scratch_path(s, "c/b/g"), "more");
    assert_string_equal(b->path, "a/b");
    rlhf__folder_close(a);
    rlhf__folder_close(b);
    assert_int_equal(chdir(here), 0);
}

// As a user who may not write in s->dir. Returns 0 if all is as it should be, 77 if this process
// cannot become such a user.
static int as_another_user(const struct scratch *s) {
    struct rlhf__error err = {0};
    char path[4200];
    if (chmod(s->dir, 0555) < 0) return 1;
    if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0)) return 77;
    snprintf(path, sizeof path, "%s/a/b", s->dir);
    if (rlhf__folder_may_make(path, &err) != RLHF_E_INVALID) return 2;
    return strstr(err.text, "/a/b: cannot create the directory: Permission denied") ? 0 : 3;
}

static void a_directory_that_cannot_be_made_is_told_early(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    int status;
    check_ok(rlhf__folder_may_make(scratch_path(s, "new/run"), &err), &err);
    check_ok(rlhf__folder_may_make("/", &err), &err);
    assert_int_equal(chmod(s->dir, 0755), 0);
    const pid_t child = fork();
    if (child == 0) _exit(as_another_user(s));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(chmod(s->dir, 0755), 0);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) skip();
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(entries(s->dir), 0);
}

static void a_file_where_a_directory_must_be_is_told_early(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    const char *file = scratch_text(s, "f", "x");
    check_error(rlhf__folder_may_make(scratch_path(s, "f/run"), &err), RLHF_E_INVALID, &err,
                "f/run: cannot create the directory: Not a directory");
    assert_int_equal(chmod(file, 0755), 0);
    check_error(rlhf__folder_may_make(scratch_path(s, "f/run"), &err), RLHF_E_INVALID, &err,
                "f/run: cannot create the directory: Not a directory");
}

static void a_missing_directory_is_named(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__file_writer *w;
    const char *path = scratch_path(s, "no/such/f");
    check_error(rlhf__file_writer_open(NULL, path, &w, &err), RLHF_E_IO, &err,
                "no/such/f: cannot write");
    assert_null(w);
}

static void reading_says_what_is_wrong(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__buf b = RLHF__BUF_INIT;
    check_error(rlhf__file_read(scratch_path(s, "none"), 10, &b, &err), RLHF_E_INVALID, &err,
                "none: cannot open: No such file or directory");
    check_error(rlhf__file_read(s->dir, 10, &b, &err), RLHF_E_INVALID, &err, "is a directory");
    check_error(rlhf__file_read(scratch_text(s, "f", "12345678901"), 10, &b, &err), RLHF_E_INVALID,
                &err, "more than the 10 bytes allowed");
    rlhf__buf_finish(&b);
}

static void trees_are_made_and_removed(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    check_ok(rlhf__make_dirs(scratch_path(s, "a/b/c"), &err), &err);
    check_ok(rlhf__make_dirs(scratch_path(s, "a/b/c/"), &err), &err);
    assert_true(rlhf__is_dir(scratch_path(s, "a/b/c")));
    scratch_text(s, "a/b/f", "x");
    scratch_text(s, "outside", "x");
    assert_int_equal(symlink(scratch_path(s, "outside"), scratch_path(s, "a/link")), 0);
    check_error(rlhf__make_dirs(scratch_path(s, "a/b/f/g"), &err), RLHF_E_INVALID, &err,
                "a file of that name exists");
    check_ok(rlhf__folder_remove(NULL, scratch_path(s, "a"), &err), &err);
    check_ok(rlhf__folder_remove(NULL, scratch_path(s, "a"), &err), &err);
    assert_false(rlhf__is_dir(scratch_path(s, "a")));
    assert_true(rlhf__is_file(scratch_path(s, "outside")));
}

static void paths_join(void **state) {
    (void)state;
    const char *const want[][3] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"}};
    for (size_t i = 0; i < CHECK_COUNT(want); i++) {
        char *got = rlhf__path_join(want[i][0], want[i][1]);
        assert_string_equal(got, want[i][2]);
        free(got);
    }
    assert_string_equal(rlhf__path_base("x/y.so"), "y.so");
    assert_string_equal(rlhf__path_base("y.so"), "y.so");
    assert_string_equal(rlhf__path_checkpoint("a/b/checkpoints/000060"), "b/checkpoints/000060");
    assert_string_equal(rlhf__path_checkpoint("/b/checkpoints/000060"), "b/checkpoints/000060");
    assert_string_equal(rlhf__path_checkpoint("b/checkpoints/000060"), "b/checkpoints/000060");
    assert_string_equal(rlhf__path_checkpoint("checkpoints/000060"), "checkpoints/000060");
    assert_string_equal(rlhf__path_checkpoint("/checkpoints/000060"), "checkpoints/000060");
    assert_string_equal(rlhf__path_checkpoint("a/mycheckpoints/000060"), "000060");
    assert_string_equal(rlhf__path_checkpoint("a/models/policy"), "policy");
    assert_string_equal(rlhf__path_checkpoint(""), "");
}

#define T(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

// A truncated path would name another file.
static void a_path_that_does_not_fit_names_nothing(void **state) {
    (void)state;
    static char path[RLHF__PATH_CAP], longest[RLHF__PATH_CAP];
    memset(longest, 'x', sizeof longest - 1);
    assert_string_equal(rlhf__path_put(path, "%s/models/%s", "/share", "policy"),
                        "/share/models/policy");
    assert_string_equal(rlhf__path_put(path, "%s", longest), longest);
    assert_string_equal(rlhf__path_put(path, "%s/", longest), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        T(commit_replaces_and_abort_does_not),
        T(large_and_small_pieces_keep_their_order),
        T(a_full_disk_leaves_the_old_file),
        T(a_missing_directory_is_named),
        T(reading_says_what_is_wrong),
        T(trees_are_made_and_removed),
        T(a_planted_link_is_not_followed),
        T(a_folder_is_held),
        T(a_directory_that_cannot_be_made_is_told_early),
        T(a_file_where_a_directory_must_be_is_told_early),
        cmocka_unit_test(paths_join),
        cmocka_unit_test(a_path_that_does_not_fit_names_nothing),
    };
    return cmocka_run_group_tests_name("base_file", tests, NULL, NULL);
}
