// test_e2e_preferences.c: a user trains, measures and uses reward models, and measures policies on
// preferences.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define QUIET "--set log.tensorboard=false "
#define TRAIN                                                                                      \
    "--algo bradley_terry.so --policy model --data pairs.jsonl --set policy.init=random "          \
    "--set batch.size=8 --set optim.lr=0.01 --set optim.schedule_phases=12 "                       \
    "--set sampling.max_new_tokens=8 --set score.calibrate=24 "                                    \
    "--set batch.microbatch_tokens=200 " QUIET
#define ROLLOUT                                                                                    \
    "--policy policy --prompts prompts.txt --set sampling.max_new_tokens=6 --set batch.size=8 "    \
    "--set run.phases=1 --set log.samples_every=0 " QUIET

static const char *const good[] = {"a fine film", "the best thing", "good fun", "great acting"};
static const char *const bad[] = {"a poor film", "the worst thing", "dull work", "awful acting"};

// pairs.jsonl: pairs; every fourth row is a best of three.
static int setup(void **state) {
    if (e2e_setup(state)) return -1;
    struct e2e *t = *state;
    char rows[16384];
    int at = 0;
    for (int i = 0; i < 64; i++)
        if (i % 4 == 3)
            at +=
                snprintf(rows + at, sizeof rows - (size_t)at,
                         "{\"prompt\": \"It was\", \"responses\": [\" %s.\", \" %s.\", \" %s!\"], "
                         "\"best\": %d}\n",
                         i % 8 == 3 ? good[i / 8 % 4] : bad[i / 4 % 4],
                         i % 8 == 3 ? bad[i / 4 % 4] : good[i / 8 % 4], bad[i / 16], i % 8 != 3);
        else
            at += snprintf(rows + at, sizeof rows - (size_t)at,
                           "{\"prompt\": \"I think it was\", \"chosen\": \" %s.\", "
                           "\"rejected\": \" %s.\"}\n",
                           good[i % 4], bad[i / 4 % 4]);
    e2e_write(t, "pairs.jsonl", rows);
    return 0;
}

static void must(struct e2e *t, int status, const char *what) {
    if (status) fail_msg("%s: exit %d\n%s", what, status, t->out);
}

static void learns_and_is_measured(void **state) {
    struct e2e *t = *state;
    must(t,
         e2e_run(t, TRAIN "--set run.phases=12 --set run.dir=a --set data.eval_path=pairs.jsonl "
                          "--set data.eval_every=4"),
         "training");
    json_t *rows = e2e_metrics(t, "a");
    assert_int_equal(json_array_size(rows), 12);
    double first = e2e_metric(rows, 0, "objective/loss");
    double last = e2e_metric(rows, -1, "objective/loss");
    assert_true(last < 0.3 * first);
    assert_true(e2e_metric(rows, -1, "eval/accuracy") > 0.95);
    assert_true(e2e_metric(rows, -1, "reward_model/accuracy") > 0.95);
    // Gain and bias are reported when they are fitted: before the first step, and at evaluations.
    double gain = e2e_metric(rows, 0, "reward_model/gain");
    assert_null(json_object_get(json_array_get(rows, 1), "reward_model/gain"));
    assert_true(e2e_metric(rows, 3, "reward_model/gain") != gain);
    double margin = e2e_metric(rows, -1, "eval/margin"), loss = e2e_metric(rows, -1, "eval/loss");
    assert_true(margin > 1); // in standard deviations of the samples
    json_decref(rows);
    must(t, e2e_run(t, "eval --model a/checkpoints/latest --data pairs.jsonl --json"), "eval");
    json_t *v = json_loads(t->out, 0, NULL);
    assert_non_null(v);
    assert_int_equal(json_integer_value(json_object_get(v, "rows")), 64);
    assert_true(json_number_value(json_object_get(v, "accuracy")) > 0.95);
    assert_true(json_number_value(json_object_get(v, "margin")) == margin);
    assert_true(json_number_value(json_object_get(v, "loss")) == loss);
    json_decref(v);
    must(t,
         e2e_shell(t, "grep -q GPT2ForSequenceClassification a/checkpoints/latest/config.json && "
                      "grep -q '\"num_labels\": 1' a/checkpoints/latest/config.json && "
                      "grep -q '\"rlhf_reward\"' a/checkpoints/latest/config.json"),
         "config.json");
}

static void same_seed_same_bits(void **state) {
    struct e2e *t = *state;
    must(t, e2e_run(t, TRAIN "--set run.phases=4 --set run.dir=a"), "a");
    must(t, e2e_run(t, TRAIN "--set run.phases=4 --set run.dir=b --threads 2"), "b");
    must(t, e2e_run(t, TRAIN "--set run.phases=4 --set run.stop_after=2 --set run.dir=c"), "c");
    // A resume needs neither the starting weights nor new samples.
    must(t, e2e_run(t, "--resume c --threads 2"), "resume");
    e2e_same_tree(t, "a/checkpoints/000004", "b/checkpoints/000004");
    e2e_same_tree(t, "a/checkpoints/000004", "c/checkpoints/000004");
}

// A prompt may be computed once for all of its responses. The forward pass then has the same bits.
// The model directory stores which tokens come before a row, so users need not repeat
// prompts.prepend_bos.
static void the_front_is_recorded(void **state) {
    struct e2e *t = *state;
    must(t, e2e_run(t, TRAIN "--set run.phases=2 --set run.dir=a"), "training");
    assert_false(e2e_exists(t, "a/checkpoints/latest/tokenizer_config.json"));
    must(t,
         e2e_run(t, TRAIN "--set run.phases=2 --set run.dir=b --set prompts.prepend_bos=true "
                          "--set data.eval_path=pairs.jsonl"),
         "training with bos");
    must(t,
         e2e_shell(t, "grep -q '\"add_bos_token\": true' "
                      "b/checkpoints/latest/tokenizer_config.json"),
         "the record");
    json_t *rows = e2e_metrics(t, "b");
    double loss = e2e_metric(rows, -1, "eval/loss");
    json_decref(rows);
    must(t, e2e_run(t, "eval --model b/checkpoints/latest --data pairs.jsonl --json"), "eval");
    json_t *v = json_loads(t->out, 0, NULL);
    assert_true(json_number_value(json_object_get(v, "loss")) == loss);
    json_decref(v);
    // A model that is trained further keeps the setting. So does a resumed run.
    must(t,
         e2e_run(t, TRAIN "--policy b/checkpoints/latest --set policy.init=pretrained "
                          "--set score.calibrate=0 --set run.phases=1 --set run.dir=c"),
         "training further");
    must(t,
         e2e_shell(t, "cmp b/checkpoints/latest/tokenizer_config.json "
                      "c/checkpoints/latest/tokenizer_config.json"),
         "the same record");
}

static void shared_prompts_change_no_loss(void **state) {
    struct e2e *t = *state;
    double loss[2];
    for (int i = 0; i < 2; i++) {
        must(t,
             e2e_run(t,
                     TRAIN "--set run.phases=1 --set run.dir=p%d --set batch.share_prompts=%s "
                           "--set batch.microbatch_tokens=4096",
                     i, i ? "true" : "false"),
             "training");
        json_t *rows = e2e_metrics(t, i ? "p1" : "p0");
        loss[i] = e2e_metric(rows, 0, "objective/loss");
        json_decref(rows);
    }
    assert_true(loss[0] == loss[1]);
}

// The split into microbatches changes only rounding.
static void microbatches_change_nothing(void **state) {
    struct e2e *t = *state;
    static const char *const how[] = {"batch.microbatch_tokens=4096", "batch.microbatch_tokens=1",
                                      "batch.microbatch_tokens=90"};
    double norm[3], loss[3];
    for (int i = 0; i < 3; i++) {
        must(t,
             e2e_run(t,
                     TRAIN "--set run.phases=1 --set compute.dtype=f32 --set run.dir=m%d "
                           "--set %s",
                     i, how[i]),
             how[i]);
        char run[8];
        snprintf(run, sizeof run, "m%d", i);
        json_t *rows = e2e_metrics(t, run);
        norm[i] = e2e_metric(rows, 0, "optim/grad_norm");
        loss[i] = e2e_metric(rows, 0, "objective/loss");
        json_decref(rows);
        assert_true(fabs(norm[i] - norm[0]) <= 2e-6 * norm[0]);
        assert_true(fabs(loss[i] - loss[0]) <= 1e-6 * loss[0]);
    }
    assert_true(norm[0] > 0);
}

static void pooling_last_goes_into_config(void **state) {
    struct e2e *t = *state;
    must(t,
         e2e_run(t, TRAIN "--set run.phases=2 --set score.pooling=last --set score.calibrate=0 "
                          "--set run.dir=l"),
         "training");
    must(t,
         e2e_shell(t, "grep -A3 rlhf_reward l/checkpoints/latest/config.json | tr -d ' \\n' | "
                      "grep -q '{\"pooling\":\"last\",\"gain\":1.0,\"bias\":0.0'"),
         "config.json");
    assert_false(e2e_exists(t, "l/checkpoints/latest/state/samples.safetensors"));
    // label refuses a reward model.
    assert_int_equal(e2e_run(t, "label --model l --data texts.jsonl --out labels.jsonl"), 2);
    e2e_says(t, "label: 'l' has one label, as reward models have, so every row would get it");
    assert_false(e2e_exists(t, "labels.jsonl"));
}

static void rows_that_do_not_fit_are_told(void **state) {
    struct e2e *t = *state;
    must(t, e2e_run(t, TRAIN "--set run.phases=1 --set data.max_tokens=5 --out short"), "training");
    e2e_says(t, "warning: data: 100 % of the rows do not fit into 5 tokens and were cut");
    must(t, e2e_run(t, TRAIN "--set run.phases=1 --out whole"), "training");
    assert_null(strstr(t->out, "do not fit into"));
}

// A policy with weights, and the reward model trained from it.
static void make_policy(struct e2e *t) {
    must(t,
         e2e_run(t, "--algo sft.so --data texts.jsonl --policy model --set policy.init=random "
                    "--set run.phases=2 --set run.dir=s " QUIET),
         "sft");
    must(t, e2e_shell(t, "cp -rL s/checkpoints/latest policy"), "cp");
    must(t,
         e2e_run(t, TRAIN "--set policy.init=pretrained --policy policy --set run.phases=2 "
                          "--set run.dir=r"),
         "bradley_terry");
    must(t, e2e_shell(t, "cp -rL r/checkpoints/latest rm"), "cp");
}

// Returns the reward of the first sample of a run.
static double first_sample(struct e2e *t, int run) {
    must(t, e2e_shell(t, "head -n 1 p%d/samples.jsonl", run), "samples.jsonl");
    json_t *v = json_loads(t->out, 0, NULL);
    assert_non_null(v);
    double reward = json_number_value(json_object_get(v, "reward"));
    json_decref(v);
    return reward;
}

static void per_token_pays_the_mean(void **state) {
    struct e2e *t = *state;
    make_policy(t);
    double mean[2], std[2];
    static const char *const how[] = {"pooling=mean", "per_token=true"};
    for (int i = 0; i < 2; i++) {
        must(t,
             e2e_run(t,
                     "--algo ppo.so --reward bt_rm.so:model=rm,%s " ROLLOUT
                     "--set log.samples_every=1 --set run.dir=p%d",
                     how[i], i),
             how[i]);
        json_t *rows = e2e_metrics(t, i ? "p1" : "p0");
        mean[i] = e2e_metric(rows, 0, "rewards/bt_rm/mean");
        std[i] = e2e_metric(rows, 0, "rewards/bt_rm/std");
        // The scores equal the reward, whether it comes at the end or token by token.
        assert_true(fabs(e2e_metric(rows, 0, "objective/scores") - mean[i]) < 1e-5);
        json_decref(rows);
    }
    assert_true(fabs(mean[0] - mean[1]) < 1e-5 && fabs(std[0] - std[1]) < 1e-5);
    assert_true(std[0] > 0);
    double whole = first_sample(t, 0), shares = first_sample(t, 1);
    assert_true(whole != 0 && fabs(whole - shares) < 1e-5);
}

static void refuse(struct e2e *t, const char *args, const char *why) {
    int status = e2e_run(t, "%s", args);
    if (status != 2) fail_msg("%s: exit %d\n%s", args, status, t->out);
    e2e_says(t, why);
}

static void bad_input(void **state) {
    struct e2e *t = *state;
    make_policy(t);
    must(t,
         e2e_shell(t, "cp -r rm other && sed -i 's/i n/t i/' other/merges.txt && "
                      "sed -i 's/\"in\"/\"ti\"/' other/vocab.json && cp -r rm bent && "
                      "sed -i 's/\"pooling\": \"mean\"/\"pooling\": \"best\"/' bent/config.json"),
         "copies");
    refuse(t, "--algo ppo.so --reward bt_rm.so:model=policy " ROLLOUT, "is not a reward model");
    refuse(t, "--algo ppo.so --reward bt_rm.so:model=nowhere " ROLLOUT, "nowhere");
    refuse(t, "--algo ppo.so --reward bt_rm.so:model=other " ROLLOUT, "other' is not the policy's");
    refuse(t, "--algo ppo.so --reward bt_rm.so:model=bent " ROLLOUT,
           "bent/config.json: rlhf_reward.pooling must be one of mean, last");
    refuse(t, "--algo ppo.so --reward bt_rm.so:model=rm,pooling=first " ROLLOUT, "pooling");
    refuse(t, "eval --model policy --reward bt_rm.so:model=other --data prompts.txt --n 2",
           "is not the policy's");
    refuse(t, "eval --model rm --data texts.jsonl", "prompt");
    refuse(t, "eval --model rm --data pairs.jsonl --max-tokens 65", "--max-tokens is 65");
    refuse(
        t, TRAIN "--set data.long_rows=split",
        "data.long_rows is split, but bradley_terry.so trains on whole rows; truncate is allowed");
    refuse(t, TRAIN "--set score.pooling=first", "pools mean or last");
    refuse(t, TRAIN "--set sampling.max_new_tokens=64", "score.calibrate");
    refuse(t, TRAIN "--set policy.init=pretrained --policy rm", "set score.calibrate to 0");
    refuse(t, TRAIN "--set reference.path=other --set policy.init=pretrained --policy policy",
           "the reference");
    refuse(t, TRAIN "--set data.eval_path=texts.jsonl", "texts.jsonl");
    assert_null(strstr(t->out, "gain")); // reported before samples are generated
    refuse(t, TRAIN "--reward ngram3.so", "bradley_terry.so trains on rows of a file");
    refuse(t, "--algo bradley_terry.so --policy policy", "--data FILE");
    e2e_write(t, "twin.jsonl", "{\"prompt\": \"a\", \"chosen\": \" b\", \"rejected\": \" b\"}\n");
    refuse(t, "--algo bradley_terry.so --policy policy --data twin.jsonl", "twin.jsonl:1");
}

// The reward model's context is shorter than the run's longest prompt plus response.
// The log says what is sampled before the first phase, and few rows need few samples.
static void samples_before_training_are_said(void **state) {
    struct e2e *t = *state;
#define FITTED "reward model: its scale is fitted to %s responses of at most"
    char says[128];
    must(t,
         e2e_run(t, TRAIN "--data pairs.jsonl --set data.limit=3 --set batch.size=2 --set "
                          "run.phases=1 --set score.calibrate=512 --set run.dir=few"),
         "few rows");
    snprintf(says, sizeof says, FITTED, "64");
    e2e_says(t, says);
    must(t, e2e_run(t, TRAIN "--set run.phases=1 --set score.calibrate=10 --set run.dir=ten"),
         "ten samples");
    snprintf(says, sizeof says, FITTED, "10");
    e2e_says(t, says);
}

static void context_of_the_reward_model(void **state) {
    struct e2e *t = *state;
    make_policy(t);
    must(t,
         e2e_shell(t, "cp -r model short && sed -i 's/\"n_positions\": 64/\"n_positions\": 16/' "
                      "short/config.json"),
         "copy");
    must(t,
         e2e_run(t, TRAIN "--policy short --set run.phases=1 --set score.calibrate=0 "
                          "--set run.dir=x"),
         "short");
    refuse(t,
           "--algo ppo.so --reward bt_rm.so:model=x/checkpoints/latest " ROLLOUT
           "--set sampling.max_new_tokens=30",
           "is 16 tokens");
}

// Training continues from a reward model. The user must then name the reference. Pooling, gain and
// bias are kept.
static void trained_on(void **state) {
    struct e2e *t = *state;
    make_policy(t);
    must(t,
         e2e_run(t, TRAIN "--set policy.init=pretrained --policy rm --set reference.path=policy "
                          "--set run.phases=1 --set run.dir=n"),
         "training on");
    must(t, e2e_shell(t, "cat rm/config.json"), "cat");
    json_t *config = json_loads(t->out, 0, NULL), *rows = e2e_metrics(t, "n");
    must(t, e2e_shell(t, "cat n/checkpoints/latest/state/reward_head.json"), "cat");
    json_t *head = json_loads(t->out, 0, NULL);
    assert_true(
        json_equal(json_object_get(config, "rlhf_reward"), json_object_get(head, "rlhf_reward")));
    assert_true(isfinite(e2e_metric(rows, 0, "reward_model/gain")));
    json_decref(config);
    json_decref(rows);
    json_decref(head);
}

// A margin in every row has the same effect as algo.margin with that value. Algorithms without this
// option refuse rows with margins.
static void margins_of_rows(void **state) {
    struct e2e *t = *state;
    must(t,
         e2e_shell(t, "sed 's/}$/, \"margin\": 0.75}/' pairs.jsonl >m.jsonl && "
                      "sed '9q' m.jsonl >mixed.jsonl && sed '1,9d' pairs.jsonl >>mixed.jsonl"),
         "sed");
    must(t, e2e_run(t, TRAIN "--set run.phases=3 --out none"), "no margin");
    must(t, e2e_run(t, TRAIN "--set run.phases=3 --set algo.margin=0.75 --out option"), "option");
    must(t, e2e_run(t, TRAIN "--set run.phases=3 --data m.jsonl --out rows"), "rows");
    must(t, e2e_run(t, TRAIN "--set run.phases=3 --data mixed.jsonl --out mixed"), "some rows");
    e2e_same_tree(t, "option/checkpoints/000003", "rows/checkpoints/000003");
#define DIFFERS(a, b)                                                                              \
    "! cmp " a "/checkpoints/latest/model.safetensors " b                                          \
    "/checkpoints/latest/model.safetensors && "
    must(
        t,
        e2e_shell(t, DIFFERS("none", "rows") DIFFERS("none", "mixed") DIFFERS("rows", "mixed") ":"),
        "margins have no effect");
    assert_int_equal(e2e_run(t, "--algo dpo.so --policy model --set policy.init=random --data "
                                "mixed.jsonl --set run.phases=1 --out d"),
                     2);
    e2e_says(t,
             "mixed.jsonl:1: the row has a 'margin', which dpo.so does not use; remove the field");
    must(t, e2e_run(t, "eval --model rows --data m.jsonl"), "eval");
}

static double member(const json_t *v, const char *name) {
    const json_t *x = json_object_get(v, name);
    if (!json_is_number(x)) fail_msg("no number %s", name);
    return json_number_value(x);
}

// Measures the rows of held.jsonl. The caller owns the returned object.
static json_t *measured(struct e2e *t, const char *flags) {
    must(t, e2e_run(t, "eval --data held.jsonl --json %s", flags), flags);
    const char *object = strchr(t->out, '{'); // after the log's lines
    json_t *v = object ? json_loads(object, 0, NULL) : NULL;
    if (!v) fail_msg("no JSON: %s", t->out);
    return v;
}

static json_t *train_dpo(struct e2e *t, const char *flags) {
    must(t,
         e2e_run(t,
                 "--algo dpo.so --policy policy --data pairs.jsonl --set batch.size=8 "
                 "--set optim.lr=0.001 --set run.phases=2 --set data.eval_path=held.jsonl " QUIET
                 "--set run.dir=d %s",
                 flags),
         "dpo");
    return e2e_metrics(t, "d");
}

// A policy is measured as in the run that trained it. Some pairs are reversed, so the accuracy is
// strictly between 0 and 1.
static void policy_is_measured_as_in_its_run(void **state) {
    struct e2e *t = *state;
    make_policy(t);
    must(t,
         e2e_shell(t, "sed -n 1,23p pairs.jsonl >held.jsonl && sed -n 24,31p pairs.jsonl | "
                      "sed 's/chosen/x/; s/rejected/chosen/; s/\"x\"/\"rejected\"/' >>held.jsonl"),
         "held.jsonl");
    json_t *rows = train_dpo(t, "");
    const double accuracy = e2e_metric(rows, -1, "eval/accuracy");
    const double margin = e2e_metric(rows, -1, "eval/margin");
    json_decref(rows);
    assert_true(accuracy > 0 && accuracy < 1);
    static const char *const references[] = {"policy", "s --beta 0.25"};
    for (int i = 0; i < 2; i++) {
        char flags[96];
        snprintf(flags, sizeof flags, "--model d --reference %s", references[i]);
        json_t *v = measured(t, flags);
        assert_int_equal(member(v, "rows"), 31);
        assert_true(member(v, "accuracy") == accuracy);
        assert_true(fabs(member(v, "accuracy_error") - sqrt(accuracy * (1 - accuracy) / 31)) <
                    1e-12);
        assert_true(member(v, "beta") == (i ? 0.25 : 0.3));
        assert_true(member(v, "margin") == (i ? 0.25 : 0.3) * margin);
        assert_string_equal(json_string_value(json_object_get(v, "measure")), "implicit_reward");
        json_decref(v);
    }
    // beta comes from the run.
    must(t,
         e2e_run(t, "--algo dpo.so:beta=0.5 --policy policy --data pairs.jsonl --set batch.size=8 "
                    "--phases 1 " QUIET "--out half"),
         "dpo with another beta");
    json_t *half = measured(t, "--model half --reference policy");
    assert_true(member(half, "beta") == 0.5);
    json_decref(half);
    e2e_says(t, "beta 0.5, as in the run (algo.beta of dpo.so); --beta sets another");
    half = measured(t, "--model half --reference policy --beta 0.2");
    assert_true(member(half, "beta") == 0.2);
    json_decref(half);
    // Without a reference, the margin is a difference of the policy's log-probs. With a reference,
    // the difference of the reference's log-probs is subtracted.
    json_t *own = measured(t, "--model d"), *first = measured(t, "--model policy");
    assert_string_equal(json_string_value(json_object_get(own, "measure")), "log_prob");
    assert_null(json_object_get(own, "beta"));
    const double lead = member(own, "logp_chosen") - member(own, "logp_rejected");
    assert_true(member(own, "logp_chosen") < 0);
    assert_true(fabs(member(own, "margin") - lead) < 1e-9);
    assert_true(fabs(member(own, "margin") - member(first, "margin") - margin) < 1e-4);
    json_decref(own);
    json_decref(first);
    must(t, e2e_run(t, "eval --model d --reference policy --data held.jsonl"), "table");
    e2e_says(t, "standard error");
    e2e_says(t, "beta 0.3");
    must(t, e2e_run(t, "eval --model d --data held.jsonl"), "table");
    e2e_says(t, "without a reference");
    must(t, e2e_shell(t, "cat held.jsonl | $HOST eval --model d --reference s --data /dev/stdin"),
         "a pipe");
}

// A policy with an adapter is compared with its base. If the rows of the policy's run began with a
// BOS, the user gives --bos, and the measured rows begin with a BOS, too.
static void policy_with_adapter_or_bos_is_measured(void **state) {
    struct e2e *t = *state;
    static const char *const train[] = {"--set policy.adapter.rank=2 --set optim.lr=0.02",
                                        "--set prompts.prepend_bos=true"};
    static const char *const eval[] = {"--model d --reference policy",
                                       "--model d --reference policy --bos"};
    make_policy(t);
    must(t, e2e_shell(t, "sed -n 1,31p pairs.jsonl >held.jsonl"), "held.jsonl");
    for (int i = 0; i < 2; i++) {
        json_t *rows = train_dpo(t, train[i]), *v = measured(t, eval[i]);
        assert_true(member(v, "accuracy") == e2e_metric(rows, -1, "eval/accuracy"));
        assert_true(member(v, "margin") == 0.3 * e2e_metric(rows, -1, "eval/margin"));
        assert_non_null(strstr(json_string_value(json_object_get(v, "model")), "/d/checkpoints/"));
        json_decref(rows);
        json_decref(v);
        must(t, e2e_shell(t, "rm -r d"), "rm");
    }
}

static void bad_measures_of_a_policy(void **state) {
    struct e2e *t = *state;
    make_policy(t);
    must(t,
         e2e_shell(t, "cp -r policy other && sed -i 's/i n/t i/' other/merges.txt && "
                      "sed -i 's/\"in\"/\"ti\"/' other/vocab.json"),
         "copy");
    refuse(t, "eval --model policy --data pairs.jsonl --beta 0.2",
           "--beta has no effect without --reference");
    refuse(t, "eval --model policy --data texts.jsonl --reference policy",
           "--reference has no effect here: the rows are not preferences");
    refuse(t, "eval --model rm --data pairs.jsonl --reference policy",
           "--reference has no effect here: the model is a reward model");
    refuse(t, "eval --model policy --data pairs.jsonl --reference other",
           "the vocabulary of the reference");
    refuse(t, "eval --model policy --data pairs.jsonl --reference rm",
           "--reference: the reference");
    refuse(t, "eval --model policy --data pairs.jsonl --max-tokens 65", "--max-tokens is 65");
    e2e_write(t, "half.jsonl", "{\"prompt\": \"a\", \"chosen\": \" b\"}\n");
    refuse(t, "eval --model policy --data half.jsonl", "half.jsonl:1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(learns_and_is_measured, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(same_seed_same_bits, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(the_front_is_recorded, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(shared_prompts_change_no_loss, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(microbatches_change_nothing, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(pooling_last_goes_into_config, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(rows_that_do_not_fit_are_told, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(per_token_pays_the_mean, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(bad_input, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(samples_before_training_are_said, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(context_of_the_reward_model, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(margins_of_rows, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(trained_on, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(policy_is_measured_as_in_its_run, setup, e2e_teardown),
        cmocka_unit_test_setup_teardown(policy_with_adapter_or_bos_is_measured, setup,
                                        e2e_teardown),
        cmocka_unit_test_setup_teardown(bad_measures_of_a_policy, setup, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_preferences", tests, NULL, NULL);
}
