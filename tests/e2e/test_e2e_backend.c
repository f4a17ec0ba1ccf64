// test_e2e_backend.c: the host refuses a compute backend that describes itself wrongly, and accepts
// a newer one.
#include "e2e.h"

#define RUN                                                                                        \
    "--algo sft.so --data texts.jsonl --policy model --set policy.init=random "                    \
    "--set batch.size=4 --set run.phases=1 --set run.dir=a --set compute.backend=" BAD_KERNELS_SO

static void a_wrong_description_is_refused(void **state) {
    struct e2e *t = *state;
    static const char *const cases[][2] = {
        {"minor", "it is for the compute contract 0."},
        {"short_kernels", "its rlhf_kernels_ops has 12 bytes"},
        {"newer_kernels", "its rlhf_kernels_ops uses fields newer than this host"},
        {"no_open", "lacks the required function open()"},
        {"no_table", "open() made no table"},
        {"short_table", "its rlhf_compute says it has 64 bytes"},
        {"newer_table", "its rlhf_compute uses fields newer than this host"},
        {"nameless", "has no name, which every backend must have"},
        {"no_detail", "has no detail, which every backend must have"},
        {"no_zero", "has no zero, which every backend must have"},
        {"flag", "sets bit 30 of the flags of its table, which this host does not know"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = e2e_shell(t, "BAD=%s \"$HOST\" " RUN, cases[i][0]);
        if (status != 2) fail_msg("%s: status %d\n%s", cases[i][0], status, t->out);
        e2e_says(t, "bad_kernels.so");
        e2e_says(t, cases[i][1]);
        assert_false(e2e_exists(t, "a"));
    }
}

static void longer_structs_are_taken(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "BAD=longer \"$HOST\" " RUN), 0);
}

// A failed call of the table has the backend's words.
static void a_failure_has_its_words(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "BAD=on_fire \"$HOST\" " RUN), 1);
    e2e_says(t, "gradient norm: the device is on fire");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_wrong_description_is_refused, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(longer_structs_are_taken, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_failure_has_its_words, e2e_setup, e2e_teardown)};
    return cmocka_run_group_tests_name("e2e_backend", tests, NULL, NULL);
}
