// test_e2e_own_models.c: users' model directories, and the messages for unsuitable directories.
#include "e2e.h"

#include <string.h>

#define RL                                                                                         \
    "--policy nobos --reward period_count.so --prompts prompts.txt "                               \
    "--set policy.init=random --set batch.size=8 --set sampling.max_new_tokens=4 "

static void done(struct e2e *t, int status) {
    if (status) fail_msg("exit %d\n%s", status, t->out);
}

static void refused(struct e2e *t, int status, const char *text) {
    if (status != 2) fail_msg("exit status %d, not 2:\n%s", status, t->out);
    e2e_says(t, text);
}

static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    struct e2e *t = *state;
    done(t, e2e_shell(t, "cp -r model nobos"));
    e2e_write(t, "nobos/tokenizer_config.json",
              "{\"tokenizer_class\": \"GPT2Tokenizer\", \"bos_token\": null, "
              "\"eos_token\": \"<|endoftext|>\"}\n");
    return 0;
}

// ---- a tokenizer without BOS, like Qwen's ----

#define NO_BOS "texts: no BOS before"

static void a_default_asks_for_no_bos(void **state) {
    struct e2e *t = *state;
    static const char *const algos[] = {"ppo", "grpo", "rloo"};
    for (int i = 0; i < 3; i++) {
        done(t,
             e2e_run(t, "--algo %s.so " RL "--set run.phases=1 --set log.rollouts=true --out r%d",
                     algos[i], i));
        e2e_says(t, NO_BOS);
    }
    // "It was" is six bytes.
    done(t, e2e_shell(t, "grep -q '\"prompt_length\": 6' r0/rollouts.jsonl || "
                         "{ head -n 2 r0/rollouts.jsonl; exit 1; }"));
    // The run's config.json stores the default that the run used. It can start another run.
    done(t, e2e_run(t, "--config r0/config.json --out again"));
    e2e_says(t, NO_BOS);
    done(t, e2e_shell(t, "cmp r0/checkpoints/000001/model.safetensors "
                         "again/checkpoints/000001/model.safetensors"));
    done(t, e2e_shell(t, "cp -rL r0/checkpoints/latest m"));
    done(t, e2e_run(t, "eval --model m --data prompts.txt --n 4 --reward period_count.so"));
    done(t,
         e2e_run(t, "pairs --model m --prompts prompts.txt --judge period_count.so --out p.jsonl"));
}

static void what_is_typed_is_refused(void **state) {
    struct e2e *t = *state;
    refused(t, e2e_run(t, "--algo ppo.so " RL "--set prompts.prepend_bos=true --out x"),
            "--set: prompts.prepend_bos has no effect here: the tokenizer of '");
    e2e_says(t, "nobos' has no BOS token");
    assert_false(e2e_exists(t, "x"));
    done(t, e2e_run(t, "--algo ppo.so " RL "--set prompts.prepend_bos=false --set run.phases=1 "
                       "--out y"));
}

static void generate_begins_as_the_tokenizer_says(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, "--algo sft.so --policy nobos --data texts.jsonl --set policy.init=random "
                       "--set run.phases=1 --out s"));
    done(t, e2e_shell(t, "cp -rL s/checkpoints/latest m && cp -r m bos && "
                         "sed -i 's/\"bos_token\": null/\"bos_token\": \"<|endoftext|>\", "
                         "\"add_bos_token\": true/' bos/tokenizer_config.json"));
    refused(t, e2e_run(t, "generate --model m --prompt a --bos"), "--bos: the tokenizer of '");
    refused(t, e2e_run(t, "generate --model m --prompt a --prompt ''"),
            "prompt 2 is empty, which stands for the BOS token alone, but the tokenizer of '");
    done(t, e2e_run(t, "generate --model m --prompt a --max-new 2"));
    done(t, e2e_shell(t, "for bos in '' --bos; do \"$HOST\" generate --model bos --prompt a --json "
                         "--max-new 2 $bos >got$bos || exit 1; done; cmp got got--bos"));
    done(t, e2e_run(t, "generate --model bos --prompt '' --max-new 2 --bos"));
}

// ---- classifiers given as a language model ----

static void a_classifier_is_no_language_model(void **state) {
    struct e2e *t = *state;
    static const char says[] =
        "is a classifier or a reward model: it scores texts and cannot write";
    done(t,
         e2e_shell(t, "cp -r model c && sed -i 's/GPT2LMHeadModel/GPT2ForSequenceClassification/'"
                      " c/config.json"));
    e2e_write(t, "pairs.jsonl", "{\"prompt\": \"a\", \"chosen\": \" b\", \"rejected\": \" c\"}\n");
    // The weights are missing as well, but the wrong type of model is reported first.
    refused(t, e2e_run(t, "generate --model c --prompt a"), says);
    refused(t, e2e_run(t, "--algo sft.so --policy c --data texts.jsonl --dry-run"), says);
    refused(t, e2e_run(t, "--algo dpo.so --policy c --data pairs.jsonl --dry-run"), says);
    refused(t, e2e_run(t, "--algo ppo.so " RL "--set reference.path=c --dry-run"), says);
    refused(t,
            e2e_run(t, "--algo classify.so --policy c --data labeled.jsonl "
                       "--set score.labels=a,b,c --dry-run"),
            "c' is a classifier of 2 labels, whose head would be trained further, but 3 are "
            "needed");
    done(t, e2e_run(t, "--algo classify.so --policy c --data labeled.jsonl --dry-run "
                       "--set score.labels=NEG,POS,NIL --set policy.init=random"));
    refused(t, e2e_run(t, "--algo bradley_terry.so --policy c --data pairs.jsonl --dry-run"),
            "c' is a classifier of 2 labels, whose head would be trained further, but 1 is needed");
}

// ---- files ----

static void a_plugin_s_refusal_names_the_directory(void **state) {
    struct e2e *t = *state;
    done(t, e2e_shell(t, "cp -r model odd && sed -i 's/\"n_head\": 2/\"n_head\": 5/' "
                         "odd/config.json"));
    refused(t, e2e_run(t, "generate --model odd --prompt a"), "--model: ");
    e2e_says(t, "/odd: model gpt2.so: config.json: n_embd (32) must be a "
                "multiple of n_head (5)");
}

// Sets the last bytes of the file, which belong to a matrix, to a NaN (all bits set).
static void weights_that_are_no_numbers_are_whose(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, "--algo sft.so --policy model --data texts.jsonl --set policy.init=random "
                       "--set run.phases=1 --out s"));
    done(t, e2e_shell(t, "cp -rL s/checkpoints/latest nan && truncate -s -32768 "
                         "nan/model.safetensors && head -c 32768 /dev/zero | tr '\\0' '\\377' "
                         ">>nan/model.safetensors"));
    assert_int_equal(e2e_run(t, "generate --model nan --prompt a"), 1);
    e2e_says(t, "error: the model '");
    e2e_says(t, "/nan': model gpt2.so, gen_step(): ");
    e2e_says(t, "the logits of row 0 are not finite");
}

// The default prompts fit only the default policy.
static void default_prompts_are_told(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, "--algo ppo.so --policy model --set policy.init=random --reward "
                       "period_count.so --set batch.size=4 --set algo.minibatches=1 --dry-run"));
    e2e_says(t, "prompts: the default ones, beginnings of film reviews; --prompts FILE names");
    done(t, e2e_run(t, "--algo ppo.so " RL "--dry-run"));
    assert_null(strstr(t->out, "prompts: the default ones"));
}

// The defaults were tuned on the default policy. A run of a much larger model lists those that it
// uses, unless it has its own learning rate or a preset. (Nothing is drawn in a dry run.)
static void defaults_of_another_model_are_told(void **state) {
    struct e2e *t = *state;
    const char *told = "these settings are defaults, tuned on a model of 7.6 million parameters";
    done(t, e2e_shell(t, "cp -r model large && sed -i 's/\"n_embd\": 32/\"n_embd\": 1024/; "
                         "s/\"n_layer\": 2/\"n_layer\": 3/' large/config.json"));
#define LARGE " --policy large --set policy.init=random --dry-run --set compute.memory_check=false "
#define GRPO  "--algo grpo.so --prompts prompts.txt --reward period_count.so" LARGE
    done(t, e2e_run(t, GRPO));
    e2e_says(t, told);
    e2e_says(t, "(the policy has 38.12 million): optim.lr 0.0001, algo.kl_coef 0.2, batch.size "
                "128, sampling.max_new_tokens 48; for a chat model use --preset chat-grpo");
    done(t, e2e_run(t, GRPO "--set batch.size=32 --set algo.kl_coef=0.1"));
    e2e_says(t, "optim.lr 0.0001, sampling.max_new_tokens 48; for a chat model use --preset");
    done(t, e2e_run(t, "--algo sft.so --data texts.jsonl" LARGE));
    e2e_says(t, "optim.lr 0.0001, batch.size 64; for a chat model use --preset chat-sft");
    done(t, e2e_run(t, "--algo ppo.so --prompts prompts.txt --reward period_count.so" LARGE));
    e2e_says(t, "sampling.max_new_tokens 48; set them for this model (docs/");
    done(t, e2e_run(t, GRPO "--set optim.lr=1e-5"));
    assert_null(strstr(t->out, told));
    done(t, e2e_run(t, "--preset chat-grpo --prompts prompts.txt --reward period_count.so" LARGE));
    assert_null(strstr(t->out, told));
    done(t, e2e_run(t, "--algo ppo.so " RL "--dry-run"));
    assert_null(strstr(t->out, told));
#undef GRPO
#undef LARGE
}

// A run logs a note if its updates are too small for products in bf16. It does not if they add up
// over the run, the products are in f32, only an adapter is trained, or the weights are random.
static void small_updates_in_bf16_are_noted(void **state) {
    struct e2e *t = *state;
    const char *note = "products in bf16 use the old value of every weight above 0.082";
    done(t, e2e_run(t, "--algo sft.so --policy model --data texts.jsonl --set policy.init=random "
                       "--set batch.size=4 --set run.phases=1 --out trained"));
#define SMALL                                                                                      \
    "--algo grpo.so --policy trained --prompts prompts.txt --reward period_count.so --dry-run "    \
    "--set algo.epochs=1 --set algo.minibatches=1 --set optim.warmup=0 "                           \
    "--set optim.schedule=constant --set optim.lr=2e-5 --set compute.dtype=bf16 "                  \
    "--set batch.size=8 --set sampling.max_new_tokens=4 "
    done(t, e2e_run(t, SMALL "--set run.phases=8"));
    e2e_says(t, "optim.lr=2e-05 moves a weight by about 0.00016 in 8 phases; ");
    e2e_says(t, note);
    const char *const others[] = {"--set run.phases=10", "--set compute.dtype=f32",
                                  "--set policy.adapter.rank=2", "--set policy.init=random",
                                  "--set algo.epochs=2"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char flags[512];
        snprintf(flags, sizeof flags, SMALL "--set run.phases=8 %s", others[i]);
        done(t, e2e_run(t, "%s", flags));
        assert_null(strstr(t->out, "products in bf16 use"));
    }
#undef SMALL
}

static void what_may_not_be_read_is_there(void **state) {
    struct e2e *t = *state;
    if (e2e_shell(t, "chmod 000 model && ! ls model") != 0) {
        done(t, e2e_shell(t, "chmod 755 model"));
        skip(); // root can read all files
    }
    int status = e2e_run(t, "generate --model model --prompt a");
    done(t, e2e_shell(t, "chmod 755 model && chmod 000 texts.jsonl"));
    int rows = e2e_run(t, "--algo sft.so --data texts.jsonl --policy model --dry-run");
    refused(t, rows, "cannot open ");
    assert_int_equal(status, 2);
}

// NUL, a byte of the vocabulary, is an ordinary character of a response.
static void a_sample_may_hold_nul(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, "--algo ppo.so " RL "--set run.phases=2 --set checkpoint.every=1 "
                       "--set log.samples_every=1 --set log.samples=2 --out r"));
    done(t, e2e_shell(t, "sed -i 's/\"response\": \"/&\\\\u0000/' r/samples.jsonl && "
                         "grep -q u0000 r/samples.jsonl && ln -sfn 000001 r/checkpoints/latest"));
    done(t, e2e_run(t, "--resume r"));
    assert_null(strstr(t->out, "no row of the phases done"));
    done(t, e2e_shell(t, "test $(wc -l <r/samples.jsonl) = 4 && "
                         "test $(grep -c u0000 r/samples.jsonl) = 2"));
}

// A resume may repeat arguments of the run's start, from any directory.
static void a_resume_may_repeat_paths(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, "--algo ppo.so " RL "--set run.phases=1 --out r"));
    done(t, e2e_shell(t, "mkdir -p sub && cp -r nobos other && echo >>other/config.json && cd sub "
                         "&& \"$HOST\" --resume ../r "
                         "--policy ../nobos --prompts ../prompts.txt --phases 2"));
    done(t, e2e_shell(t, "! grep -q '\"\\.\\./' r/config.json"));
    refused(t, e2e_run(t, "--resume r --policy other"),
            "has changed: policy.path (the reference) ");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, e2e_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(a_default_asks_for_no_bos),
                                       TEST(what_is_typed_is_refused),
                                       TEST(generate_begins_as_the_tokenizer_says),
                                       TEST(a_classifier_is_no_language_model),
                                       TEST(a_plugin_s_refusal_names_the_directory),
                                       TEST(weights_that_are_no_numbers_are_whose),
                                       TEST(default_prompts_are_told),
                                       TEST(defaults_of_another_model_are_told),
                                       TEST(small_updates_in_bf16_are_noted),
                                       TEST(what_may_not_be_read_is_there),
                                       TEST(a_sample_may_hold_nul),
                                       TEST(a_resume_may_repeat_paths)};
    return cmocka_run_group_tests_name("e2e_own_models", tests, NULL, NULL);
}
