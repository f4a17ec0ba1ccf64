// test_worker_floods.c: a worker's messages are limited. If there are too many or malformed
// messages, the worker is ended and the run continues.
#include "e2e/e2e.h"

#include <string.h>

#define RUN                                                                                        \
    "--algo ppo.so --policy model --set policy.init=random --prompts prompts.txt "                 \
    "--set batch.size=8 --set sampling.max_new_tokens=4 --set run.phases=2 --set run.dir=r "
#define FLOOD "--reward \"$RLHF_TEST_PLUGINS/flood_reward.so:how=%s\" "

// Asserts that the run succeeds and that its output contains `says`.
static void is_borne(struct e2e *t, const char *how, const char *says) {
    e2e_shell(t, "rm -rf r");
    assert_int_equal(e2e_run(t, RUN FLOOD, how), 0);
    e2e_says(t, says);
}

// Asserts that the rows of the call fail within `seconds`, for the reason `says`.
static void is_ended_with(struct e2e *t, const char *options, int seconds, const char *how,
                          const char *says) {
    e2e_shell(t, "rm -rf r");
    assert_int_equal(e2e_run(t, RUN "%s --set rewards.timeout_s=%d " FLOOD, options, seconds, how),
                     1);
    e2e_says(t, "flood_reward.so, score(), phase 1: ");
    e2e_says(t, says);
}

static void is_ended(struct e2e *t, int seconds, const char *how, const char *says) {
    is_ended_with(t, "", seconds, how, says);
}

static void metrics_are_bounded(void **state) {
    struct e2e *t = *state;
    is_borne(t, "long_name", "...\" is left out: its name may contain only letters");
    is_borne(t, "long_name,isolate=false", "...\" is left out: its name may contain only ");
    is_borne(t, "many_metrics", "flood_reward: it reports more than 1024 metrics in a phase");
    assert_int_equal(e2e_shell(t, "head -1 r/metrics.jsonl | tr ',' '\\n' | "
                                  "grep -c rewards/flood_reward/metric | grep -qx 1024"),
                     0);
}

static void messages_are_bounded(void **state) {
    struct e2e *t = *state;
    is_ended(t, 200, "many_messages",
             "in one call it sent more than 1000000 messages, or 256 MiB of");
    is_ended(t, 200, "long_lines", "in one call it sent more than 1000000 messages, or 256 MiB of");
    is_ended(t, 200, "much_printed",
             "in one call it sent more than 1000000 messages, or 256 MiB of");
    is_borne(t, "one_long_line", "flood_reward: xxxx");
}

// The host ends the worker at once. If it waited, the worker would end with its own status.
static void nonsense_ends_a_worker_at_once(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"no_answer", "no_call", "no_frame", "no_text"};
    for (size_t i = 0; i < sizeof how / sizeof *how; i++)
        is_ended(t, 200, how[i], "it sent what no worker sends; its worker was ended");
    is_ended(t, 200, "long_answer",
             "it sent a message of more than 16 MiB to the host; its worker");
}

static void the_host_is_not_kept_busy(void **state) {
    struct e2e *t = *state;
    // One of three limits ends the worker: the time limit, the limit on messages (if a million
    // calls are answered sooner), or the limit on processor time. The time that the host works
    // extends only the time limit.
    is_ended(t, 1, "calls_for_ever", "its worker was ended");
    is_ended(t, 2, "unread_replies", "it took longer than 2 s (rewards.timeout_s); its worker was");
}

static void objects_are_bounded(void **state) {
    struct e2e *t = *state;
    is_ended(t, 200, "many_objects", "it has more than 64 models and tokenizers open");
    is_ended(t, 200, "no_array", "encode() of a service needs ids, but one is NULL");
}

static void memory_that_is_written_is_limited(void **state) {
    struct e2e *t = *state;
    is_borne(t, "memory_files", "done after 2 of 2 phases");
    if (e2e_shell(t, "test -n \"$RLHF_TEST_SANITIZE\"") == 0) skip(); // the list stays empty
    is_ended_with(t, "--set rewards.memory_mib=64", 200, "memory_files",
                  "there is no memory for a file (rewards.memory_mib allows its worker 64 MiB)");
}

// Prints the living processes of the test. Their environments contain the name of the test's
// directory.
#define SHOW_LEFT                                                                                  \
    "for e in /proc/[0-9]*/environ; do tr '\\0' '\\n' 2>/dev/null <$e | "                          \
    "grep -qx \"BOMB=$PWD\" && ! [ ${e%%/environ} = /proc/$$ ] && echo still there: $e; done; "

// A fork bomb starts many processes. The end of the run removes all of them, without waiting or
// searching.
static void a_fork_bomb_is_ended(void **state) {
    struct e2e *t = *state;
    static const char *const as[] = {"", "no-namespaces"};
    for (size_t i = 0; i < sizeof as / sizeof *as; i++) {
        const int status = e2e_shell(
            t,
            "rm -rf r; export BOMB=$PWD; \"$RLHF_TEST_PLUGINS/walled\" %s \"$HOST\" " RUN
            "--threads 1 --set rewards.timeout_s=2 "
            "--reward \"$RLHF_TEST_PLUGINS/flood_reward.so:how=fork_bomb\"; s=$?; " SHOW_LEFT
            "exit $s",
            as[i]);
        if (status == 77) continue;
        assert_int_equal(status, 1);
        e2e_says(t, "it took longer than 2 s (rewards.timeout_s); its worker was ended");
        assert_null(strstr(t->out, "still there"));
    }
}

// The warden ends a worker's processes. If the warden itself is killed, the host ends them, without
// waiting for their sockets.
static void nothing_outlives_a_killed_warden(void **state) {
    struct e2e *t = *state;
    const int status = e2e_shell(
        t, "rm -rf r; export BOMB=$PWD; \"$RLHF_TEST_PLUGINS/walled\" no-namespaces "
           "\"$HOST\" " RUN "--threads 1 --set rewards.timeout_s=50 "
           "--reward \"$RLHF_TEST_PLUGINS/flood_reward.so:how=children\" >out 2>&1 & p=$!; "
           "for i in $(seq 200); do w=$(sed -n 's/.*its parent is \\([0-9]*\\)\\..*/\\1/p' "
           "out); [ \"$w\" ] && break; kill -0 $p || break; sleep 0.1; done; "
           "[ \"$w\" ] && kill -9 $w; wait $p; s=$?; cat out; " SHOW_LEFT "exit $s");
    if (status == 77) skip();
    assert_int_equal(status, 1);
    e2e_says(t, "its worker was ended by signal 9");
    assert_null(strstr(t->out, "still there"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, e2e_setup, e2e_teardown)
    const struct CMUnitTest tests[] = {
        T(metrics_are_bounded),
        T(messages_are_bounded),
        T(nonsense_ends_a_worker_at_once),
        T(the_host_is_not_kept_busy),
        T(objects_are_bounded),
        T(memory_that_is_written_is_limited),
        T(a_fork_bomb_is_ended),
        T(nothing_outlives_a_killed_warden),
    };
    return cmocka_run_group_tests_name("worker floods", tests, NULL, NULL);
}
