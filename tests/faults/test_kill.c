// test_kill.c: a run is killed before its n-th change of a file, or that change fails. If the run
// directory then has a checkpoint, the resumed run ends with the same bytes as an undisturbed run.
// Otherwise the program reports that a checkpoint is missing.
//
// By default a few n are tested. With RLHF_TEST_LONG=1, every n is tested twice: with a kill and
// with one of the other failures. The run is also killed after several fixed times, at whatever
// point it has then reached.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMON                                                                                     \
    "--policy model --set policy.init=random --set checkpoint.every=1 --set checkpoint.keep=1 "    \
    "--phases 3 --threads 1 "
#define DRAWN   "--set sampling.max_new_tokens=4 "
#define ROLLOUT COMMON DRAWN "--set log.samples=1 --prompts prompts.txt --set batch.size=8 "
#define EVEN    "\"$RLHF_TEST_PLUGINS/even_judge.so\""

struct plan {
    const char *args;
    int tries; // number of tries of the short form
};

static const char *const ways[] = {"kill:%ld", "enospc:%ld", "torn:%ld", "eio:%ld", "enospc:%ld+"};

static int is_long(void) {
    const char *v = getenv("RLHF_TEST_LONG");
    return v && *v && strcmp(v, "0") != 0;
}

// A sanitizer's runtime expects to be the first library that is loaded. This is not necessary here.
#define PRELOAD                                                                                    \
    "ASAN_OPTIONS=\"verify_asan_link_order=0:$ASAN_OPTIONS\" "                                     \
    "LD_PRELOAD=\"$RLHF_TEST_PLUGINS/../faults/fault_files.so\" "

// Makes the undisturbed run u. Returns how often it changes a file.
static long count(struct e2e *t, const char *args) {
    assert_int_equal(
        e2e_shell(t, "FAULT=count:0 FAULT_COUNT=count.txt " PRELOAD "\"$HOST\" %s --out u", args),
        0);
    assert_int_equal(e2e_shell(t, "cat count.txt"), 0);
    long n = strtol(t->out, NULL, 10);
    assert_true(n > 20);
    return n;
}

// Run x was stopped in the way `what`. Asserts that x resumes to the files of run u, or that x had
// no checkpoint. (A checkpoint counts even if it has its name but not yet the link `latest`.)
static void check_resume(struct e2e *t, const char *what) {
    int had = e2e_exists(t, "x/checkpoints/latest/state/run.json");
    int status = e2e_run(t, "--resume x --trust-run");
    if (status != 0 && (had || status != 2))
        fail_msg("%s: resuming %s a checkpoint ends with %d:\n%s", what, had ? "with" : "without",
                 status, t->out);
    if (status != 0) return;
    if (e2e_shell(t, "diff -r u/checkpoints/latest/ x/checkpoints/latest/ && "
                     "grep -c '\"phase\"' x/metrics.jsonl") != 0 ||
        strcmp(t->out, "3\n") != 0)
        fail_msg("%s: resumed, it differs:\n%s", what, t->out);
}

static int lines_with(const char *text, const char *part) {
    int n = 0;
    for (const char *p = text; (p = strstr(p, part)) != NULL; p++)
        n++;
    return n;
}

static void strike(struct e2e *t, const char *args, const char *way, long n) {
    char what[64];
    snprintf(what, sizeof what, way, n);
    int status = e2e_shell(t, "rm -rf x; FAULT=%s " PRELOAD "\"$HOST\" %s --out x", what, args);
    if (way[0] == 'k' || way[0] == 't') {
        if (status != 128 + 9) fail_msg("%s: status %d:\n%s", what, status, t->out);
    } else if (status != 0) { // some failures do no harm
        if (status != 1 || lines_with(t->out, "rlhf-host: error: ") != 1)
            fail_msg("%s: status %d:\n%s", what, status, t->out);
    }
    check_resume(t, what);
}

// Kills the run `ms` after its start, which may be at any point.
static void kill_at(struct e2e *t, const char *args, int ms) {
    char what[64];
    snprintf(what, sizeof what, "killed after %d ms", ms);
    e2e_shell(t, "rm -rf x; \"$HOST\" %s --out x & sleep 0.%03d; kill -KILL $!; wait $!", args, ms);
    check_resume(t, what);
}

static void sweep(struct e2e *t, const char *args, int tries) {
    long n = count(t, args), steps = is_long() ? n : tries;
    size_t n_ways = sizeof ways / sizeof *ways;
    for (long k = 0; k < steps; k++) {
        long at = is_long() ? k + 1 : 1 + (2 * k + 1) * n / (2 * steps);
        size_t other = is_long() ? 1 + (size_t)k % (n_ways - 1) : (size_t)k % n_ways;
        if (is_long()) strike(t, args, ways[0], at);
        strike(t, args, ways[other], at);
    }
    for (int ms = 5; is_long() && ms < 600; ms += 7)
        kill_at(t, args, ms);
}

static void supervised(void **state) {
    sweep(*state, "--algo sft.so --data texts.jsonl --set batch.size=16 " COMMON, 10);
}

static void rollouts(void **state) {
    sweep(*state,
          "--algo ppo.so --reward period_count.so --set algo.minibatches=1 "
          "--set checkpoint.best=objective/scores --set value.critic=separate " ROLLOUT,
          5);
}

static void groups(void **state) {
    if (is_long())
        sweep(*state,
              "--algo grpo.so:group_size=4 --reward period_count.so "
              "--set checkpoint.dtype=bf16 " ROLLOUT,
              0);
}

static void preferences(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"It was\", \"chosen\": \" a fine film\", \"rejected\": \" dull\"}\n");
    const char *pairs = "--algo bradley_terry.so --data pairs.jsonl --set batch.size=1 "
                        "--set score.calibrate=8 " COMMON DRAWN;
    assert_int_equal(e2e_run(t, "%s --out r", pairs), 0);
    assert_int_equal(e2e_shell(t, "mv r/checkpoints/000003 rm; rm -r r"), 0);
    if (is_long()) sweep(t, pairs, 0);
    if (is_long()) assert_int_equal(e2e_shell(t, "rm -r u"), 0);
    sweep(t,
          "--algo grpo_iterative.so:replay=true,group_size=4,iteration_phases=1 "
          "--reward bt_rm.so:model=rm --judge " EVEN " --set score.calibrate=8 " ROLLOUT,
          5);
}

// Whatever the first operations leave, the same command begins the run again.
static void a_start_is_begun_again(void **state) {
    struct e2e *t = *state;
    const char *args = "--algo sft.so --data texts.jsonl --set batch.size=4 " COMMON;
    for (int n = 1; n <= 16; n++)
        for (int way = 0; way < 2; way++) {
            const int st = e2e_shell(t, "rm -rf x; FAULT=%s:%d " PRELOAD "\"$HOST\" %s --out x",
                                     way ? "eio" : "kill", n, args);
            if (st == 0) continue; // the failure did no harm
            if (e2e_run(t, "%s --out x", args) != 0 ||
                e2e_shell(t, "test -z \"$(ls x | grep tmp)\"") != 0)
                fail_msg("operation %d: %s", n, t->out);
        }
}

// The same, if the second beginning is interrupted while it removes what the first one left.
static void a_second_start_is_begun_again(void **state) {
    struct e2e *t = *state;
    const char *args =
        "--algo sft.so --data texts.jsonl --set batch.size=4 " COMMON "--set checkpoint.every=0";
    for (int n = 1; n <= 30; n++) {
        const int first = n % 2 ? 45 : 70; // before and after the first phase
        e2e_shell(t, "rm -rf x; FAULT=kill:%d " PRELOAD "\"$HOST\" %s --out x", first, args);
        e2e_shell(t, "FAULT=%s:%d " PRELOAD "\"$HOST\" %s --out x", n / 2 % 2 ? "eio" : "kill", n,
                  args);
        if (e2e_exists(t, "x/report.html")) continue; // the failure did no harm
        if (e2e_run(t, "%s --out x", args) != 0)
            fail_msg("operation %d of the second start: %s", n, t->out);
    }
}

// A run that ends in its last operations, or whose last operations fail, has all its phases.
// --resume writes its page, and removes the checkpoints that the end could not remove.
static void an_end_is_made_up_for(void **state) {
    struct e2e *t = *state;
    const char *args = "--algo sft.so --data texts.jsonl --set batch.size=4 " COMMON;
    const long n = count(t, args);
    for (long i = n - 30; i <= n; i++)
        for (int way = 0; way < 2; way++) {
            e2e_shell(t, "rm -rf x; FAULT=%s:%ld " PRELOAD "\"$HOST\" %s --out x",
                      way ? "eio" : "kill", i, args);
            if (e2e_run(t, "--resume x") != 0 ||
                e2e_shell(t, "test -s x/report.html && ls -A u/checkpoints >a && "
                             "ls -A x/checkpoints | diff a - && ls -A u >a && "
                             "ls -A x | diff a -") != 0)
                fail_msg("operation %ld of %ld: %s", i, n, t->out);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(supervised, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(rollouts, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(groups, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(preferences, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_start_is_begun_again, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_second_start_is_begun_again, e2e_setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(an_end_is_made_up_for, e2e_setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("faults_kill", tests, NULL, NULL);
}
