// test_e2e_dpo_rloo.c: dpo.so, kto.so and rloo.so as a user runs them. Checks what they learn and
// refuse, the effect of shared prompts and microbatches, and that the same seed gives the same
// bytes.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COMMON                                                                                     \
    " --policy model --set policy.init=random --set optim.schedule_phases=20 "                     \
    "--set log.tensorboard=false --set log.samples_every=0 "
#define DPO "--algo dpo.so --data pairs.jsonl --set batch.size=8 --set optim.lr=0.003" COMMON
#define RLOO                                                                                       \
    "--algo rloo.so --reward period_count.so --prompts prompts.txt --set batch.size=32 "           \
    "--set sampling.max_new_tokens=24 --set optim.lr=0.003" COMMON

#define KTO "--algo kto.so --data rows.jsonl --set batch.size=8 --set optim.lr=0.003" COMMON

static const char *const algos[] = {DPO, RLOO, KTO};
enum { N_ALGOS = sizeof algos / sizeof *algos };

// rows.jsonl: wanted and unwanted completions.
static void write_rows(struct e2e *t) {
    static const char *const good[] = {" fine work.", " great!", " clever."};
    static const char *const bad[] = {" dull.", " weak work."};
    char rows[8192];
    int at = 0;
    for (int i = 0; i < 32; i++)
        at += snprintf(rows + at, sizeof rows - (size_t)at,
                       "{\"prompt\": \"%s\", \"completion\": \"%s\", \"label\": %s}\n",
                       i % 3 ? "I think it was" : "The plot is",
                       i % 2 ? bad[i % 4 / 2] : good[i % 3], i % 2 ? "false" : "true");
    e2e_write(t, "rows.jsonl", rows);
}

// pairs.jsonl: pairs; every fourth row is a best of three.
static int setup(void **state) {
    if (e2e_setup(state)) return -1;
    char rows[8192];
    int at = 0;
    static const char *const good[] = {"fine", "great", "clever"}, *bad[] = {"dull", "weak"};
    for (int i = 0; i < 32; i++)
        at += i % 4 == 3 ? snprintf(rows + at, sizeof rows - (size_t)at,
                                    "{\"prompt\": \"The plot\", \"responses\": [\" is %s.\", \" is "
                                    "so %s!\", \" was %s.\"], \"best\": 1}\n",
                                    bad[i / 4 % 2], good[i / 4 % 3], bad[i / 8 % 2])
                         : snprintf(rows + at, sizeof rows - (size_t)at,
                                    "{\"prompt\": \"I think it was\", \"chosen\": \" %s work.\", "
                                    "\"rejected\": \" %s.\"}\n",
                                    good[i % 3], bad[i / 2 % 2]);
    e2e_write(*state, "pairs.jsonl", rows);
    write_rows(*state);
    return 0;
}

static void must(struct e2e *t, int status, const char *what) {
    if (status) fail_msg("%s: exit %d\n%s", what, status, t->out);
}

static double first(struct e2e *t, const char *run, const char *name) {
    json_t *rows = e2e_metrics(t, run);
    double value = e2e_metric(rows, 0, name);
    json_decref(rows);
    return value;
}

static void dpo_learns_and_is_measured(void **state) {
    struct e2e *t = *state;
    static const char *const options[] = {"", "--set algo.loss=ipo --set algo.beta=0.3",
                                          "--set algo.label_smoothing=0.1 --set algo.beta=0.3"};
    for (int k = 0; k < 3; k++) {
        char run[8];
        snprintf(run, sizeof run, "d%d", k);
        must(t,
             e2e_run(t,
                     DPO "--set run.phases=20 --set data.eval_path=pairs.jsonl "
                         "--set data.eval_every=1 --set run.dir=%s %s",
                     run, options[k]),
             options[k]);
        json_t *m = e2e_metrics(t, run);
        double at_first = e2e_metric(m, 0, "objective/loss");
        if (k == 1)
            assert_true(fabs(at_first - 1 / 0.36) < 1e-9);
        else
            assert_true((float)at_first == 0.6931471824645996f);
        assert_true(e2e_metric(m, 0, "dpo/margin") == 0); // the policy is the reference, to the bit
        assert_true(e2e_metric(m, 0, "dpo/accuracy") == 0);
        assert_true(e2e_metric(m, -1, "objective/loss") < at_first);
        assert_true(e2e_metric(m, -1, "dpo/accuracy") == 1);
        assert_true(e2e_metric(m, -1, "dpo/margin") > 0);
        assert_true(e2e_metric(m, -1, "dpo/logp_chosen") < 0);
        assert_true(e2e_metric(m, -1, "eval/accuracy") == 1);
        assert_true(e2e_metric(m, -1, "eval/margin") > e2e_metric(m, 0, "eval/margin"));
        json_decref(m);
    }
}

static void kto_learns_and_is_measured(void **state) {
    struct e2e *t = *state;
    for (int k = 0; k < 2; k++) {
        char run[8];
        snprintf(run, sizeof run, "k%d", k);
        must(t,
             e2e_run(t,
                     KTO "--set run.phases=20 --set data.eval_path=rows.jsonl "
                         "--set data.eval_every=1 --set run.dir=%s %s",
                     run, k ? "--set algo.loss=apo_zero_unpaired" : ""),
             "kto");
        json_t *m = e2e_metrics(t, run);
        assert_true(e2e_metric(m, 0, "objective/loss") == 0.5); // the policy is the reference
        assert_true(e2e_metric(m, 0, "kto/margin") == 0);
        if (!k) assert_true(e2e_metric(m, 0, "kto/kl") == 0);
        assert_true(e2e_metric(m, -1, "objective/loss") < 0.45);
        assert_true(e2e_metric(m, -1, "kto/margin") > 0.5);
        assert_true(e2e_metric(m, -1, "kto/logp_wanted") > e2e_metric(m, 0, "kto/logp_wanted"));
        assert_true(e2e_metric(m, -1, "eval/margin") > e2e_metric(m, 0, "eval/margin"));
        assert_true(e2e_metric(m, -1, "eval/wanted") > e2e_metric(m, -1, "eval/unwanted"));
        json_decref(m);
    }
}

static double number(const struct e2e *t, const char *name) {
    const char *json = strchr(t->out, '{'); // after the messages on stderr
    json_t *v = json ? json_loads(json, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    assert_true(json_is_number(json_object_get(v, name)));
    const double x = json_number_value(json_object_get(v, name));
    json_decref(v);
    return x;
}

// For labeled completions, `eval --reference` prints the same numbers that the run prints for
// data.eval_path.
static void kto_rows_by_eval(void **state) {
#define EVAL "eval --model k --reference m --data rows.jsonl "
    struct e2e *t = *state;
    must(t,
         e2e_run(t, "--algo sft.so --data texts.jsonl --set run.phases=1 --set run.dir=s" COMMON),
         "sft");
    must(t, e2e_shell(t, "cp -rL s/checkpoints/latest m"), "cp");
    must(t,
         e2e_run(t, "--algo kto.so --policy m --data rows.jsonl --set batch.size=8 "
                    "--set optim.lr=0.003 --set run.phases=3 --set data.eval_path=rows.jsonl "
                    "--set run.dir=k"),
         "kto");
    must(t, e2e_run(t, EVAL "--json"), "eval");
    json_t *m = e2e_metrics(t, "k");
    assert_true(number(t, "wanted") == e2e_metric(m, -1, "eval/wanted"));
    assert_true(number(t, "unwanted") == e2e_metric(m, -1, "eval/unwanted"));
    assert_true(number(t, "margin") == e2e_metric(m, -1, "eval/margin"));
    json_decref(m);
    must(t, e2e_run(t, EVAL), "eval");
    e2e_says(t, "wanted      ");
    e2e_says(t, "nats (log-probs minus those of the reference ");
    assert_int_equal(e2e_run(t, EVAL "--beta 1"), 2);
    e2e_says(t, "--beta has no effect on labeled completions");
    must(t, e2e_run(t, "eval --model k --data rows.jsonl"), "eval");
    e2e_says(t, "wanted and unwanted completions are measured together; --reference MODEL");
    e2e_says(t, " bits per byte (");
}

// The embedding may have rows to which no token belongs. In eval, the softmax keeps them, as in
// training.
static void kto_rows_by_eval_with_extra_rows(void **state) {
    must(*state,
         e2e_shell(*state, "sed -i 's/\"vocab_size\": 260/\"vocab_size\": 700/' "
                           "model/config.json && grep -q 700 model/config.json"),
         "sed");
    kto_rows_by_eval(state);
}

// With a reward for periods, the policy writes more periods. The first ratio is exactly 1.
static void rloo_learns(void **state) {
    struct e2e *t = *state;
    must(t,
         e2e_run(t, RLOO "--set run.phases=20 --set algo.kl_coef=0.01 "
                         "--set algo.minibatches=2 --set algo.epochs=2 --set run.dir=r"),
         "rloo");
    json_t *m = e2e_metrics(t, "r");
    double early = 0, late = 0;
    for (int i = 0; i < 5; i++) {
        early += e2e_metric(m, i, "objective/scores");
        late += e2e_metric(m, -1 - i, "objective/scores");
        assert_true(e2e_metric(m, i, "sampling/logp_difference/max") == 0);
    }
    assert_true(late > early);
    assert_true(e2e_metric(m, 0, "objective/kl") == 0);
    assert_true(e2e_metric(m, -1, "objective/kl") > 0);
    json_decref(m);
    must(t,
         e2e_run(t, RLOO
                 "--set run.phases=1 --set algo.epochs=1 --set algo.minibatches=1 --set run.dir=s"),
         "one update");
    assert_true(first(t, "s", "val/ratio") == 1 && first(t, "s", "val/ratio_var") == 0);
}

static void same_seed_same_bytes(void **state) {
    struct e2e *t = *state;
    for (int k = 0; k < N_ALGOS; k++) {
        must(t, e2e_run(t, "%s --set run.phases=4 --set run.dir=a%d", algos[k], k), "a");
        must(t, e2e_run(t, "%s --set run.phases=4 --set run.dir=b%d --threads 2", algos[k], k),
             "b");
        must(t,
             e2e_run(t, "%s --set run.phases=4 --set run.stop_after=2 --set run.dir=c%d", algos[k],
                     k),
             "c");
        must(t, e2e_run(t, "--resume c%d --threads 2", k), "resume");
        must(t, e2e_run(t, "%s --set run.phases=4 --set run.dir=d%d --seed 2", algos[k], k), "d");
        char a[64], b[64], c[64];
        snprintf(a, sizeof a, "a%d/checkpoints/000004", k);
        snprintf(b, sizeof b, "b%d/checkpoints/000004", k);
        snprintf(c, sizeof c, "c%d/checkpoints/000004", k);
        e2e_same_tree(t, a, b);
        e2e_same_tree(t, a, c);
        assert_int_not_equal(
            e2e_shell(t, "cmp %s/model.safetensors d%d/checkpoints/000004/model.safetensors", a, k),
            0);
    }
}

// Prompts may be computed once or for each response, and microbatches may have any size. The loss
// is the same up to rounding.
static void the_cut_changes_nothing(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {
        "batch.share_prompts=true --set batch.microbatch_tokens=4096",
        "batch.share_prompts=false --set batch.microbatch_tokens=4096",
        "batch.microbatch_tokens=1"};
    for (int k = 0; k < N_ALGOS; k++) {
        double loss[3], norm[3];
        for (int i = 0; i < 3; i++) {
            char run[8];
            snprintf(run, sizeof run, "m%d%d", k, i);
            must(t,
                 e2e_run(t,
                         "%s --set run.phases=1 --set compute.dtype=f32 --set run.dir=%s --set %s",
                         algos[k], run, how[i]),
                 how[i]);
            loss[i] = first(t, run, "objective/loss");
            norm[i] = first(t, run, "optim/grad_norm");
            assert_true(fabs(loss[i] - loss[0]) <= 1e-6 * (fabs(loss[0]) + 1e-3));
            if (!(norm[0] > 0 && fabs(norm[i] - norm[0]) <= 1e-5 * norm[0]))
                fail_msg("%s, %s: norm %.9g, was %.9g", run, how[i], norm[i], norm[0]);
        }
        assert_true(loss[0] == loss[1]); // a shared prompt has the same bits
    }
}

static void refuse(struct e2e *t, const char *args, const char *why) {
    int status = e2e_run(t, "%s", args);
    if (status != 2) fail_msg("%s: exit %d\n%s", args, status, t->out);
    e2e_says(t, why);
}

static void bad_input(void **state) {
    struct e2e *t = *state;
    refuse(t, DPO "--reward period_count.so", "dpo.so trains on rows of a file");
    refuse(t, DPO "--set algo.beta=0", "beta");
    refuse(t, DPO "--set algo.label_smoothing=0.6", "label_smoothing");
    refuse(t, DPO "--set algo.loss=kto", "sigmoid, ipo");
    refuse(t, DPO "--set data.eval_path=texts.jsonl", "texts.jsonl");
    refuse(t, "--algo dpo.so --policy model", "--data FILE");
    refuse(t, DPO "--set algo.loss=ipo --set algo.label_smoothing=0.1", "has no label smoothing");
    refuse(t, KTO "--reward period_count.so", "kto.so trains on rows of a file");
    refuse(t, KTO "--set algo.desirable_weight=0 --set algo.undesirable_weight=0", "both 0");
    refuse(t, "--algo kto.so --data pairs.jsonl" COMMON, "completion");
    refuse(t, RLOO "--set algo.group_size=1", "group_size");
    refuse(t, RLOO "--set algo.minibatches=33", "minibatches is 33, more than the 32 sequences");
    refuse(t, RLOO "--set algo.ratio=sequence_mean", "token, sequence");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, e2e_teardown)
    const struct CMUnitTest tests[] = {T(dpo_learns_and_is_measured),
                                       T(kto_learns_and_is_measured),
                                       T(kto_rows_by_eval),
                                       T(kto_rows_by_eval_with_extra_rows),
                                       T(rloo_learns),
                                       T(same_seed_same_bytes),
                                       T(the_cut_changes_nothing),
                                       T(bad_input)};
    return cmocka_run_group_tests_name("e2e_dpo_rloo", tests, NULL, NULL);
}
