// test_e2e_adapter.c: runs that train a low-rank adapter. The base is loaded once and never
// written, log-probs are exact, and a run resumes from its adapter alone. Also tests which inputs
// are refused.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define QUIET "--set log.samples_every=0 --set log.tensorboard=false "
#define SHAPE                                                                                      \
    "\"vocab_size\": 260, \"hidden_size\": 32, \"intermediate_size\": 48, "                        \
    "\"num_hidden_layers\": 2, \"max_position_embeddings\": 64, \"bos_token_id\": 259, "           \
    "\"eos_token_id\": 259, \"hidden_act\": \"silu\", \"rms_norm_eps\": 1e-06"

static const char qwen3[] =
    "{\"model_type\": \"qwen3\", \"architectures\": [\"Qwen3ForCausalLM\"], " SHAPE ", "
    "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 24, "
    "\"use_sliding_window\": false, \"sliding_window\": null, \"max_window_layers\": 2, "
    "\"layer_types\": [\"full_attention\", \"full_attention\"], \"tie_word_embeddings\": true, "
    "\"rope_theta\": 1000000.0, \"rope_scaling\": null}\n";

static void done(struct e2e *t, int status) {
    if (status) fail_msg("exit %d\n%s", status, t->out);
}

static void start(struct e2e *t, const char *model, const char *to) {
    done(t, e2e_run(t,
                    "--algo sft.so --data texts.jsonl --policy %s --set policy.init=random --set "
                    "run.phases=1 --out s " QUIET,
                    model));
    done(t, e2e_shell(t, "cp -rL s/checkpoints/latest %s && rm -rf s %s/state", to, to));
}

// gpt2/ and qwen/: two bases with weights.
static int models(void **state) {
    if (e2e_setup(state)) return 1;
    struct e2e *t = *state;
    done(t, e2e_shell(t, "cp -r model qwen3"));
    e2e_write(t, "qwen3/config.json", qwen3);
    e2e_write(
        t, "pairs.jsonl",
        "{\"prompt\": \"the film\", \"chosen\": \" was good.\", \"rejected\": \" was bad\"}\n"
        "{\"prompt\": \"a story\", \"chosen\": \" of the end.\", \"rejected\": \" of it\"}\n");
    start(t, "model", "gpt2");
    start(t, "qwen3", "qwen");
    return 0;
}

#define RUN                                                                                        \
    "--prompts prompts.txt --reward \"$RLHF_TEST_PLUGINS/even_judge.so\" --set "                   \
    "sampling.max_new_tokens=12 --set "                                                            \
    "batch.size=8 --set algo.group_size=4 --set optim.schedule_phases=4 --set optim.lr=1e-3 "      \
    "--set policy.adapter.rank=4 " QUIET

static double metric(struct e2e *t, const char *run, int i, const char *name) {
    json_t *rows = e2e_metrics(t, run);
    const double v = e2e_metric(rows, i, name);
    json_decref(rows);
    return v;
}

// A run of two phases that is resumed for two more gives the same bytes as a run of four phases.
// The checkpoint does not contain the base. Other thread counts, microbatches, shared prompts and
// recomputation make no difference.
static void goes_on(struct e2e *t, const char *base, const char *algo, const char *more) {
    done(t, e2e_run(t, "--algo %s --policy %s --set run.phases=4 --out a --threads 2 " RUN "%s",
                    algo, base, more));
    done(t, e2e_run(t, "--algo %s --policy %s --set run.phases=2 --out b " RUN "%s", algo, base,
                    more));
    done(t, e2e_run(t, "--resume b --set run.phases=4 --set compute.recompute=layer"));
    e2e_same_tree(t, "a/checkpoints/000004", "b/checkpoints/000004");
    done(t, e2e_shell(t, "cd a/checkpoints/latest && test -f adapter_config.json && test -f "
                         "adapter_model.safetensors && test -f state/base.json && ! ls "
                         "model.safetensors state/master.safetensors 2>/dev/null"));
    double moved = 0;
    for (int i = 0; i < 4; i++) {
        assert_true(metric(t, "a", i, "sampling/logp_difference/max") == 0);
        moved += metric(t, "a", i, "optim/adapter_update_norm");
    }
    assert_true(moved > 0);
    // B starts at 0, so the policy equals its reference.
    assert_true(metric(t, "a", 0, "objective/kl") == 0);
    done(t, e2e_run(t, "generate --model a/checkpoints/latest --prompt 'It was' --max-new 4"));
    done(t, e2e_run(t,
                    "generate --model %s --adapter a/checkpoints/latest --prompt 'It was' "
                    "--max-new 4",
                    base));
    done(t, e2e_shell(t, "rm -rf a b"));
}

static void gpt2_runs(void **state) {
    goes_on(*state, "gpt2", "ppo.so", "");
    goes_on(*state, "gpt2", "grpo.so",
            "--set batch.microbatch_tokens=64 "
            "--set policy.adapter.targets=c_attn");
}

static void qwen_runs(void **state) {
    goes_on(*state, "qwen", "grpo.so", "--set compute.dtype=bf16 --set batch.share_prompts=false");
    goes_on(*state, "qwen", "ppo.so",
            "--set value.critic=separate --set policy.adapter.targets=q_proj,v_proj");
}

// Microbatches, shared prompts and threads do not change an adapter.
static void layouts(void **state) {
    struct e2e *t = *state;
    static const char *const other[] = {"--threads 2", "--set batch.share_prompts=false",
                                        "--set batch.microbatch_tokens=40"};
    done(t, e2e_run(t, "--algo grpo.so --policy qwen --set run.phases=2 --out a " RUN));
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        done(t, e2e_run(t, "--algo grpo.so --policy qwen --set run.phases=2 --out b %s " RUN,
                        other[i]));
        assert_true(metric(t, "b", 1, "sampling/logp_difference/max") == 0);
        if (i < 1)
            done(t, e2e_shell(t, "cmp a/checkpoints/latest/adapter_model.safetensors "
                                 "b/checkpoints/latest/adapter_model.safetensors"));
        assert_true(metric(t, "a", 0, "objective/kl") == metric(t, "b", 0, "objective/kl"));
        done(t, e2e_shell(t, "rm -rf b"));
    }
}

static void guarded(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, "--algo grpo.so --policy qwen --set run.phases=1 --out a --set "
                       "compute.backend=reference --set compute.guard=true " RUN));
    assert_true(metric(t, "a", 0, "optim/adapter_update_norm") > 0);
}

// The checkpoint stores the adapter exactly, and also rounded.
#define EXACT "--set checkpoint.dtype=bf16"
// The reference is the former adapter on the same base. A resume restores it from the checkpoint.
static void reference_moves(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, "--algo grpo_iterative.so --policy qwen --set algo.iteration_phases=1 "
                       "--set run.phases=3 --out a " RUN EXACT));
    e2e_says(t, "a separate adapter, which becomes the policy's when the reference moves");
    done(t, e2e_run(t, "--algo grpo_iterative.so --policy qwen --set algo.iteration_phases=1 "
                       "--set run.phases=1 --out b " RUN EXACT));
    done(t, e2e_run(t, "--resume b --set run.phases=3"));
    e2e_same_tree(t, "a/checkpoints/000003", "b/checkpoints/000003");
    for (int i = 0; i < 3; i++)
        assert_true(metric(t, "a", i, "objective/kl") == 0); // it moves after each phase
}

// Supervised stages train adapters. The resulting classifier and reward model then score a run's
// responses. They use the base's weights that the policy already holds.
static void stages(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, "--algo sft.so --data texts.jsonl --policy qwen --set run.phases=2 --set "
                       "policy.adapter.rank=2 --out s " QUIET));
    done(t, e2e_run(t, "--algo dpo.so --data pairs.jsonl --policy qwen --adapter s "
                       "--set run.phases=1 --out d " QUIET));
    e2e_says(t, "policy.adapter.path: checkpoint 000002 of ");
    e2e_says(t, "the reference is the policy's base with a separate adapter");
    done(t, e2e_run(t, "--algo classify.so --data labeled.jsonl --policy qwen --set "
                       "score.labels=NEGATIVE,POSITIVE --set run.phases=2 --set "
                       "policy.adapter.rank=2 --out c " QUIET));
    done(t, e2e_run(t, "--algo bradley_terry.so --data pairs.jsonl --policy qwen --set "
                       "run.phases=2 --set sampling.max_new_tokens=6 --set policy.adapter.rank=2 "
                       "--out r " QUIET));
    done(t, e2e_run(t, "eval --model c/checkpoints/latest --data labeled.jsonl"));
    done(t, e2e_run(t, "eval --model r/checkpoints/latest --data pairs.jsonl"));
    done(t, e2e_run(t, "eval --model s/checkpoints/latest --data texts.jsonl"));
    done(t, e2e_run(t, "eval --model qwen --adapter s --data texts.jsonl"));
    e2e_says(t, "--adapter: checkpoint 000002 of s");
    done(t,
         e2e_run(
             t, "--algo grpo.so --reward imdb.so:model=c/checkpoints/latest,self_test=false "
                "--reward bt_rm.so:model=r/checkpoints/latest --policy qwen --prompts "
                "prompts.txt --set sampling.max_new_tokens=6 --set batch.size=8 --set "
                "algo.group_size=4 --set run.phases=1 --set policy.adapter.rank=2 --out g " QUIET));
    e2e_says(t, "the reference is the policy's base without an adapter");
    done(t, e2e_run(t, "eval --model g/checkpoints/latest --reference qwen --reward "
                       "period_count.so --data prompts.txt --n 4 --set sampling.max_new_tokens=4"));
}

// In a run with an adapter all roles share the policy's base values.
static void memory(void **state) {
    struct e2e *t = *state;
    done(t, e2e_shell(t, "$HOST --algo ppo.so --policy qwen --set run.phases=1 --dry-run --set "
                         "value.critic=separate --out a --set log.format=json " RUN
                         " > memory.json 2>/dev/null"));
    json_t *v = NULL, *b;
    char path[512];
    snprintf(path, sizeof path, "%s/memory.json", t->dir);
    v = json_load_file(path, 0, NULL);
    json_int_t policy = 0, critic = 0, reference = 0;
    int packed = 0;
    size_t i;
    json_array_foreach(json_object_get(v, "buffers"), i, b) {
        const char *role = json_string_value(json_object_get(b, "role"));
        const json_int_t bytes = json_integer_value(json_object_get(b, "bytes"));
        const char *use = json_string_value(json_object_get(b, "use"));
        packed += strcmp(use, "packed weights") == 0 && strcmp(role, "reference") == 0;
        if (strcmp(use, "weights") != 0) continue;
        policy += strcmp(role, "policy") == 0 ? bytes : 0;
        critic += strcmp(role, "critic") == 0 ? bytes : 0;
        reference += strcmp(role, "reference") == 0 ? bytes : 0;
    }
    json_decref(v);
    // The critic has a separate adapter and value head (32 x 128 and 128 values).
    assert_true(policy > critic && critic > 0 && reference == 0);
    assert_true(packed == 0); // the LM head, which the reference needs first
}

// Exports the adapter, once alone and once merged with its base. Both exports generate the same
// texts as the checkpoint.
static void exports(void **state) {
    struct e2e *t = *state;
    static const char *const bases[] = {"gpt2", "qwen"};
    for (int i = 0; i < 2; i++) {
        done(t, e2e_run(t,
                        "--algo sft.so --data texts.jsonl --policy %s --set run.phases=2 --set "
                        "policy.adapter.rank=4 --set optim.lr=1e-2 --out s " QUIET,
                        bases[i]));
        done(t, e2e_shell(t, "$HOST export s --to p"));
        done(t, e2e_shell(t, "$HOST export s --merge --to m --gguf m.gguf"));
        done(t, e2e_shell(t, "$HOST export %s --adapter p --merge --to n", bases[i]));
        done(t, e2e_shell(t, "cmp m/model.safetensors n/model.safetensors && test -f "
                             "p/adapter_model.safetensors && ! test -e p/model.safetensors"));
        done(t,
             e2e_shell(t, "for m in s/checkpoints/latest p m; do $HOST generate --dtype f32 "
                          "--model $m --greedy --prompt 'It was' --max-new 8 > $m.txt 2>/dev/null "
                          "|| exit 1; done; mv s/checkpoints/latest.txt c.txt; cmp c.txt p.txt && "
                          "cmp c.txt m.txt"));
        // As llama.cpp's LoRA, in the directory and alone. Nothing in m.Modelfile is merged.
        done(t, e2e_shell(t,
                          "$HOST export s --to q --gguf q/x.gguf && $HOST export s --gguf "
                          "x.gguf && tail -c 4096 x.gguf >a.txt && tail -c 4096 q/x.gguf >b.txt && "
                          "cmp a.txt b.txt && rm a.txt b.txt && "
                          "grep -c adapter.lora.alpha x.gguf && grep -x 'ADAPTER ./x.gguf' "
                          "x.Modelfile q/Modelfile && grep -x \"FROM $PWD/%s\" q/Modelfile && "
                          "test -f q/adapter_model.safetensors && grep -x 'FROM ./m.gguf' "
                          "m.Modelfile && ! grep ADAPTER m.Modelfile",
                          bases[i]));
        assert_int_equal(e2e_shell(t, "$HOST export s --to r --gguf x.gguf --shard-size 1MB"), 2);
        e2e_says(t, "--shard-size has no effect");
        assert_int_equal(e2e_shell(t, "$HOST export %s --merge --to q", bases[i]), 2);
        e2e_says(t, "has no adapter");
        done(t, e2e_shell(t, "rm -rf s p m n q *.gguf *.Modelfile *.txt.txt c.txt p.txt m.txt"));
    }
}

static void refuses(struct e2e *t, const char *args, const char *says) {
    assert_int_equal(e2e_run(t, "%s", args), 2);
    e2e_says(t, says);
    assert_false(e2e_exists(t, "no"));
}

static void refused(void **state) {
    struct e2e *t = *state;
#define SFT "--algo sft.so --data texts.jsonl --policy qwen --out no " QUIET
    refuses(t, SFT "--set policy.adapter.rank=2 --set policy.adapter.targets=q_prj", "q_proj");
    refuses(t, SFT "--set policy.adapter.rank=-1", "policy.adapter.rank");
    refuses(t, SFT "--set policy.adapter.alpha=4", "policy.adapter.rank is 0");
    refuses(t, SFT "--set policy.adapter.rank=2 --set optim.kind=muon", "optim.kind=muon");
    refuses(t, SFT "--set policy.adapter.rank=2 --set policy.init=random", "policy.init=random");
    refuses(t, SFT "--adapter gpt2", "is not an adapter");
    done(t, e2e_run(t, "--algo sft.so --data texts.jsonl --policy gpt2 --set run.phases=1 --set "
                       "policy.adapter.rank=2 --out g " QUIET));
    refuses(t, SFT "--adapter g/checkpoints/latest", "is of the base");
    done(t, e2e_shell(t, "cp -rL g/checkpoints/latest other && rm -r other/state && sed -i "
                         "'s|\"base_model_name_or_path\": .*|\"base_model_name_or_path\": "
                         "\"hub/x\",|' other/adapter_config.json"));
    refuses(t, SFT "--adapter other", "c_attn");
    refuses(t, "generate --model other --prompt x", "is not a model directory here");
    refuses(t, SFT "--adapter g/checkpoints/latest --set policy.adapter.rank=3",
            "policy.adapter.path has its own");
    done(t, e2e_shell(t, "cp -r other dora && sed -i 's/\"use_dora\": false/\"use_dora\": true/' "
                         "dora/adapter_config.json"));
    refuses(t, "generate --model gpt2 --adapter dora --prompt x", "\"use_dora\" true");
    done(t, e2e_shell(t, "printf ' ' >> gpt2/config.json"));
    refuses(t, "--resume g --set run.phases=2", "has changed since the adapter was trained");
    refuses(t, "generate --model g/checkpoints/latest --prompt x", "has changed since");
    done(t, e2e_shell(t, "mv gpt2 away"));
    refuses(t, "--resume g --set run.phases=2", "is not a model directory here");
    assert_int_equal(e2e_shell(t, "$HOST export g --merge --to no"), 2);
    e2e_says(t, "is not a model directory here");
    assert_false(e2e_exists(t, "no"));
}

// If the learning rate is so small that nothing changes, the first phase reports it.
static void stands_still(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, "--algo sft.so --data texts.jsonl --policy qwen --set "
                                "policy.adapter.rank=2 --set optim.lr=1e-300 --set run.phases=3 "
                                "--out a " QUIET),
                     1);
    e2e_says(t, "the adapter does not move: after phase 1");
}

// "base" is the model below the adapter, or the adapter that the run began with.
static void compares(struct e2e *t, const char *model, const char *with) {
    const char *eval = "\"$HOST\" eval --reward period_count.so --data prompts.txt --n 8 --json "
                       "2>log --model";
    if (e2e_shell(t, "%s %s --compare base >a.json && %s %s --compare %s >b.json || cat log", eval,
                  model, eval, model, with))
        fail_msg("%s", t->out);
    assert_int_equal(
        e2e_shell(t, "cat log; jq -S 'del(.compare.model)' a.json >a.txt && jq -S "
                     "'del(.compare.model)' b.json >b.txt && test -s a.txt && cmp a.txt b.txt"),
        0);
}

static void evaluated(void **state) {
    struct e2e *t = *state;
#define ADAPT "--algo sft.so --data texts.jsonl --set optim.lr=0.01 --set run.phases=1 " QUIET
    done(t, e2e_run(t, ADAPT "--policy qwen --set policy.adapter.rank=4 --out a"));
    done(t, e2e_run(t, ADAPT "--policy qwen --adapter a/checkpoints/latest --out b"));
    done(t, e2e_shell(t, "cp -rL a/checkpoints/latest alone && rm -r alone/state"));
    compares(t, "a", "qwen");
    compares(t, "b", "a/checkpoints/latest");
    compares(t, "alone", "qwen");
    compares(t, "qwen --adapter alone", "qwen");
    assert_int_equal(e2e_run(t, "eval --model qwen --reward period_count.so --data prompts.txt "
                                "--compare base"),
                     2);
    e2e_says(t, "or the model below an adapter, and '");
}

#define FLAT                                                                                       \
    "--algo grpo.so --policy qwen --prompts prompts.txt --reward "                                 \
    "\"$RLHF_TEST_PLUGINS/parity_reward.so:levels=1\" --set sampling.max_new_tokens=4 --set "      \
    "batch.size=4 --set algo.group_size=2 --set optim.weight_decay=0.1 --set "                     \
    "policy.adapter.rank=2 " QUIET

// If all rewards are equal, an adapter gets no gradient. Weight decay still shrinks A, but the
// program does not count this as a change.
static void nobody_is_compared(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, FLAT "--set run.phases=20 --out long"), 1);
    e2e_says(t, "phase 1: the adapter is where it started");
    e2e_says(t, "15 more such phases");
    e2e_says(t, "phase 1: the rewards: parity_reward (");
    e2e_says(t, "the adapter has not moved: 16 phases gave no learning signal (last rewards: "
                "parity_reward (");
    assert_int_equal(e2e_run(t, FLAT "--set run.phases=3 --set run.stop_after=2 --out a"), 0);
    done(t, e2e_shell(t, "cp -a a b && grep -q still_phases a/checkpoints/latest/state/run.json"));
    assert_int_equal(e2e_run(t, "--resume a"), 1);
    e2e_says(t, "the adapter has not moved: 3 phases");
    // An adapter that has changed once may stay unchanged later.
    done(t, e2e_shell(t, "sed -i 's/\"still_phases\": 2/\"still_phases\": 0/' "
                         "b/checkpoints/*/state/run.json"));
    done(t, e2e_run(t, "--resume b"));
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, models, e2e_teardown)
    const struct CMUnitTest tests[] = {T(gpt2_runs),
                                       T(qwen_runs),
                                       T(layouts),
                                       T(guarded),
                                       T(reference_moves),
                                       T(stages),
                                       T(memory),
                                       T(exports),
                                       T(refused),
                                       T(stands_still),
                                       T(nobody_is_compared),
                                       T(evaluated)};
    return cmocka_run_group_tests_name("e2e_adapter", tests, NULL, NULL);
}
