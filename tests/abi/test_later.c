// test_later.c: plugins of this version, of every kind, run in a later host and give the same bits.
// The later host (later.sh) has two more members in every struct, and sets them. The plugins read
// structs in place, or with rlhf_copy_in, and refuse a struct that is longer than theirs
// (copying.h). Rewards and environments run in a worker of the later host, and in its own process.
#include "e2e.h"

#include <rlhf/base.h>

#include <stdio.h>
#include <string.h>

#define GROWN(kind, style) "\"$RLHF_TEST_PLUGINS/grown_" kind "_" style ".so"
#define TRAIN(style)                                                                               \
    "--reward " GROWN("reward", style) ":word=1\" --algo " GROWN(                                  \
        "algo",                                                                                    \
        style) "\" --sink " GROWN("sink",                                                          \
                                  style) "\" --policy model --prompts prompts.txt --set "          \
                                         "sampling.max_new_tokens=8 "                              \
                                         "--set batch.size=12 --set batch.microbatch_tokens=64"
#define PLAY(style)                                                                                \
    "--algo grpo.so --env " GROWN("environment", style) ":most=9\" --policy model --sink " GROWN(  \
        "sink", style) "\" --set sampling.max_new_tokens=4 --set batch.size=8 "                    \
                       "--set algo.group_size=4 --set episodes.turns=3"
#define BOTH                                                                                       \
    " --set policy.init=random --set optim.lr=0.01 --set run.phases=2 --set checkpoint.every=1 "   \
    "--set run.dir="

// Run `what` with a host and compare the policy with that of run `like`.
static void trains(struct e2e *t, const char *host, const char *what, const char *dir,
                   const char *like) {
    if (e2e_shell(t, "%s %s" BOTH "%s", host, what, dir) != 0) fail_msg("%s: %s", dir, t->out);
    if (strstr(t->out, "sink.0 failed")) fail_msg("%s: %s", dir, t->out);
    if (e2e_shell(t,
                  "cmp %s/checkpoints/000002/model.safetensors "
                  "%s/checkpoints/000002/model.safetensors",
                  like, dir) != 0)
        fail_msg("%s: %s", dir, t->out);
}

// The same for a run with a sink, which must have written a file.
static void runs(struct e2e *t, const char *host, const char *what, const char *dir,
                 const char *like) {
    trains(t, host, what, dir, like);
    if (e2e_shell(t, "cat %s/sinks/*/progress.txt | grep -q .", dir) != 0)
        fail_msg("%s: %s", dir, t->out);
}

#define LATER "\"$RLHF_BUILD_DIR/tests/later/build/bin/rlhf-host\""

static void training_has_the_same_bits(void **state) {
    struct e2e *t = *state;
    runs(t, "\"$HOST\"", TRAIN("now"), "now", "now");
    runs(t, LATER, TRAIN("now"), "place", "now");
    runs(t, LATER, TRAIN("now_copying"), "copying", "now");
    runs(t, LATER, TRAIN("now_copying") " --set rewards.isolate=never", "inside", "now");
}

static void playing_has_the_same_bits(void **state) {
    struct e2e *t = *state;
    runs(t, "\"$HOST\"", PLAY("now"), "now", "now");
    runs(t, LATER, PLAY("now"), "place", "now");
    runs(t, LATER, PLAY("now_copying"), "copying", "now");
    runs(t, LATER, PLAY("now_copying") " --set rewards.isolate=never", "inside", "now");
}

// A reward that uses a service with models, for the default policy.
#define SERVED                                                                                     \
    "--algo grpo.so --prompts prompts.txt --set sampling.max_new_tokens=4 --set batch.size=4 "     \
    "--set algo.group_size=2 --reward "

// The services find their own data, although they pass the plugin a shorter copy of their table.
static void services_have_the_same_bits(void **state) {
    struct e2e *t = *state;
    static const char *const rewards[] = {
        "\"imdb.so:", "\"bt_rm.so:", "\"lm_judge.so:model=default,ask=Is it good?,",
        "\"$RLHF_TEST_PLUGINS/language_reward.so:"};
    for (size_t i = 0; i < sizeof rewards / sizeof *rewards; i++) {
        char what[512];
        e2e_shell(t, "rm -rf now place worker");
        snprintf(what, sizeof what, SERVED "%sisolate=false\"", rewards[i]);
        trains(t, "\"$HOST\"", what, "now", "now");
        trains(t, LATER, what, "place", "now");
        snprintf(what, sizeof what, SERVED "%sisolate=true\"", rewards[i]);
        trains(t, LATER, what, "worker", "now");
    }
}

// `plugin check` of the later host finds nothing.
static void checks_find_nothing(void **state) {
    struct e2e *t = *state;
    static const char *const plugins[] = {GROWN("reward", "now"),
                                          GROWN("algo", "now"),
                                          GROWN("sink", "now"),
                                          GROWN("environment", "now"),
                                          GROWN("reward", "now_copying"),
                                          GROWN("algo", "now_copying"),
                                          GROWN("sink", "now_copying"),
                                          GROWN("environment", "now_copying"),
                                          "\"imdb.so",
                                          "\"bt_rm.so"};
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++)
        if (e2e_shell(t, LATER " plugin check %s\"", plugins[i]) != 0) fail_msg("%s", t->out);
}

static void the_contract_of_a_plugin_is_shown(void **state) {
    struct e2e *t = *state;
    char contract[64];
    snprintf(contract, sizeof contract, "  contract %d.%d\n", RLHF_ABI_MAJOR, RLHF_ABI_MINOR);
    assert_int_equal(e2e_shell(t, LATER " plugin info imdb.so"), 0);
    assert_non_null(strstr(t->out, contract));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(training_has_the_same_bits, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(playing_has_the_same_bits, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(services_have_the_same_bits, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_contract_of_a_plugin_is_shown, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(checks_find_nothing, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("abi/later", tests, NULL, NULL);
}
