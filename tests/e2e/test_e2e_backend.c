// test_e2e_backend.c: the host refuses a compute backend that describes itself wrongly, and accepts
// a newer backend.
#include "e2e.h"

#include <string.h>

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
        {"code",
         "its option \"label\" names code (RLHF_OPT_TRUSTED), which options of kernels must"},
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

// A table that ignores the requested arithmetic gives different bits, so the host refuses it.
static void another_arithmetic_is_refused(void **state) {
    struct e2e *t = *state;
    assert_int_equal(
        e2e_shell(t, "BAD=ignores_arithmetic \"$HOST\" --set compute.arithmetic=v1 " RUN), 2);
    e2e_says(t,
             "compute.arithmetic is v1, but the compute backend reference does not promise these "
             "bits; use compute.backend=cpu, or set compute.arithmetic=auto");
    assert_false(e2e_exists(t, "a"));
    assert_int_equal(e2e_shell(t, "BAD=ignores_arithmetic \"$HOST\" " RUN), 0);
    assert_int_equal(e2e_shell(t, "rm -r a"), 0);
}

static void longer_structs_are_taken(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "BAD=longer \"$HOST\" " RUN), 0);
}

// A failed call of the table is reported with the backend's error text.
static void a_failure_has_its_words(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "BAD=on_fire \"$HOST\" " RUN), 1);
    e2e_says(t, "gradient norm: the device is on fire");
}

#define WITH(options) "\"$HOST\" " RUN ":" options

// Options of kernels follow the name, as options of rewards do, and are stored with the run.
static void options_are_given_after_the_name(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, WITH("fast=true,label=5,parts=a,b") " --set run.phases=3 --set "
                                                                      "run.stop_after=1"),
                     0);
    e2e_says(t, "fast 1, label 5, 2 parts");
    assert_int_equal(e2e_shell(t, "grep -q '\"backend\": \".*bad_kernels.so:fast=true,label=5,"
                                  "parts=a,b\"' a/config.json"),
                     0);
    assert_int_equal(e2e_shell(t, "tr -d ' \\n' <a/manifest.json | grep -qF '\"options\":{\"fast\":"
                                  "true,\"label\":\"5\",\"parts\":[\"a\",\"b\"]}'"),
                     0);
    assert_int_equal(e2e_run(t, "--resume a --set run.stop_after=1"), 2);
    e2e_says(t, "bad_kernels.so:fast=true,label=5,parts=a,b); it is opened when you name it again");
    assert_int_equal(e2e_run(t, "--resume a --trust-run --set run.stop_after=1"), 0);
    e2e_says(t, "fast 1, label 5, 2 parts");
    assert_null(strstr(t->out, "the bits may differ"));
    assert_int_equal(e2e_run(t, "--resume a --set compute.backend=" BAD_KERNELS_SO ":label=x"), 0);
    e2e_says(t, "fast 0, label x, 0 parts");
    e2e_says(
        t, "with the options {\"fast\": true, \"label\": \"5\", \"parts\": [\"a\", \"b\"]} and "
           "goes on with {\"fast\": false, \"label\": \"x\", \"parts\": []}: the bits may differ");
}

static void wrong_options_have_their_sentences(void **state) {
    struct e2e *t = *state;
    static const char *const cases[][2] = {
        {BAD_KERNELS_SO ":fsat=true",
         "bad_kernels.so': compute.backend: unknown key \"fsat\" (did you mean \"fast\"?); see "
         "rlhf-host plugin info /"},
        {BAD_KERNELS_SO ":fast=3", "compute.backend: fast must be true or false, found 3"},
        {BAD_KERNELS_SO ":fast", "compute.backend: \"fast\" is not of the form key=value"},
        {BAD_KERNELS_SO ":fast=true,fast=false", "compute.backend: fast is given twice"},
        {BAD_KERNELS_SO ":parts={}", "parts must be a list of strings, as a,b or [\"a\", \"b\"]"},
        {"reference:fast=true", "compute.backend: unknown key \"fast\"; see rlhf-host plugin info"},
        {"auto:fast=true", "compute backend 'auto:fast=true': auto takes no options; name the "
                           "backend that they are for"},
        {"./gone.so:fast=true", "no compute backend './gone.so': the file './gone.so' does not"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int status = e2e_run(t,
                                   "--algo sft.so --data texts.jsonl --policy model --set "
                                   "run.dir=a --set policy.init=random --set 'compute.backend=%s'",
                                   cases[i][0]);
        if (status != 2) fail_msg("%s: status %d\n%s", cases[i][0], status, t->out);
        e2e_says(t, cases[i][1]);
        assert_false(e2e_exists(t, "a"));
    }
}

static void commands_take_them_too(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_shell(t, "\"$HOST\" devices --backend " BAD_KERNELS_SO ":fast=true"), 0);
    assert_null(strstr(t->out, "not usable"));
    assert_int_equal(e2e_shell(t, "\"$HOST\" devices --backend " BAD_KERNELS_SO ":fast=3"), 0);
    e2e_says(t, "not usable: ");
    e2e_says(t, "fast must be true or false, found 3");
    assert_int_equal(
        e2e_shell(t, "\"$HOST\" generate --prompt x --backend " BAD_KERNELS_SO ":fsat=1"), 2);
    e2e_says(t, "unknown key \"fsat\"");
    assert_int_equal(e2e_shell(t, "\"$HOST\" plugin info " BAD_KERNELS_SO), 0);
    e2e_says(t, "options, set with --set compute.backend=bad_kernels.so:KEY=VALUE:");
    e2e_says(t, "a list of strings, as a,b or [\"a\", \"b\"]; default []");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_wrong_description_is_refused, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(another_arithmetic_is_refused, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(longer_structs_are_taken, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_failure_has_its_words, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(options_are_given_after_the_name, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(wrong_options_have_their_sentences, e2e_setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(commands_take_them_too, e2e_setup, e2e_teardown)};
    return cmocka_run_group_tests_name("e2e_backend", tests, NULL, NULL);
}
