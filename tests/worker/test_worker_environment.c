// test_worker_environment.c: an environment gives the same bytes in a worker as in the host's
// process. If the worker fails, the run continues with the same bytes.
#include "e2e/e2e.h"

#include <string.h>

#define RUN                                                                                        \
    "--algo grpo.so --set algo.group_size=4 --policy model --set policy.init=random "              \
    "--prompts prompts.txt --set batch.size=8 --set run.phases=2 "                                 \
    "--set sampling.max_new_tokens=40 --set episodes.reply_tokens=20 --set optim.lr=0.01 "         \
    "--set log.rollouts=true --set run.seed=5 --set episodes.retries=9 --set episodes.calls=xml "  \
    "--set episodes.tools=hidden --set compute.dtype=f32 "                                         \
    "--set 'sampling.stop=[\"a\",\"e\",\"o\",\"i\",\"n\",\"t\",\"s\",\"r\",259]' "
#define ENV "--env \"$RLHF_TEST_PLUGINS/wild_environment.so:"

static int run(struct e2e *t, const char *dir, const char *options, const char *more) {
    return e2e_run(t, RUN ENV "%s\" --set run.dir=%s %s", options, dir, more);
}

static void good(struct e2e *t, const char *dir, const char *options, const char *more) {
    if (run(t, dir, options, more) != 0) fail_msg("%s: %s", options, t->out);
}

static void same_bytes(struct e2e *t, const char *dir) {
    static const char *const files[] = {"checkpoints/latest/model.safetensors", "rollouts.jsonl",
                                        "samples.jsonl"};
    for (size_t i = 0; i < 3; i++)
        if (e2e_shell(t, "cmp here/%s %s/%s", files[i], dir, files[i]) != 0)
            fail_msg("%s: %s", dir, t->out);
}

static double failures(struct e2e *t, const char *dir) {
    json_t *rows = e2e_metrics(t, dir);
    double sum = 0;
    for (int i = 0; i < 2; i++)
        sum += e2e_metric(rows, i, "episodes/failures");
    json_decref(rows);
    return sum;
}

static void here(struct e2e *t) {
    good(t, "here", "isolate=false", "");
    if (strstr(t->out, "worker process")) fail_msg("%s", t->out);
    e2e_says(t, "wild: 0 states are open");
}

// As with rewards, a third party's environment runs in a worker, unless rewards.isolate or the
// environment's option `isolate` says otherwise.
static void same_as_here(void **state) {
    struct e2e *t = *state;
    here(t);
    static const struct {
        const char *options, *more;
        int apart;
    } all[] = {{"isolate=true", "", 1},
               {"fault=none", "", 1},
               {"fault=none", "--set rewards.isolate=never", 0},
               {"isolate=true", "--set rewards.isolate=never", 1},
               {"fault=slow", "--set rewards.isolate=never", 0},
               {"fault=slow", "", 1}};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        e2e_shell(t, "rm -rf there");
        good(t, "there", all[k].options, all[k].more);
        const int apart = strstr(t->out, "runs in a worker process: ") != NULL;
        if (apart != all[k].apart) fail_msg("%zu: %s", k, t->out);
        e2e_says(t, "wild: 0 states are open");
        same_bytes(t, "there");
    }
    assert_int_equal(e2e_shell(t, "grep '\"worker\": \"no new privileges' there/manifest.json"), 0);
    if (e2e_run(t, "verify there --all --trust-run") != 0) fail_msg("%s", t->out);
    e2e_says(t, "2 of 2 phases");
}

// Whatever the worker does, its episodes are replayed.
static void faults(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *fault, *says, *more;
    } all[] = {{"crash", "its worker was ended by signal 11", ""},
               {"exit", "its worker ended with status 3", ""},
               {"hang", "rewards.timeout_s", "--set rewards.timeout_s=1"},
               {"refuse", "no luck today", ""},
               {"past", "it wrote past the end of out->reward", ""},
               {"past,isolate=false", "it wrote past the end of out->reward", ""},
               {"later", "its worker was ended by signal 11", ""}};
    here(t);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        char options[64];
        e2e_shell(t, "rm -rf there");
        snprintf(options, sizeof options, "fault=%s", all[k].fault);
        good(t, "there", options, all[k].more);
        e2e_says(t, all[k].says);
        e2e_says(t, "played again (1 of 9)");
        if (!(failures(t, "there") >= 2)) fail_msg("%s", t->out);
        same_bytes(t, "there");
    }
}

// A broken rule ends the run, with the same words as in the host's process.
static void rules(void **state) {
    struct e2e *t = *state;
    static const char *const where[] = {"isolate=true", "isolate=false"};
    for (int k = 0; k < 2; k++) {
        char options[64];
        e2e_shell(t, "rm -rf there");
        snprintf(options, sizeof options, "fault=role,%s", where[k]);
        assert_int_equal(run(t, "there", options, ""), 1);
        e2e_says(t, "step(), phase 1: say() has the role");
        e2e_shell(t, "rm -rf there");
        snprintf(options, sizeof options, "fault=thread,%s", where[k]);
        good(t, "there", options, "");
        e2e_says(t,
                 "the metric \"from_a_thread\" is left out: it was reported from another thread");
        assert_int_not_equal(e2e_shell(t, "grep -q from_a_thread there/metrics.jsonl"), 0);
        e2e_shell(t, "rm -rf there; echo '{\"prompt\": \"x\", \"bad\": 1}' > rows.jsonl");
        assert_int_equal(run(t, "there", where[k], "--prompts rows.jsonl"), 2);
        e2e_says(t, "a bad row");
    }
    assert_int_equal(run(t, "there", "isolate=false,network=true", ""), 2);
    e2e_says(t, "environment.network has no effect here: ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(same_as_here, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(faults, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(rules, e2e_setup, e2e_teardown)};
    return cmocka_run_group_tests_name("worker environment", tests, NULL, NULL);
}
