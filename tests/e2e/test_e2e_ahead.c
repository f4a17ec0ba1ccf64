// test_e2e_ahead.c: rollout.ahead, which samples the responses of a phase while the previous phase
// trains. A fixed rule, and not timing, decides which weights sample which rows, so a run resumes
// to the same bytes.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ONE                                                                                        \
    "--policy model --set policy.init=random --prompts prompts.txt --set log.rollouts=true "       \
    "--set sampling.max_new_tokens=6 --set batch.size=8 --set optim.lr=0.01 "                      \
    "--set optim.schedule_phases=40 --set log.report=false "
#define ANY   ONE "--threads 2 "
#define PAID  "--reward \"$RLHF_TEST_PLUGINS/parity_reward.so\" "
#define PPO   "--algo ppo.so " PAID ANY
#define GRPO  "--algo grpo.so:group_size=2 " PAID ANY
#define AHEAD "--set rollout.ahead=1 "

// Asserts that the metrics of two runs are equal. Times, and the numbers that exist only with
// rollout.ahead, are not compared.
static void same_metrics(struct e2e *t, const char *a, const char *b) {
    static const char *const left_out[] = {"time/",         "perf/",
                                           "trainer/",      "rollouter/",
                                           "/time",         "sampling/staleness",
                                           "rollout_corr/", "sampling/logp_difference"};
    json_t *x = e2e_metrics(t, a), *y = e2e_metrics(t, b), *v;
    const char *name;
    assert_int_equal(json_array_size(x), json_array_size(y));
    for (size_t i = 0; i < json_array_size(x); i++)
        json_object_foreach(json_array_get(x, i), name, v) {
            int skip = 0;
            for (size_t k = 0; k < sizeof left_out / sizeof *left_out; k++)
                skip |= strstr(name, left_out[k]) != NULL;
            if (!skip && !json_equal(v, json_object_get(json_array_get(y, i), name)))
                fail_msg("%s of phase %zu differs between %s and %s", name, i + 1, a, b);
        }
    json_decref(x);
    json_decref(y);
}

static int has_metric(struct e2e *t, const char *run, size_t row, const char *name) {
    json_t *rows = e2e_metrics(t, run);
    const int there = json_object_get(json_array_get(rows, row), name) != NULL;
    json_decref(rows);
    return there;
}

// Makes a checkpoint to start from, in the directory `start`.
static void make_start(struct e2e *t) {
    if (e2e_exists(t, "start")) return;
    assert_int_equal(e2e_run(t, PPO "--set run.phases=1 --set run.dir=first"), 0);
    assert_int_equal(e2e_shell(t, "cp -rL first/checkpoints/latest start"), 0);
}

// If the weights never change, older and newer weights are equal. So the run gives the same bytes
// as a run that does not sample ahead. Rows of the first phase are never old, so one phase gives
// the same bytes with any learning rate.
static void without_staleness_nothing_changes(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {
        "--algo ppo.so:old_logp=recompute " PAID ANY,
        "--algo grpo.so:group_size=2,old_logp=recompute " PAID ANY,
        "--algo grpo.so:group_size=2,old_logp=recompute,dynamic_sampling=true,"
        "logprob_support=sampled --set sampling.top_k=7 " PAID ANY,
        "--algo rloo.so:group_size=2,correction=token " PAID ANY "--set policy.init=pretrained "
        "--policy start --set policy.adapter.rank=2 "};
    char a[8], b[8], path[2][64];
    make_start(t);
    for (int k = 0; k < 8; k++) {
        const char *rate = k < 4 ? "--set optim.lr=0 --set run.phases=3" : "--set run.phases=1";
        snprintf(a, sizeof a, "a%d", k);
        snprintf(b, sizeof b, "b%d", k);
        if (e2e_run(t, "%s %s --set run.dir=%s", how[k % 4], rate, a) != 0) fail_msg("%s", t->out);
        if (e2e_run(t, "%s %s " AHEAD "--set run.dir=%s", how[k % 4], rate, b) != 0)
            fail_msg("%s", t->out);
        same_metrics(t, a, b);
        assert_int_equal(e2e_shell(t, "cmp %s/samples.jsonl %s/samples.jsonl", a, b), 0);
        assert_int_equal(e2e_shell(t, "rm %s/checkpoints/latest/state/ahead.rows", b), 0);
        snprintf(path[0], sizeof path[0], "%s/checkpoints/latest/", a);
        snprintf(path[1], sizeof path[1], "%s/checkpoints/latest/", b);
        // The prompts' cursor points past the batch in flight.
        assert_int_equal(e2e_shell(t,
                                   "for d in %s %s; do sed -i 's/\"data\": {[^}]*}//' "
                                   "$d/state/run.json; done",
                                   path[0], path[1]),
                         0);
        e2e_same_tree(t, path[0], path[1]);
    }
}

// From the second phase on, the age of all rows is exactly one phase.
static void staleness_is_one_phase(void **state) {
    struct e2e *t = *state;
    static const char *const names[] = {"time/waited_rollout", "time/waited_update",
                                        "trainer/idle_ratio", "rollouter/idle_ratio",
                                        "rollout_corr/rollout_is_mean"};
    assert_int_equal(e2e_run(t, PPO AHEAD
                             "--set run.phases=4 --set algo.epochs=3 --set algo.minibatches=2 "
                             "--set run.dir=a"),
                     0);
    e2e_says(t, "rollout.ahead: 1 thread samples the next phase's responses while 1 trains");
    e2e_says(t, "rollout.ahead: training waited for responses in ");
    json_t *m = e2e_metrics(t, "a");
    for (int i = 0; i < 4; i++) {
        assert_true(e2e_metric(m, i, "sampling/staleness_mean") == (i ? 6 : 0));
        assert_true(e2e_metric(m, i, "sampling/staleness_max") == (i ? 6 : 0));
        assert_true((e2e_metric(m, i, "rollout_corr/k3_kl") > 0) == (i > 0));
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            assert_true(e2e_metric(m, i, names[k]) >= 0);
        // Shares of the same time.
        const double waited = e2e_metric(m, i, "time/waited_update"),
                     trainer = e2e_metric(m, i, "trainer/idle_ratio"),
                     rollouter = e2e_metric(m, i, "rollouter/idle_ratio");
        assert_true(rollouter <= 1 && trainer <= 1 && waited > 0);
        const double phase = waited / rollouter;
        assert_true(fabs(e2e_metric(m, i, "time/waited_rollout") - trainer * phase) < 1e-6 * phase);
        assert_true(phase <= e2e_metric(m, i, "time/training"));
        // Only rows that the same weights sampled are compared with the sampler's log-probs.
        assert_int_equal(has_metric(t, "a", (size_t)i, "sampling/logp_difference/max"), i == 0);
    }
    json_decref(m);
}

// ---- resuming ----

static const char *const kinds[] = {
    PPO AHEAD,
    "--algo grpo.so:group_size=2,dynamic_sampling=true,correction=sequence,correction_mode=mask,"
    "correction_cap=1.2 " PAID ANY AHEAD,
    "--algo grpo.so:group_size=2,logprob_support=sampled --set sampling.top_k=7 " PAID ANY AHEAD,
    "--algo rloo.so:group_size=2 " PAID ANY AHEAD "--policy start --set policy.init=pretrained "
    "--set policy.adapter.rank=2 ",
    "--algo \"$RLHF_TEST_PLUGINS/choosing_algo.so:stale=1\" " PAID ANY AHEAD};
enum { KINDS = sizeof kinds / sizeof *kinds };

// Samples are also written in the last phase. So if a run was extended, it has more samples.
static void the_same_run(struct e2e *t, const char *a, const char *b, int phases, int extended) {
    char path[2][64];
    same_metrics(t, a, b);
    assert_int_equal(e2e_shell(t,
                               "for f in %s rollouts spread; do "
                               "cmp %s/$f.jsonl %s/$f.jsonl || exit 1; done",
                               extended ? "" : "samples", a, b),
                     0);
    snprintf(path[0], sizeof path[0], "%s/checkpoints/%06d", a, phases);
    snprintf(path[1], sizeof path[1], "%s/checkpoints/%06d", b, phases);
    e2e_same_tree(t, path[0], path[1]);
    snprintf(path[0], sizeof path[0], "%s/checkpoints/%06d/state/ahead.rows", a, phases);
    assert_true(e2e_exists(t, path[0]));
}

static void a_stopped_run_goes_on_with_the_same_bytes(void **state) {
    struct e2e *t = *state;
    char a[8], b[8];
    for (int k = 0; k < KINDS; k++) {
        snprintf(a, sizeof a, "s%d", k);
        snprintf(b, sizeof b, "r%d", k);
        if (e2e_run(t, "%s --set run.phases=4 --set run.dir=%s", kinds[k], a) != 0)
            fail_msg("%s", t->out);
        assert_int_equal(e2e_run(t, "%s --set run.phases=4 --set run.stop_after=1 --set run.dir=%s",
                                 kinds[k], b),
                         0);
        assert_int_equal(e2e_run(t, "--resume %s --set run.stop_after=2", b), 0);
        assert_int_equal(e2e_run(t, "--resume %s --threads 3 --set rollout.threads=2", b), 0);
        the_same_run(t, a, b, 4, 0);
        if (k > 0) continue;
        // If a finished run is extended, it continues like a run that never ended.
        snprintf(b, sizeof b, "l%d", k);
        assert_int_equal(e2e_run(t, "%s --set run.phases=2 --set run.dir=%s", kinds[k], b), 0);
        assert_int_equal(e2e_run(t, "--resume %s --set run.phases=4", b), 0);
        the_same_run(t, a, b, 4, 1);
    }
}

static void a_killed_run_goes_on_with_the_same_bytes(void **state) {
    struct e2e *t = *state;
    const char *how = GRPO AHEAD "--set checkpoint.every=1 --set checkpoint.keep=20 "
                                 "--set run.phases=12";
    assert_int_equal(e2e_run(t, "%s --set run.dir=k", how), 0);
    assert_int_equal(e2e_shell(t,
                               "\"$HOST\" %s --set run.dir=d >/dev/null 2>&1 & "
                               "for n in 02 04 07; do "
                               "while [ ! -e d/checkpoints/0000$n ]; do sleep 0.01; done; "
                               "kill -9 $!; wait $! 2>/dev/null; [ ! -e d/checkpoints/000012 ] || "
                               "exit 1; \"$HOST\" --resume d >/dev/null 2>&1 & done; wait $!",
                               how),
                     0);
    the_same_run(t, "k", "d", 12, 0);
}

// If a phase fails, the checkpoint of the phase before remains, with the batch as it was sampled.
static void a_failed_phase_goes_back(void **state) {
    struct e2e *t = *state;
    const char *how = "--reward \"$RLHF_TEST_PLUGINS/faulty_reward.so:how=%s,phase=3\" "
                      "--algo grpo.so:group_size=2 " ANY AHEAD "--set checkpoint.every=%d "
                      "--set checkpoint.keep=0 --set run.phases=4 --set run.dir=%s "
                      "--set prompts.prepend_bos=true";
    assert_int_equal(e2e_run(t, how, "none", 1, "f0"), 0);
    assert_int_equal(e2e_run(t, how, "status", 0, "f1"), 1);
    e2e_says(t, "2 phases are kept");
    e2e_same_tree(t, "f0/checkpoints/000002", "f1/checkpoints/000002");
}

// Recomputing a phase needs no sampler.
static void phases_can_be_recomputed(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GRPO AHEAD "--set checkpoint.every=1 --set checkpoint.keep=0 "
                                           "--set run.phases=3 --set run.dir=c"),
                     0);
    assert_int_equal(e2e_run(t, "verify c --phase 3 --backend reference"), 0);
    e2e_says(t, "phase 3: equal within the limits");
}

// ---- refusals ----

static void what_cannot_be_is_refused(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *how, *says;
    } cases[] = {
        {"--algo \"$RLHF_TEST_PLUGINS/choosing_algo.so\" " PAID ANY AHEAD,
         "rollout.ahead is 1, but choosing_algo.so does not correct for rows that an older policy "
         "sampled (RLHF_PLAN_STALE); rollout.ahead=0 is allowed"},
        {PPO AHEAD "--set rewards.overlap=true", "rewards.overlap is true, but with "
                                                 "rollout.ahead=1"},
        {PPO AHEAD "--set rollout.threads=2",
         "rollout.threads is 2, but the run has 2 threads (run.threads), and training needs one; "
         "at most 1 is allowed"},
        {PPO "--set rollout.threads=1", "rollout.threads has no effect here: rollout.ahead is 0"},
        {PPO "--set rollout.ahead=2", "rollout.ahead"},
        {"--algo sft.so --data texts.jsonl --policy model --set policy.init=random " AHEAD,
         "rollout.ahead is 1, but sft.so draws no responses; rollout.ahead=0 is allowed"},
        {PPO AHEAD "--set algo.correction_cap=0.5", "correction_cap is 0.5"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(e2e_run(t, "%s --set run.phases=1 --set run.dir=x", cases[i].how), 2);
        e2e_says(t, cases[i].says);
        assert_false(e2e_exists(t, "x"));
    }
}

static void a_checkpoint_that_does_not_fit_is_refused(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *damage, *says;
    } cases[] = {
        {"rm $f", "ahead.rows"},
        {"truncate -s 100 $f", "ahead.rows is damaged: its head does not fit its length"},
        {"printf x | dd of=$f bs=1 seek=70 conv=notrunc 2>/dev/null",
         "ahead.rows is damaged: its checksum"},
        {"printf x | dd of=$f bs=1 seek=3 conv=notrunc 2>/dev/null",
         "ahead.rows is damaged: it does not hold sampled rows"},
        {"cp z/checkpoints/000001/state/ahead.rows $f",
         "the responses in flight begin with number 8 of the run, but the phase's first is 16"}};
    assert_int_equal(e2e_run(t, PPO AHEAD "--set run.phases=3 --set run.stop_after=2 "
                                          "--set checkpoint.every=1 --set run.dir=z"),
                     0);
    assert_int_equal(e2e_run(t, "--resume z --set rollout.ahead=0"), 2);
    e2e_says(t, "rollout.ahead");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(e2e_shell(t,
                                   "rm -rf y; cp -a z y; f=y/checkpoints/000002/state/ahead.rows; "
                                   "%s",
                                   cases[i].damage),
                         0);
        assert_in_range(e2e_run(t, "--resume y"), 1, 2);
        e2e_says(t, cases[i].says);
    }
}

// ---- memory ----

static double bytes_of(struct e2e *t, const char *role, const char *use, const char *how) {
    double sum = 0;
    assert_int_equal(e2e_run(t,
                             "--algo ppo.so " PAID ONE
                             "%s --set run.phases=1 --dry-run --set log.format=json",
                             how),
                     0);
    const char *at = strstr(t->out, "{\"event\": \"memory\"");
    assert_non_null(at);
    json_t *v = json_loads(at, JSON_DISABLE_EOF_CHECK, NULL), *b;
    size_t i;
    json_array_foreach(json_object_get(v, "buffers"), i, b) {
        if (strcmp(json_string_value(json_object_get(b, "role")), role) != 0) continue;
        if (strcmp(json_string_value(json_object_get(b, "use")), use) != 0) continue;
        sum += json_number_value(json_object_get(b, "bytes"));
    }
    json_decref(v);
    return sum;
}

// The estimate includes the second instance's weights, cache and activations.
static void memory_of_the_second_instance_is_counted(void **state) {
    struct e2e *t = *state;
    static const char *const uses[] = {"weights", "packed weights", "cache", "activations"};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        assert_true(bytes_of(t, "sampler", uses[i], "") == 0);
        assert_true(bytes_of(t, "sampler", uses[i], AHEAD) > 0);
    }
    assert_true(bytes_of(t, "cpu", "workspace", AHEAD) > bytes_of(t, "cpu", "workspace", ""));
    assert_true(bytes_of(t, "host", "rows", AHEAD) > bytes_of(t, "host", "rows", ""));
    // The workspaces of sampling depend on the number of threads that sample, not on the number of
    // threads that train.
    const double trains = bytes_of(t, "cpu", "workspace", "--threads 7 ");
    const double one =
        bytes_of(t, "cpu", "workspace", AHEAD "--threads 8 --set rollout.threads=1 ");
    const double seven =
        bytes_of(t, "cpu", "workspace", AHEAD "--threads 14 --set rollout.threads=7 ");
    assert_true(one > trains && one < seven);
    // All parameters but the value head.
    const double all = bytes_of(t, "policy", "weights", ""),
                 own = bytes_of(t, "sampler", "weights", AHEAD);
    assert_true(own > all / 2 && own < all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_staleness_nothing_changes),
        cmocka_unit_test(staleness_is_one_phase),
        cmocka_unit_test(a_stopped_run_goes_on_with_the_same_bytes),
        cmocka_unit_test(a_killed_run_goes_on_with_the_same_bytes),
        cmocka_unit_test(a_failed_phase_goes_back),
        cmocka_unit_test(phases_can_be_recomputed),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_checkpoint_that_does_not_fit_is_refused),
        cmocka_unit_test(memory_of_the_second_instance_is_counted),
    };
    return cmocka_run_group_tests(tests, e2e_setup, e2e_teardown);
}
