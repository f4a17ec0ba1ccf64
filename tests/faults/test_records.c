// test_records.c: one write to a run's records fails. The run keeps the phases before it. After a
// resume it ends with the same bytes as a run that never failed, and `verify` accepts it.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRELOAD                                                                                    \
    "ASAN_OPTIONS=\"verify_asan_link_order=0:$ASAN_OPTIONS\" "                                     \
    "LD_PRELOAD=\"$RLHF_TEST_PLUGINS/../faults/fault_files.so\" "

// No phase writes a checkpoint, so after a failure a checkpoint of the last boundary is
// written.
#define RUN                                                                                        \
    "--algo ppo.so --reward period_count.so --policy model --prompts prompts.txt "                 \
    "--set policy.init=random --set batch.size=4 --set sampling.max_new_tokens=4 "                 \
    "--set algo.minibatches=1 --set log.samples=1 --set log.csv=true --set log.tensorboard=true "  \
    "--set log.rollouts=true --set checkpoint.every=0 --set checkpoint.every_s=0 --threads 1 "     \
    "--phases 3 "

// Returns the number of the operation that is the `which`-th write to the file `name` after phase
// 1, from 1. The list log.txt has a line for each operation, and one more for each rename. In each
// phase, metrics.csv is the last file that is written. Returns 0 if the second write is missing:
// samples are not written in every phase.
static int operation(struct e2e *t, const char *name, int which) {
    const int status = e2e_shell(t,
                                 "grep -v '^from ' log.txt | awk '/^write .*\\/u\\/metrics.csv$/ "
                                 "{ later = 1; if (!i++) next } later && /^write .*\\/u\\/%s/ && "
                                 "++n == %d { print NR }'",
                                 name, which);
    assert_int_equal(status, 0);
    const int n = atoi(t->out);
    if (n < which && which == 1) fail_msg("%s is not written", name);
    return n;
}

// The `which`-th write to the file fails. Returns 1 if the run failed. A sink that fails cannot end
// the run.
static int fails_once(struct e2e *t, const char *name, int which) {
    const int n = operation(t, name, which);
    const int table = strcmp(name, "metrics.csv") == 0;
    const int sink = table || strcmp(name, "tensorboard") == 0;
    if (n == 0) return 0;
    const int status =
        e2e_shell(t, "rm -rf x; FAULT=eio:%d " PRELOAD "\"$HOST\" " RUN "--out x", n);
    if (status != 0 && (sink || status != 1))
        fail_msg("%s, write %d: %d:\n%s", name, which, status, t->out);
    if (sink)
        e2e_says(t, table ? "warning: log.csv failed: " : "warning: log.tensorboard failed: ");
    if (status == 1) {
        if (e2e_run(t, "--resume x --trust-run") != 0) fail_msg("%s: %s", name, t->out);
    }
    if (e2e_shell(t, "\"$HOST\" verify x") != 0) fail_msg("%s, write %d:\n%s", name, which, t->out);
    e2e_same_tree(t, "u/checkpoints/latest/", "x/checkpoints/latest/");
    // Which phases have samples depends on the time.
    assert_int_equal(
        e2e_shell(t,
                  "for f in metrics.jsonl rollouts.jsonl spread.jsonl; do "
                  "grep -o '\"phase\": [0-9]*' x/$f >a; "
                  "grep -o '\"phase\": [0-9]*' u/$f | diff a - || exit 1; done; "
                  "cut -d, -f1 x/metrics.csv >a; cut -d, -f1 u/metrics.csv | "
                  "%s diff a - && grep -o '\"phase\": [0-9]*' x/samples.jsonl | sort -c",
                  table ? "head -n $(wc -l <a) |" : ""),
        0);
    return status == 1;
}

static void a_failed_write_costs_a_phase(void **state) {
    static const char *const names[] = {"chain.jsonl", "metrics.jsonl",  "tensorboard",
                                        "metrics.csv", "rollouts.jsonl", "samples.jsonl",
                                        "spread.jsonl"};
    struct e2e *t = *state;
    int failed = 0;
    assert_int_equal(
        e2e_shell(t, "FAULT=count:0 FAULT_LOG=log.txt " PRELOAD "\"$HOST\" " RUN "--out u"), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int which = 1; which <= 2; which++)
            failed += fails_once(t, names[i], which);
    assert_true(failed > 7);
}

// Earlier versions wrote the checkpoint's line after a line of the phase that failed.
static void an_earlier_version_left_a_line(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, RUN "--out u"), 0);
    assert_int_equal(e2e_run(t, RUN "--set run.stop_after=1 --out x"), 0);
    assert_int_equal(e2e_shell(t,
                               "cd x && grep '\"phase\": 2,.*\"rows\"' ../u/chain.jsonl >later && "
                               "grep '\"seal\"' chain.jsonl >sealed && "
                               "grep -v '\"seal\"' chain.jsonl >first && "
                               "cat first later sealed >chain.jsonl && rm first later sealed && "
                               "\"$HOST\" --resume . --set run.stop_after=0 --trust-run && "
                               "\"$HOST\" verify ."),
                     0);
}

// A run that is stopped before its first phase, while its reward model is calibrated, keeps a
// checkpoint. Resumed, it has the head of a run that was never stopped, and `verify` accepts it.
static void a_stop_before_the_first_phase(void **state) {
    struct e2e *t = *state;
    const char *args = "--algo bradley_terry.so --data pairs.jsonl --policy model "
                       "--set policy.init=random --set batch.size=1 --set score.calibrate=4 "
                       "--set sampling.max_new_tokens=4 --threads 1 --phases 1";
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"It was\", \"chosen\": \" a fine film\", \"rejected\": \" dull\"}\n");
    assert_int_equal(e2e_run(t, "%s --out u", args), 0);
    int kept = 0;
    for (int n = 10; n < 60 && !kept; n++) {
        const int status =
            e2e_shell(t, "rm -rf x; FAULT=int:%d " PRELOAD "\"$HOST\" %s --out x", n, args);
        kept = status == 130 && e2e_exists(t, "x/checkpoints/000000");
    }
    assert_true(kept);
    assert_int_equal(e2e_run(t, "--resume x"), 0);
    e2e_same_tree(t, "u/checkpoints/latest/", "x/checkpoints/latest/");
    assert_int_equal(e2e_shell(t, "grep -c '\"begin\"' x/chain.jsonl"), 0);
    assert_string_equal(t->out, "1\n");
    if (e2e_shell(t, "\"$HOST\" verify x --all") != 0) fail_msg("%s", t->out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_failed_write_costs_a_phase, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_stop_before_the_first_phase, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(an_earlier_version_left_a_line, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("faults_records", tests, NULL, NULL);
}
