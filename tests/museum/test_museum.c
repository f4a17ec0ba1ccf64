// test_museum.c: plugins that were built with earlier versions of the contract, kept as binaries
// (scripts/make-museum), run in this host.
#include "e2e.h"

#include <stdio.h>

static void each_binary_runs(void **state) {
    struct e2e *t = *state;
    const int status = e2e_shell(t, "sh \"$RLHF_SOURCE_DIR/tests/museum/museum.sh\" "
                                    "\"$RLHF_SOURCE_DIR/tests/museum\"");
    printf("%s", t->out);
    if (status == 77) skip(); // no binaries, or none for this machine
    if (status != 0) fail_msg("%s", t->out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_binary_runs, e2e_setup, e2e_teardown)};
    return cmocka_run_group_tests_name("museum", tests, NULL, NULL);
}
