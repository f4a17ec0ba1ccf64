// test_dirs.c: the program finds the path of its executable with and without /proc.
#include "support/check.h"

#include "base/dirs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void the_program_is_found(void **state) {
    (void)state;
    char with[1024], without[1024], *slash;
    struct rlhf__error err = {0};
    assert_int_equal(rlhf__dirs_program("/no/such/link", without, sizeof without, &err), RLHF_OK);
    assert_int_equal(without[0], '/');
    slash = strrchr(without, '/');
    assert_string_equal(slash + 1, "base_dirs");
    if (access("/proc/self/exe", F_OK) != 0) return;
    assert_int_equal(rlhf__dirs_program("/proc/self/exe", with, sizeof with, &err), RLHF_OK);
    assert_string_equal(with, without);
}

static void too_small_a_place_is_refused(void **state) {
    (void)state;
    char out[8];
    struct rlhf__error err = {0};
    assert_int_equal(rlhf__dirs_program("/no/such/link", out, sizeof out, &err), RLHF_E_INVALID);
    assert_non_null(strstr(err.text, "too long"));
    if (access("/proc/self/exe", F_OK) == 0)
        assert_int_equal(rlhf__dirs_program("/proc/self/exe", out, sizeof out, &err),
                         RLHF_E_INVALID);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_program_is_found),
        cmocka_unit_test(too_small_a_place_is_refused),
    };
    return cmocka_run_group_tests_name("base_dirs", tests, NULL, NULL);
}
