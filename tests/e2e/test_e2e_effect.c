// test_e2e_effect.c: a setting that has no effect is never ignored silently. If the setting is on
// the command line, the program refuses it. If it comes from a file, the program prints a warning
// that names it.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define START "--policy model --set policy.init=random --phases 1 --out x --set batch.size=4 "
#define PPO                                                                                        \
    "--algo ppo.so --reward period_count.so --prompts prompts.txt --set "                          \
    "sampling.max_new_tokens=4 " START
#define GRPO                                                                                       \
    "--algo grpo.so:group_size=2,minibatches=1 --reward period_count.so --prompts prompts.txt "    \
    "--set sampling.max_new_tokens=4 " START
#define SFT      "--algo sft.so --data texts.jsonl " START
#define CLASSIFY "--algo classify.so --data labeled.jsonl " START
#define PAIRS    "--algo bradley_terry.so --data pairs.jsonl " START

static void refuses(struct e2e *t, const char *args, const char *sentence) {
    int status = e2e_run(t, "%s", args);
    if (status != 2) fail_msg("%s: exit status %d\n%s", args, status, t->out);
    e2e_says(t, sentence);
    assert_false(e2e_exists(t, "x"));
}

static void a_named_file_is_used_or_refused(void **state) {
    struct e2e *t = *state;
    const char *why = "data.path has no effect here: ppo.so responds to prompts";
    refuses(t, PPO "--data nowhere.jsonl", "--data: ");
    e2e_says(t, why);
    refuses(t, PPO "--data texts.jsonl", why);
    e2e_says(t, "--prompts FILE");
    refuses(t, PPO "--set data.path=texts.jsonl", "--set: data.path");
    refuses(t, SFT "--prompts prompts.txt",
            "--prompts: prompts.path has no effect here: sft.so learns from rows of a file");
    refuses(t, "--algo sft.so " START "--data nowhere.jsonl", "nowhere.jsonl");
    refuses(t, PPO "--prompts nowhere.jsonl", "nowhere.jsonl");
}

static void settings_of_other_kinds_of_runs(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "pairs.jsonl",
              "{\"prompt\": \"It\", \"chosen\": \" is\", \"rejected\": \" was\"}\n");
    static const struct {
        const char *args, *sentence;
    } cases[] = {
        {PPO "--set data.skip=1", "data.skip has no effect here: ppo.so responds to prompts"},
        {PPO "--set data.epochs=2", "data.epochs has no effect here"},
        {PPO "--set data.assistant_only=true",
         "data.assistant_only has no effect here: ppo.so responds to prompts"},
        {CLASSIFY "--set data.assistant_only=true", "data.assistant_only has no effect here"},
        {PPO "--set prompts.field=text",
         "prompts.field has no effect here: each line of the file is a prompt"},
        {PPO "--set sampling.top_k=4000",
         "sampling.top_k has no effect here: 4000 is more than the "},
        {PPO "--set score.labels=a,b", "score.labels has no effect here"},
        {PPO "--set score.calibrate=3", "score.calibrate has no effect here"},
        {GRPO "--set value.critic=separate", "value.critic has no effect here: grpo.so has no"},
        {GRPO "--set value.lr=0.1", "value.lr has no effect here"},
        {PPO "--set value.path=model", "value.path has no effect here: value.critic is shared"},
        {SFT "--set value.init=normal", "value.init has no effect here"},
        {SFT "--set sampling.top_k=3", "sampling.top_k has no effect here: sft.so draws no"},
        {SFT "--set response.truncate=stop", "response.truncate has no effect here"},
        {SFT "--set rewards.clip=3", "rewards.clip has no effect here"},
        {CLASSIFY "--set prompts.prepend_bos=true", "prompts.prepend_bos has no effect here"},
        {SFT "--set reference.path=model", "reference.path has no effect here"},
        {SFT "--set batch.share_prompts=false", "batch.share_prompts has no effect here"},
        {CLASSIFY "--set score.calibrate=3", "score.calibrate has no effect here"},
        {PAIRS "--set prompts.length=3", "prompts.length has no effect here"},
        {PAIRS "--set rewards.normalize=after", "rewards.normalize has no effect here"},
        {"--algo ppo.so:kl_placement=none,kl_measure=false --reward period_count.so --prompts "
         "prompts.txt " START "--set reference.path=model",
         "reference.path has no effect here"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuses(t, cases[i].args, cases[i].sentence);
}

static void numbers_are_decimal_and_names_are_not_empty(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *args, *sentence;
    } cases[] = {
        {PPO "--set 'optim.lr= 0.1'", "optim.lr must be"},
        {PPO "--set optim.lr=0x1p-3", "optim.lr must be"},
        {PPO "--set 'batch.size=8 '", "batch.size must be"},
        {"generate --model model --prompt It --temperature ' 0.5'", "--temperature must be"},
        {"generate --model model --prompt It --temperature 0x1p-1", "--temperature must be"},
        {"generate --model model --prompt It --seed ' 7'", "--seed must be an integer"},
        {"generate --prompt It --stop-id 0x1", "--stop-id must be a token id"},
        {"generate --prompt It --top-k 9999999", "--top-k is 9999999, more than the "},
        {"pairs --model model --judge period_count.so --prompts prompts.txt --out ''",
         "--out must name a file, found nothing"},
        {"export model --to ''", "--to must name a directory, found nothing"},
        {PPO "--out ''", "--out must name a directory, found nothing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuses(t, cases[i].args, cases[i].sentence);
}

static void threads_beyond_the_processors_are_named(void **state) {
    struct e2e *t = *state;
    if (e2e_run(t, SFT "--threads 1000 --dry-run") != 0) fail_msg("%s", t->out);
    e2e_says(t, "run.threads is 1000, but this process may use only ");
}

static void settings_that_another_one_switches_off(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *args, *sentence;
    } cases[] = {
        {SFT "--set optim.muon_lr=0.1", "optim.muon_lr has no effect here: optim.kind is adamw"},
        {SFT "--set optim.schedule=constant --set optim.final_scale=0.1",
         "optim.final_scale has no effect here: optim.schedule is constant"},
        {SFT "--set data.eval_every=2", "data.eval_every has no effect here: data.eval_path"},
        {SFT "--set data.epochs=2", "data.epochs has no effect here: run.phases"},
        {SFT "--set data.batch_tokens=40", "batch.size has no effect here: data.batch_tokens"},
        {SFT "--set checkpoint.best=objective/loss",
         "checkpoint.best has no effect here: checkpoint.every is 0, so the last checkpoint is "
         "always the best"},
        {SFT "--set checkpoint.best_mode=min", "checkpoint.best_mode has no effect here"},
        {PPO "--set response.period_min=2", "response.period_min has no effect here: "
                                            "response.truncate is not period"},
        {PPO "--set response.non_stop_penalty=2", "response.non_stop_penalty has no effect"},
        {PPO "--set log.samples_every=0 --set log.samples=2", "log.samples has no effect here"},
        {PPO "--set compute.backend=reference --set compute.workspace_mib=2",
         "compute.workspace_mib has no effect here"},
        {PPO "--dry-run --print-config", "--dry-run has no effect with --print-config"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuses(t, cases[i].args, cases[i].sentence);
    refuses(t,
            "--algo ppo.so --reward period_count.so " START "--set prompts.text=It "
            "--set prompts.limit=3",
            "prompts.limit has no effect here: prompts.text");
    // An environment that states its tasks itself needs no prompts.
    static const char *const of_prompts[] = {"field=x", "limit=3", "max_tokens=9", "shuffle=false"};
    for (size_t i = 0; i < sizeof of_prompts / sizeof *of_prompts; i++) {
        char args[300];
        snprintf(args, sizeof args,
                 "--algo grpo.so --set algo.group_size=2 --env guess.so " START "--set prompts.%s",
                 of_prompts[i]);
        refuses(t, args,
                "has no effect here: guess.so states its tasks itself, and the run has no prompts");
    }
    // With held-out rows, the settings of the run's own prompts have no effect.
    for (size_t i = 1; i < sizeof of_prompts / sizeof *of_prompts; i += 2) {
        char args[300];
        snprintf(args, sizeof args,
                 "--algo grpo.so --set algo.group_size=2 --env guess.so " START
                 "--set data.eval_path=prompts.txt --set prompts.%s",
                 of_prompts[i]);
        refuses(t, args, "has no effect here: guess.so states its tasks itself");
    }
}

// A plugin reports an option that has no effect because of the values of its other options. Options
// that an algorithm's preset contains are not reported.
static void options_of_plugins(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *args, *sentence;
    } cases[] = {
        {PPO "--set algo.kl_target=3",
         "--set: algo.kl_target has no effect here: kl_controller is fixed"},
        {"--algo grpo.so:group_size=2,kl_placement=none,kl_estimator=k1 --reward period_count.so "
         "--prompts prompts.txt " START,
         "--algo: algo.kl_estimator has no effect here: kl_placement is none"},
        {PPO "--set algo.advantage=sequence --set algo.value_clip=1",
         "algo.value_clip has no effect here: this advantage has no critic"},
        {"--algo ppo.so --reward bt_rm.so:per_token=true,pooling=mean --prompts prompts.txt " START,
         "--reward: reward.0.pooling has no effect here: per_token pays out the mean"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuses(t, cases[i].args, cases[i].sentence);
    // Two kinds of options are not reported: an option at its default, and an option that only
    // configs/ppo.json sets (kl_coef).
    assert_int_equal(e2e_run(t, PPO "--set algo.kl_target=6 --set algo.kl_placement=none"), 0);
    assert_null(strstr(t->out, "without effect"));
    e2e_write(t, "c.json", "{\"algo\": {\"plugin\": \"ppo.so\", \"kl_unit\": \"token\"}}");
    assert_int_equal(e2e_run(t, PPO "--config c.json --out y"), 0);
    e2e_says(t, "warning: c.json: without effect here: algo.kl_unit (kl_controller is fixed)");
}

// A file may hold settings for several algorithms. Settings without effect are named once.
static void a_file_may_hold_more(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "c.json",
              "{\"sampling\": {\"top_k\": 3, \"top_p\": 1.0}, \"optim\": {\"muon_lr\": 0.1}}");
    assert_int_equal(e2e_run(t, SFT "--config c.json"), 0);
    e2e_says(t, "warning: c.json: without effect here: sampling.top_k (sft.so draws no responses), "
                "optim.muon_lr (optim.kind is adamw)");
    assert_null(strstr(t->out, "top_p"));
    // A run's own config.json is accepted, and settings that the run used are not reported.
    assert_int_equal(e2e_run(t, "--config x/config.json --out y"), 0);
    assert_null(strstr(t->out, "data.path"));
    assert_int_equal(e2e_run(t, PPO "--resume x"), 2);
}

static void flags_of_commands(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "pairs.jsonl", "");
    assert_int_equal(e2e_run(t, SFT), 0);
    static const struct {
        const char *args, *sentence;
    } cases[] = {
        {"eval --data texts.jsonl --set sampling.top_k=3",
         "eval: --set has no effect without --reward"},
        {"eval --data texts.jsonl --config c.json", "--config has no effect without --reward"},
        {"eval --data texts.jsonl --n 3", "--n has no effect without --reward"},
        {"eval --data texts.jsonl --seed 3", "--seed has no effect without --reward"},
        {"eval --data texts.jsonl --max-tokens 3", "--max-tokens has no effect"},
        {"eval --data prompts.txt --reward period_count.so --max-tokens 3",
         "--max-tokens has no effect with --reward"},
        {"eval --data prompts.txt --reward period_count.so --set optim.lr=1",
         "--set: optim.lr has no effect here: eval looks at"},
        {"eval --data prompts.txt --reward period_count.so --set run.seed=3", "run.seed"},
        {"eval --data prompts.txt --reward period_count.so --set rewards.clip=3", "rewards.clip"},
        {"generate --greedy --temperature 2", "--temperature has no effect with --greedy"},
        {"generate --greedy --top-k 2", "--top-k has no effect with --greedy"},
        {"generate --greedy --seed 2", "--seed has no effect with --greedy"},
        {"generate --greedy --n 2", "--n has no effect with --greedy"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char args[512];
        snprintf(args, sizeof args, "%s --model x/checkpoints/latest", cases[i].args);
        int status = e2e_run(t, "%s", args);
        if (status != 2) fail_msg("%s: exit status %d\n%s", args, status, t->out);
        e2e_says(t, cases[i].sentence);
    }
    assert_int_equal(e2e_run(t, "pairs --model x/checkpoints/latest --judge period_count.so --out "
                                "p.jsonl --set batch.size=3"),
                     2);
    e2e_says(t, "--set: batch.size has no effect here: pairs looks at");
}

#define T(f) cmocka_unit_test_setup_teardown(f, e2e_setup, e2e_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_named_file_is_used_or_refused),
        T(settings_of_other_kinds_of_runs),
        T(numbers_are_decimal_and_names_are_not_empty),
        T(threads_beyond_the_processors_are_named),
        T(settings_that_another_one_switches_off),
        T(options_of_plugins),
        T(a_file_may_hold_more),
        T(flags_of_commands),
    };
    return cmocka_run_group_tests_name("e2e_effect", tests, NULL, NULL);
}
