// test_mapped.c: mapped files: their pages are released as they are used, and files may be
// truncated.
#include "support/scratch.h"

#include "tensors/mapped.h"

#include <sys/stat.h>
#include <unistd.h>

enum { SIZE = 8 << 20 };

struct sum {
    const struct rlhf__mapped *m;
    uint64_t from, to, total;
};

static void add_up(void *sum) {
    struct sum *s = sum;
    for (uint64_t i = s->from; i < s->to; i++)
        s->total += s->m->bytes[i];
}

static const char *file_of_ones(struct scratch *s, const char *name, size_t n) {
    uint8_t *bytes = malloc(n);
    assert_non_null(bytes);
    memset(bytes, 1, n);
    const char *path = scratch_bytes(s, name, bytes, n);
    free(bytes);
    return path;
}

// Pages of files in this process's memory.
static long file_pages(void) {
    long all, resident, shared;
    FILE *f = fopen("/proc/self/statm", "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld %ld", &all, &resident, &shared), 3);
    fclose(f);
    return shared;
}

static void used_pages_leave(void **state) {
    struct rlhf__mapped m;
    struct rlhf__error err = {0};
    check_ok(rlhf__mapped_open(file_of_ones(*state, "a", SIZE), &m, &err), &err);
    assert_int_equal(m.len, SIZE);
    const long before = file_pages(), pages = SIZE / sysconf(_SC_PAGESIZE);
    struct sum s = {.m = &m};
    for (int used = 1; used >= 0; used--) {
        long most = 0;
        s = (struct sum){.m = &m};
        for (; s.from < SIZE; s.from = s.to) {
            s.to = s.from + 100000 < SIZE ? s.from + 100000 : SIZE; // s.to is not page-aligned
            check_ok(rlhf__mapped_read(&m, add_up, &s, &err), &err);
            if (used) rlhf__mapped_used(&m, s.from, s.to);
            if (file_pages() - before > most) most = file_pages() - before;
        }
        assert_int_equal(s.total, SIZE);
        if (used ? most > pages / 2 : most < pages * 3 / 4) // one page fault may map 512 pages
            fail_msg("%ld of %ld pages were there at once (used %d)", most, pages, used);
    }
    rlhf__mapped_close(&m);
}

static void expect_short(struct scratch *s, const char *name, off_t left) {
    struct rlhf__mapped m;
    struct rlhf__error err = {0};
    const char *path = file_of_ones(s, name, 100000);
    check_ok(rlhf__mapped_open(path, &m, &err), &err);
    struct sum sum = {.m = &m, .to = 100000};
    check_ok(rlhf__mapped_read(&m, add_up, &sum, &err), &err);
    rlhf__mapped_used(&m, 0, m.len);
    assert_int_equal(truncate(path, left), 0);
    check_error(rlhf__mapped_read(&m, add_up, &sum, &err), RLHF_E_IO, &err,
                "had 100000 bytes and became shorter, or unreadable, while it was read");
    rlhf__mapped_close(&m);
}

// Some of the pages have been released, or the last page is beyond the file's end.
static void files_cut_short(void **state) {
    expect_short(*state, "none", 0);
    expect_short(*state, "half", 50000);
    expect_short(*state, "byte", 99999);
}

static void no_files(void **state) {
    struct scratch *s = *state;
    struct rlhf__mapped m;
    struct rlhf__error err = {0};
    check_error(rlhf__mapped_open(scratch_path(s, "gone"), &m, &err), RLHF_E_INVALID, &err,
                "cannot open");
    rlhf__mapped_close(&m);
    check_error(rlhf__mapped_open(s->dir, &m, &err), RLHF_E_INVALID, &err, "is a directory");
    rlhf__mapped_close(&m);
    assert_int_equal(mkfifo(scratch_path(s, "pipe"), 0600), 0);
    check_error(rlhf__mapped_open(scratch_path(s, "pipe"), &m, &err), RLHF_E_INVALID, &err,
                "is not a regular file");
    rlhf__mapped_close(&m);
    check_ok(rlhf__mapped_open(scratch_text(s, "empty", ""), &m, &err), &err);
    assert_int_equal(m.len, 0);
    rlhf__mapped_close(&m);
    rlhf__mapped_close(&m); // m is zeroed, so this does nothing
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(used_pages_leave),
        TEST(files_cut_short),
        TEST(no_files),
    };
    return cmocka_run_group_tests_name("mapped files", tests, NULL, NULL);
}
