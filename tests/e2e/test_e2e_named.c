// test_e2e_named.c: named models, which a plan requests in addition to the reference. Tests their
// settings, log-probs, divergences and memory, runs without rewards, and resumed runs.
#include "e2e.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// A policy of 2 x 32 and a teacher of 1 x 48 with the same tokenizer.
#define OPD                                                                                        \
    "--algo opd.so --policy model --set policy.init=random --prompts prompts.txt "                 \
    "--set batch.size=8 --set sampling.max_new_tokens=4 --set optim.lr=0.01 "                      \
    "--set prompts.prepend_bos=false --set compute.dtype=f32 "
#define TEACHER "--set models.teacher=teacher "
#define TWO     "--algo \"$RLHF_TEST_PLUGINS/two_teachers.so\""
#define FLIP(dir)                                                                                  \
    "f=" dir "/model.safetensors; s=$(wc -c < $f); "                                               \
    "printf '\\001' | dd of=$f bs=1 seek=$((s - 3)) conv=notrunc 2>/dev/null"

static void done(struct e2e *t, int status) {
    if (status) fail_msg("exit %d\n%s", status, t->out);
}

static void refused(struct e2e *t, int status, const char *text) {
    if (status != 2) fail_msg("exit status %d, not 2:\n%s", status, t->out);
    e2e_says(t, text);
}

// Makes teacher/, and r0/, a run whose checkpoint has the teacher's weights.
static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    struct e2e *t = *state;
    return e2e_shell(t, "cp -r model wide && sed -i 's/\"n_embd\": 32/\"n_embd\": 48/; "
                        "s/\"n_layer\": 2/\"n_layer\": 1/' wide/config.json && "
                        "\"$HOST\" --threads 1 --algo sft.so --policy wide --data texts.jsonl "
                        "--set policy.init=random --set batch.size=4 --phases 1 --out r0 && "
                        "cp -rL r0/checkpoints/latest teacher && rm -f teacher/lock")
               ? -1
               : 0;
}

static double last(const struct e2e *t, const char *run, const char *name) {
    json_t *m = e2e_metrics(t, run);
    const double value = e2e_metric(m, -1, name);
    json_decref(m);
    return value;
}

// ---- runs without rewards ----

static void a_teacher_in_place_of_rewards(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, OPD TEACHER "--phases 3 --out r"));
    e2e_says(t, "phase 3/3  loss ");
    e2e_says(t, "\ntext of phase 1\n");
    e2e_says(t, " and are cut off. ");
    assert_null(strstr(t->out, "reward"));
    assert_null(strstr(t->out, "learning signal"));
    done(t, e2e_shell(t, "! grep -e 'scores' -e rewards/ -e flat_phases r/metrics.jsonl && "
                         "grep -q '\"reward\": null' r/samples.jsonl && "
                         "grep -q '\"opd/divergence\"' r/metrics.jsonl && "
                         "grep -q '\"models.teacher\"' r/manifest.json"));
    assert_true(last(t, "r", "opd/divergence") > 0);
    assert_true(last(t, "r", "sampling/logp_difference/max") == 0);
    // The policy learns: in later phases the divergence is smaller.
    done(t, e2e_run(t, OPD TEACHER "--phases 40 --set log.progress=off --out longer"));
    json_t *m = e2e_metrics(t, "longer");
    assert_true(e2e_metric(m, -1, "opd/divergence") < 0.5 * e2e_metric(m, 0, "opd/divergence"));
    json_decref(m);
}

// log.rollouts has the log-probs of the named models.
static void rollouts_have_the_log_probs(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, OPD TEACHER "--phases 1 --set log.rollouts=true --out r"));
    done(t, e2e_shell(t, "head -n 1 r/rollouts.jsonl"));
    json_t *row = json_loads(t->out, 0, NULL);
    const json_t *teacher = json_object_get(json_object_get(row, "named"), "teacher");
    const size_t n = json_array_size(json_object_get(row, "logp_old"));
    assert_true(n > 0);
    assert_int_equal(json_array_size(teacher), n);
    for (size_t i = 0; i < n; i++)
        assert_true(json_real_value(json_array_get(teacher, i)) < 0);
    json_decref(row);
}

// If rewards are given, they are measured. They do not change what is learned.
static void rewards_are_only_measured(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, OPD TEACHER "--phases 2 --out r"));
    done(t, e2e_run(t, OPD TEACHER "--phases 2 --reward period_count.so "
                                   "--set data.eval_path=prompts.txt --out s"));
    e2e_says(t, "phase 2/2  reward ");
    e2e_says(t, "held-out reward ");
    done(t, e2e_shell(t, "cmp r/checkpoints/latest/model.safetensors "
                         "s/checkpoints/latest/model.safetensors && "
                         "grep -q objective/scores s/metrics.jsonl"));
}

static void what_needs_rewards_is_refused(void **state) {
    struct e2e *t = *state;
    refused(t, e2e_run(t, OPD TEACHER "--set data.eval_path=prompts.txt --out x"),
            "data.eval_path: responses to held-out prompts are measured by rewards, and none is "
            "given");
    refused(t, e2e_run(t, OPD TEACHER "--set early_stop.reward=1 --out x"),
            "early_stop.reward is 1, but the run has no rewards");
    refused(t, e2e_run(t, OPD TEACHER "--set rewards.clip=1 --out x"),
            "rewards.clip has no effect here: the run has no rewards");
    refused(t, e2e_run(t, OPD TEACHER "--set response.non_stop=subtract --out x"),
            "response.non_stop has no effect here: the run has no rewards");
    refused(t, e2e_run(t, "--algo rloo.so --policy model --prompts prompts.txt --out x"),
            "rloo.so needs at least one reward");
    assert_false(e2e_exists(t, "x"));
}

// ---- settings ----

static void names_and_settings_belong_together(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *args, *says;
    } cases[] = {
        {"", "opd.so needs a model named teacher: give its directory (--set models.teacher=DIR)"},
        {"--set models.teacher=", "opd.so needs a model named teacher"},
        {TEACHER "--set models.student=model",
         "models.student: opd.so asks for no model of that name; it has models.teacher"},
        {"--set models.techer=teacher",
         "opd.so needs a model named teacher: give its directory (--set models.teacher=DIR); it "
         "asks for none named techer (models.techer)"},
        {"--set models.Teacher=teacher",
         "models.Teacher: a name has 1 to 24 of the letters a to z"},
        {"--set models.teacher=nowhere", "models.teacher: "},
        {"--set modles.teacher=teacher", "did you mean \"models.teacher\"?"},
        {"--config number.json", "models.teacher must be a model directory"},
        {"--config list.json", "models must be an object of model directories, found a list"},
    };
    e2e_write(t, "number.json", "{\"models\": {\"teacher\": 1}}\n");
    e2e_write(t, "list.json", "{\"models\": []}\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(t, e2e_run(t, OPD "%s --out x", cases[i].args), cases[i].says);
    refused(t,
            e2e_run(t, "--algo rloo.so --policy model --prompts prompts.txt --reward "
                       "period_count.so " TEACHER "--out x"),
            "models.teacher: rloo.so asks for no model of that name");
    assert_false(e2e_exists(t, "x"));
    e2e_write(t, "teacher.json", "{\"models\": {\"teacher\": \"teacher\"}}\n");
    done(t, e2e_run(t, OPD "--config teacher.json --phases 1 --out r"));
    done(t, e2e_run(t, OPD TEACHER "--print-config"));
    e2e_says(t, "\"models\": {\n    \"teacher\": \"/");
}

static void unsuitable_models_are_refused(void **state) {
    struct e2e *t = *state;
    done(t, e2e_shell(t, "cp -r teacher other && sed -i 's/\"the\"/\"thx\"/; s/^th e$/th x/' "
                         "other/vocab.json other/merges.txt"));
    refused(t, e2e_run(t, OPD "--set models.teacher=other --out x"),
            "the vocabulary of the teacher '");
    done(t, e2e_run(t, "--algo classify.so --data labeled.jsonl --policy model --set "
                       "policy.init=random --set batch.size=4 --phases 1 --out c"));
    refused(t, e2e_run(t, OPD "--set models.teacher=c --out x"),
            "is a classifier or a reward model: it scores texts and cannot write them");
    assert_false(e2e_exists(t, "x"));
}

// A run directory can stand for its checkpoint. The config then names this checkpoint.
static void a_run_is_a_teacher(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, OPD TEACHER "--phases 2 --out a"));
    done(t, e2e_run(t, OPD "--set models.teacher=r0 --phases 2 --out b"));
    done(t, e2e_shell(t, "cmp a/checkpoints/latest/model.safetensors "
                         "b/checkpoints/latest/model.safetensors && "
                         "grep -q '\"teacher\": \".*/r0/checkpoints/000001\"' b/config.json"));
}

// ---- what arrives ----

static void every_divergence_is_another_one(void **state) {
    struct e2e *t = *state;
    static const char *const of[] = {"reverse", "forward", "js", "js,beta=0.9", "sampled"};
    double loss[5];
    for (int i = 0; i < 5; i++) {
        done(t,
             e2e_run(t, OPD TEACHER "--algo opd.so:divergence=%s --phases 1 --out d%d", of[i], i));
        char run[8];
        snprintf(run, sizeof run, "d%d", i);
        loss[i] = last(t, run, "objective/loss");
        for (int k = 0; k < i; k++)
            assert_true(fabs(loss[i] - loss[k]) > 1e-6);
        // The responses are the same, so the measured divergence is the same.
        assert_true(last(t, run, "opd/kl_sampled") == last(t, "d0", "opd/kl_sampled"));
    }
    // The reference backend agrees.
    done(t, e2e_run(t, OPD TEACHER "--algo opd.so:divergence=js,beta=0.9 --phases 1 "
                                   "--set compute.backend=reference --out naive"));
    assert_true(fabs(last(t, "naive", "objective/loss") - loss[3]) < 1e-4 * fabs(loss[3]));
}

#define WITHOUT(args)                                                                              \
    "BAD=reverse_only \"$HOST\" --threads 1 " OPD                                                  \
    "--phases 1 --set compute.backend=" BAD_KERNELS_SO " " args " --out x"

// This backend computes only the reverse divergence, and only from a model of the policy's width.
// The host refuses plans that request another divergence.
static void what_the_backend_lacks_is_refused(void **state) {
    struct e2e *t = *state;
    refused(
        t, e2e_shell(t, "%s", WITHOUT(TEACHER)),
        "the full KL needs a teacher of the policy's width with gpt2.so on the compute backend ");
    e2e_says(t, "has 48, '");
    e2e_says(t, "a KL from log-probs of the sampled tokens needs none");
    done(t,
         e2e_shell(t, "sed 's/\"n_layer\": 2/\"n_layer\": 1/' -i model/config.json && "
                      "\"$HOST\" --threads 1 --algo sft.so --policy model --data texts.jsonl --set "
                      "policy.init=random --set batch.size=4 --phases 1 --out s"));
    refused(t, e2e_shell(t, "%s", WITHOUT("--set models.teacher=s --algo opd.so:divergence=js")),
            "plans the Jensen-Shannon divergence over the whole vocabulary, which gpt2.so on the "
            "compute backend ");
    assert_false(e2e_exists(t, "x"));
    done(t, e2e_shell(t, "%s && rm -r x", WITHOUT("--set models.teacher=s")));
    done(t, e2e_shell(t, "%s", WITHOUT(TEACHER "--algo opd.so:divergence=sampled")));
}

static void names_keep_their_place(void **state) {
    struct e2e *t = *state;
    done(t, e2e_shell(t, "cp -r teacher second && " FLIP("second")));
    // `first` has the weights of the policy, and `second` has the weights of another model.
    done(t,
         e2e_shell(t, "\"$HOST\" --threads 1 --algo sft.so --policy model --data texts.jsonl --set "
                      "policy.init=random --set batch.size=4 --phases 1 --out p0 && "
                      "cp -rL p0/checkpoints/latest p"));
    done(t,
         e2e_shell(t, "\"$HOST\" --threads 1 " TWO " --policy p --prompts prompts.txt --set "
                      "batch.size=4 --set sampling.max_new_tokens=4 --set models.first=p --set "
                      "models.second=teacher --set batch.microbatch_tokens=9 --phases 2 --out r"));
    e2e_says(t, "the first has the weights of the reference; no second copy is held");
    json_t *m = e2e_metrics(t, "r");
    for (int i = 0; i < 2; i++) {
        assert_true(e2e_metric(m, i, "test/first") == e2e_metric(m, i, "test/reference"));
        assert_true(e2e_metric(m, i, "test/second") != e2e_metric(m, i, "test/reference"));
        assert_true(e2e_metric(m, i, "test/second") < -1);
        assert_true(e2e_metric(m, i, "test/missed") == 0); // holds for both advantages() and loss()
    }
    json_decref(m);
    done(t, e2e_shell(t, "\"$HOST\" --threads 1 " TWO " --policy p --prompts prompts.txt --set "
                         "batch.size=4 --set sampling.max_new_tokens=4 --set models.first=teacher "
                         "--set models.second=teacher --phases 1 --dry-run"));
    e2e_says(t, "the second has the weights of the first; no second copy is held");
}

// Rows of a file also have the log-probs of named models.
static void rows_of_a_file(void **state) {
    struct e2e *t = *state;
    done(t, e2e_shell(t, "\"$HOST\" --threads 1 " TWO ":rollout=false --policy model --set "
                         "policy.init=random --data texts.jsonl --set batch.size=4 --set "
                         "models.first=teacher --set models.second=r0 --phases 1 --out r"));
    assert_true(last(t, "r", "test/first") < -1);
    assert_true(last(t, "r", "test/missed") == 0);
}

static void plans_that_cannot_be_met(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *bad, *says;
    } cases[] = {
        {"name", "plans a model named \"No\"; a name has 1 to 24 of the letters a to z"},
        {"role", "plans a model named \"policy\", which is the name of another part of a run"},
        {"twice", "plans two models named \"first\""},
        {"many", "plans 9 named models; at most 8"},
        {"from", "plans the divergence from \"third\", which is not one of its named models"},
        {"head", "plans a divergence of the head 'kl', but not that head"},
        {"kind", "plans the divergence 3, which this host does not know"},
        {"beta", "plans divergence_beta 1; it must be above 0 and below 1"},
        {"optional", "plans RLHF_PLAN_REWARDS_OPTIONAL, which rows of text cannot give"},
        {"later", "changes its plan when the rows are known: n_named was 2, is 1"},
        {"later_beta",
         "changes its plan when the rows are known: divergence_beta was 0.5, is 0.25"},
        {"shared",
         "plans a model named \"classifier\", which is the name of another part of a run"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status =
            e2e_shell(t,
                      "\"$HOST\" --threads 1 " TWO ":rollout=false,bad=%s --policy model --set "
                      "policy.init=random --data texts.jsonl --set batch.size=4 --set "
                      "models.first=teacher --set models.second=teacher --phases 1 --out x",
                      cases[i].bad);
        refused(t, status, cases[i].says);
    }
    assert_false(e2e_exists(t, "x"));
}

// ---- memory ----

static void the_estimate_lists_it(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, OPD TEACHER "--dry-run"));
    e2e_says(t, "teacher          weights ");
}

static void the_base_of_an_adapter_is_shared(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, "--algo sft.so --policy teacher --data texts.jsonl --set batch.size=4 "
                       "--set policy.adapter.rank=2 --set optim.lr=0.03 --phases 9 --out a"));
    done(t,
         e2e_run(t,
                 "--algo opd.so --prompts prompts.txt --set batch.size=4 --set "
                 "policy.adapter.path=a/checkpoints/latest --set sampling.max_new_tokens=4 " TEACHER
                 "--set optim.lr=0.01 --phases 20 --out r"));
    e2e_says(t, "the teacher is the policy's base without an adapter; no second copy is held");
    json_t *m = e2e_metrics(t, "r");
    assert_true(e2e_metric(m, 0, "opd/divergence") > 1e-3);
    assert_true(e2e_metric(m, -1, "opd/divergence") < e2e_metric(m, 0, "opd/divergence"));
    json_decref(m);
}

// ---- resumed runs ----

static void a_resumed_run_has_its_teacher(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, OPD TEACHER "--phases 4 --set optim.schedule_phases=4 --out straight"));
    done(t, e2e_run(t, OPD TEACHER "--phases 2 --set optim.schedule_phases=4 --out r"));
    done(t, e2e_shell(t, "cp -r r moved && cp -r r changed"));
    done(t, e2e_run(t, "--resume r --phases 4"));
    e2e_says(t, "/prompts.txt, models.teacher /");
    e2e_same_tree(t, "r/checkpoints/000004", "straight/checkpoints/000004");
    done(t, e2e_shell(t, "cp -r teacher as_it_was && " FLIP("teacher")));
    refused(t, e2e_run(t, "--resume changed --phases 4"), "has changed: models.teacher ");
    done(t, e2e_run(t, "--resume moved --phases 4 --set models.teacher=as_it_was"));
    e2e_same_tree(t, "moved/checkpoints/000004", "straight/checkpoints/000004");
    refused(t, e2e_run(t, "--resume changed --phases 4 --set models.student=as_it_was"),
            "--resume: ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, e2e_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(rollouts_have_the_log_probs),
                                       TEST(a_teacher_in_place_of_rewards),
                                       TEST(rewards_are_only_measured),
                                       TEST(what_needs_rewards_is_refused),
                                       TEST(names_and_settings_belong_together),
                                       TEST(unsuitable_models_are_refused),
                                       TEST(a_run_is_a_teacher),
                                       TEST(every_divergence_is_another_one),
                                       TEST(what_the_backend_lacks_is_refused),
                                       TEST(names_keep_their_place),
                                       TEST(rows_of_a_file),
                                       TEST(plans_that_cannot_be_met),
                                       TEST(the_estimate_lists_it),
                                       TEST(the_base_of_an_adapter_is_shared),
                                       TEST(a_resumed_run_has_its_teacher)};
    return cmocka_run_group_tests_name("e2e/named", tests, NULL, NULL);
}
