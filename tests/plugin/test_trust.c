// test_trust.c: which files of code count as changeable by other users. The test has its own
// installation.
#include "plugin/modules.h"

#include "plugin/trust.h"

#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    struct scratch *scratch;
    struct rlhf__dirs dirs;
};

static void make(struct fixture *f, const char *dir, const char *file) {
    struct rlhf__error err = {0};
    check_ok(rlhf__make_dirs(scratch_path(f->scratch, dir), &err), &err);
    if (file) assert_int_equal(chmod(scratch_text(f->scratch, file, "code"), 0644), 0);
}

static int setup(void **state) {
    struct fixture *f = calloc(1, sizeof *f);
    void *s;
    if (!f || scratch_setup(&s) != 0) {
        free(f);
        return -1;
    }
    f->scratch = s;
    umask(022);
    snprintf(f->dirs.exe, sizeof f->dirs.exe, "%s", scratch_path(f->scratch, "usr/bin"));
    snprintf(f->dirs.lib, sizeof f->dirs.lib, "%s", scratch_path(f->scratch, "usr/lib/rlhf/1"));
    make(f, "usr/bin", NULL);
    make(f, "usr/lib/rlhf/1/algos", "usr/lib/rlhf/1/algos/x.so");
    make(f, "mine/sub", "mine/sub/x.so");
    *state = f;
    return 0;
}

static int teardown(void **state) {
    struct fixture *f = *state;
    void *s = f->scratch;
    int failed = scratch_teardown(&s);
    free(f);
    return failed;
}

static void trusted(struct fixture *f, const char *file, int want, const char *part) {
    struct rlhf__error err = {0};
    rlhf_status st = rlhf__trust_code(scratch_path(f->scratch, file), &f->dirs, &err);
    if (want)
        check_ok(st, &err);
    else
        check_error(st, RLHF_E_INVALID, &err, part);
}

static void set_mode(struct fixture *f, const char *name, unsigned mode) {
    assert_int_equal(chmod(scratch_path(f->scratch, name), mode), 0);
}

static void each_step_of_the_way_counts(void **state) {
    struct fixture *f = *state;
    trusted(f, "mine/sub/x.so", 1, "");
    static const char *const way[] = {"mine/sub/x.so", "mine/sub", "mine"};
    for (int i = 0; i < 3; i++) {
        char part[64];
        unsigned good = i ? 0755 : 0644, bad = i ? 0757 : 0646;
        set_mode(f, way[i], bad);
        snprintf(part, sizeof part, "can be written by everybody (mode 0%o, owner ", bad);
        trusted(f, "mine/sub/x.so", 0, part);
        set_mode(f, way[i], good);
    }
    set_mode(f, "mine", 01777);
    trusted(f, "mine/sub/x.so", 1, "");
    struct rlhf__error err = {0};
    check_error(rlhf__trust_dir(scratch_path(f->scratch, "mine"), &f->dirs, &err), RLHF_E_INVALID,
                &err, "mode 1777");
    check_ok(rlhf__trust_dir(scratch_path(f->scratch, "mine/sub"), &f->dirs, &err), &err);
}

// Directories above the program, or above its plugins, are as trusted as the program.
static void the_installation_is_the_programs(void **state) {
    struct fixture *f = *state;
    set_mode(f, "usr", 0777);
    set_mode(f, "usr/lib", 0777); // as /usr/local/lib, which is group-writable on some systems
    trusted(f, "usr/lib/rlhf/1/algos/x.so", 1, "");
    set_mode(f, "usr/lib/rlhf/1/algos", 0777);
    trusted(f, "usr/lib/rlhf/1/algos/x.so", 0, "/algos can be written by everybody");
    set_mode(f, "usr/lib/rlhf/1/algos", 0755);
    set_mode(f, "usr/lib/rlhf/1", 0777);
    trusted(f, "usr/lib/rlhf/1/algos/x.so", 0, "/1 can be written by everybody");
}

static void owners_and_groups(void **state) {
    struct fixture *f = *state;
    if (geteuid() != 0) {
        print_message("skipped: only root can give files away\n");
        return;
    }
    const char *file = "mine/sub/x.so";
    set_mode(f, file, 0664);
    trusted(f, file, 1, ""); // root's own group
    assert_int_equal(chown(scratch_path(f->scratch, file), 0, 54321), 0);
    trusted(f, file, 0, "can be written by its group (mode 0664, owner root)");
    set_mode(f, file, 0644);
    trusted(f, file, 1, "");
    assert_int_equal(chown(scratch_path(f->scratch, file), 54321, 0), 0);
    trusted(f, file, 0, "belongs to another user (mode 0644, owner 54321)");
    assert_int_equal(chown(scratch_path(f->scratch, "usr/bin"), 54321, 0), 0);
    trusted(f, file, 1, ""); // that user owns the program
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(each_step_of_the_way_counts),
        T(the_installation_is_the_programs),
        T(owners_and_groups),
    };
    return cmocka_run_group_tests_name("plugin_trust", tests, NULL, NULL);
}
