// test_digests.c: the digests of files that are computed while they are written.
#include "base/digests.h"
#include "support/scratch.h"

enum { BIG = 3500000 };

// Write n bytes in pieces.
static struct rlhf__file_writer *start(const struct rlhf__folder *in, const char *name, size_t n) {
    struct rlhf__error err = {0};
    struct rlhf__file_writer *w;
    static char bytes[BIG];
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(i * 7 + i / 1000);
    check_ok(rlhf__file_writer_open(in, name, &w, &err), &err);
    for (size_t at = 0, step = 1; at < n; at += step, step = step * 3 % 999983)
        check_ok(rlhf__file_writer_put(w, bytes + at, n - at < step ? n - at : step, &err), &err);
    return w;
}

static void check_known(struct rlhf__digests *d, const struct rlhf__folder *in, const char *name) {
    char path[1000], hex[65], want[65];
    struct rlhf__error err = {0};
    snprintf(path, sizeof path, "%s/%s", in->path, name);
    check_ok(rlhf__sha256_file(path, want, &err), &err);
    assert_int_equal(rlhf__digests_get(d, name, hex), 1);
    assert_string_equal(hex, want);
}

static void large_files_are_hashed_while_they_are_written(void **state) {
    struct scratch *s = *state;
    struct rlhf__error err = {0};
    struct rlhf__folder *in = scratch_folder(s->dir);
    struct rlhf__digests *d = in->digests = rlhf__digests_new();
    char hex[65];
    check_ok(rlhf__file_writer_commit(start(in, "a", BIG), &err), &err);
    check_ok(rlhf__file_writer_commit(start(in, "b", BIG / 2), &err), &err);
    check_ok(rlhf__file_writer_commit(start(in, "small", 1000), &err), &err);
    check_known(d, in, "b");
    check_known(d, in, "a");
    check_known(d, in, "a");
    assert_int_equal(rlhf__digests_get(d, "small", hex), 0);
    assert_int_equal(rlhf__digests_get(d, "c", hex), 0);
    assert_int_equal(rlhf__digests_get(NULL, "a", hex), 0);
    rlhf__digests_free(d);
    rlhf__digests_free(NULL);
    rlhf__folder_close(in);
}

static void a_file_that_was_not_finished_has_none(void **state) {
    struct scratch *s = *state;
    struct rlhf__folder *in = scratch_folder(s->dir);
    struct rlhf__digests *d = in->digests = rlhf__digests_new();
    char hex[65];
    rlhf__file_writer_abort(start(in, "a", BIG));
    assert_int_equal(rlhf__digests_get(d, "a", hex), 0);
    rlhf__file_writer_abort(start(in, "b", BIG)); // its thread is joined by free
    rlhf__digests_free(d);
    rlhf__folder_close(in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(large_files_are_hashed_while_they_are_written,
                                        scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(a_file_that_was_not_finished_has_none, scratch_setup,
                                        scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
