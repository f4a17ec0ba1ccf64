// test_e2e_cuda.c: one run of each algorithm on the CUDA backend in its emulation. Runs are exact,
// have the same bytes in every order of blocks, and resume to the same bytes on the device and
// across devices.
#include "cuda.h"

#include <stdio.h>
#include <string.h>

#define COMMON                                                                                     \
    "--policy model --set policy.init=random --set log.samples_every=0 --set "                     \
    "log.tensorboard=false --set log.progress=off --threads 1 "
#define ROLLOUT                                                                                    \
    "--prompts prompts.txt --set sampling.max_new_tokens=5 --set batch.size=4 "                    \
    "--set algo.group_size=2 --set batch.microbatch_tokens=64 "
#define PAID "--reward period_count.so --reward ngram3.so:weight=-0.5 "
#define FIT  "--set score.calibrate=8 " // responses for fitting a reward model's gain
#define ROWS "--set batch.size=4 --set batch.microbatch_tokens=64 "

static int install(void **state) {
    if (e2e_setup(state)) return 1;
    struct e2e *t = *state;
    e2e_cuda_install(t);
    e2e_write(
        t, "pairs.jsonl",
        "{\"prompt\": \"the film\", \"chosen\": \" was good.\", \"rejected\": \" was bad\"}\n"
        "{\"prompt\": \"a story\", \"chosen\": \" of the end.\", \"rejected\": \" of it\"}\n");
    return 0;
}

static void fine(struct e2e *t, int status) {
    if (status != 0) fail_msg("exit status %d:\n%s", status, t->out);
}

// Runs the program with `args` into the directory `out`. `seed` gives the order in which the
// emulation runs blocks and threads.
static void run(struct e2e *t, int seed, const char *backend, const char *args, const char *out) {
    fine(t, e2e_shell(t, "EMU_SEED=%d " CUDA_HOST " --set compute.backend=%s --out %s %s", seed,
                      backend, out, args));
}

static void goes_on(struct e2e *t, const char *out, const char *args) {
    fine(t, e2e_shell(t, CUDA_HOST " --resume %s %s", out, args));
}

// If two runs have the same arguments and different orders of blocks, they are equal, and their
// log-probs are exact.
static void runs_exactly(struct e2e *t, const char *args, int draws) {
    run(t, 1, "auto", args, "a");
    if (!strstr(t->out, "compute: cuda, GPU 0, Emulated GPU")) fail_msg("no GPU:\n%s", t->out);
    fine(t, e2e_shell(t, "grep -q '\"backend\": \"cuda\"' a/config.json a/manifest.json"));
    json_t *rows = e2e_metrics(t, "a");
    assert_int_equal(json_array_size(rows), 2);
    if (draws && e2e_metric(rows, 0, "sampling/logp_difference/max") != 0)
        fail_msg("%s: log-probs differ by %g", args,
                 e2e_metric(rows, 0, "sampling/logp_difference/max"));
    assert_true(e2e_metric(rows, 0, "optim/skipped_steps") == 0);
    json_decref(rows);
    run(t, 2, "auto", args, "b");
    e2e_same_tree(t, "a/checkpoints", "b/checkpoints");
    fine(t, e2e_shell(t, "rm -r a b"));
}

#define SHARED "--set batch.share_prompts=true "
#define ALONE  "--set batch.share_prompts=false "
#define F32    "--set compute.dtype=f32 "
#define BF16   "--set compute.dtype=bf16 "
#define TWO    "--phases 2 "

static void ppo(void **state) {
    runs_exactly(*state, TWO COMMON ROLLOUT PAID F32 SHARED "--algo ppo.so", 1);
    runs_exactly(*state,
                 TWO COMMON ROLLOUT PAID BF16 ALONE
                 "--algo ppo.so --set value.kind=mlp --set sampling.top_k=20",
                 1);
}

static void grpo(void **state) {
    runs_exactly(*state, TWO COMMON ROLLOUT PAID BF16 SHARED "--algo grpo.so", 1);
    runs_exactly(*state, TWO COMMON ROLLOUT PAID F32 ALONE "--algo grpo.so", 1);
}

// The reference's hidden states stay on the GPU from its forward pass to the last minibatch.
static void full_kl(void **state) {
    runs_exactly(*state,
                 TWO COMMON ROLLOUT PAID BF16 SHARED
                 "--algo grpo.so --set algo.minibatches=2 --set algo.kl_placement=loss --set "
                 "algo.kl_estimator=full",
                 1);
}

static void rloo(void **state) {
    runs_exactly(*state, TWO COMMON ROLLOUT PAID BF16 SHARED "--algo rloo.so", 1);
}

static void grpo_iterative(void **state) {
    struct e2e *t = *state;
    run(t, 3, "cuda",
        TWO COMMON ROWS FIT F32
        "--algo bradley_terry.so --data pairs.jsonl --set sampling.max_new_tokens=5",
        "r");
    runs_exactly(t,
                 TWO COMMON ROLLOUT FIT BF16 SHARED
                 "--algo grpo_iterative.so:replay=true,iteration_phases=1 --reward "
                 "bt_rm.so:model=r/checkpoints/latest --judge period_count.so",
                 1);
}

static void rows_of_files(void **state) {
    static const char *const runs[] = {
        TWO COMMON ROWS BF16 "--algo sft.so --data texts.jsonl",
        TWO COMMON ROWS F32 "--algo sft.so --data texts.jsonl --set optim.kind=muon",
        TWO COMMON ROWS BF16 SHARED "--algo dpo.so --data pairs.jsonl",
        TWO COMMON ROWS F32 ALONE "--algo dpo.so --data pairs.jsonl",
        TWO COMMON ROWS F32 "--algo classify.so --data labeled.jsonl",
        TWO COMMON ROWS FIT BF16
        "--algo bradley_terry.so --data pairs.jsonl --set sampling.max_new_tokens=5",
    };
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        runs_exactly(*state, runs[i], 0);
}

static void ten_and_ten_are_twenty(void **state) {
    struct e2e *t = *state;
    static const char args[] = COMMON ROLLOUT PAID BF16 SHARED
        "--algo ppo.so --phases 20 --set checkpoint.keep=1 --set sampling.max_new_tokens=3";
    char half[1024];
    run(t, 1, "cuda", args, "whole");
    snprintf(half, sizeof half, "%s --set run.stop_after=10", args);
    run(t, 2, "auto", half, "parts");
    assert_true(e2e_exists(t, "parts/checkpoints/000010"));
    goes_on(t, "parts", "--set run.stop_after=0");
    e2e_same_tree(t, "whole/checkpoints/000020", "parts/checkpoints/000020");
}

static void a_run_changes_devices(void **state) {
    struct e2e *t = *state;
    run(t, 1, "auto",
        COMMON ROWS F32 "--algo sft.so --data texts.jsonl --phases 2 --set optim.schedule_phases=9",
        "a");
    fine(t, e2e_shell(t, "cp -r a b"));
    // If the GPU is missing, a resume does not silently switch to the CPU.
    assert_int_equal(
        e2e_shell(t, "RLHF_FAKE_CUDA=driver=0 " CUDA_HOST " --resume a --set run.phases=3"), 2);
    e2e_says(t, "the run was made on a GPU (--set compute.backend=cpu goes on without one): ");
    e2e_says(t, "there is no NVIDIA driver");
    goes_on(t, "a", "--set run.phases=3 --set compute.backend=cpu");
    e2e_says(t, "the run was computed by the backend cuda in f32 and goes on with cpu in f32: each "
                "gives the same bits every time, but not those of the other");
    fine(t, e2e_shell(t, "grep -q '\"backend\": \"cpu\"' a/config.json a/manifest.json && "
                         "grep -q '\"earlier\"' a/manifest.json"));
    // The run has now continued on the CPU. If it is then resumed on a named GPU that is missing,
    // the message does not say that the run was made on a GPU.
    assert_int_equal(e2e_shell(t, "RLHF_FAKE_CUDA=driver=0 " CUDA_HOST
                                  " --resume a --set run.phases=4 --set compute.backend=cuda"),
                     2);
    e2e_says(t, "there is no NVIDIA driver");
    if (strstr(t->out, "made on a GPU")) fail_msg("it was made on the CPU:\n%s", t->out);
    goes_on(t, "a", "--set run.phases=4"); // the GPU was stored
    if (strstr(t->out, "goes on with")) fail_msg("nothing changed:\n%s", t->out);
    e2e_says(t, "compute: cpu, ");
    goes_on(t, "a", "--set run.phases=5 --set compute.backend=auto");
    e2e_says(t, "computed by the backend cpu in f32 and goes on with cuda");
    assert_true(e2e_exists(t, "a/checkpoints/000005/model.safetensors"));
    // Both runs began at the same checkpoint and learned from the same rows.
    goes_on(t, "b", "--set run.phases=5");
    json_t *x = e2e_metrics(t, "a"), *y = e2e_metrics(t, "b");
    const double d = e2e_metric(x, 4, "objective/loss") - e2e_metric(y, 4, "objective/loss");
    if (!(d < 1e-4 && d > -1e-4))
        fail_msg("losses differ by %g (%g)", d, e2e_metric(x, 4, "objective/loss"));
    json_decref(x);
    json_decref(y);
}

// Two kinds of models: those of Llama's family with one key head for two query heads, and those of
// Qwen3's family with norms on the heads.
#define SHAPE                                                                                      \
    "\"vocab_size\": 260, \"hidden_size\": 32, \"intermediate_size\": 48, "                        \
    "\"num_hidden_layers\": 2, \"max_position_embeddings\": 64, \"bos_token_id\": 259, "           \
    "\"eos_token_id\": 259, \"hidden_act\": \"silu\", \"rms_norm_eps\": 1e-06, "                   \
    "\"rope_theta\": 10000.0, "

static void decoders(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "model/config.json",
              "{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], " SHAPE
              "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
              "\"tie_word_embeddings\": false}\n");
    runs_exactly(t, TWO COMMON ROLLOUT PAID F32 ALONE "--algo ppo.so --set compute.recompute=layer",
                 1);
    e2e_write(t, "model/config.json",
              "{\"model_type\": \"qwen3\", \"architectures\": [\"Qwen3ForCausalLM\"], " SHAPE
              "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 24, "
              "\"tie_word_embeddings\": true}\n");
    runs_exactly(t, TWO COMMON ROLLOUT PAID BF16 SHARED "--algo grpo.so", 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ppo, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(decoders, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(grpo, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(full_kl, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(rloo, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(grpo_iterative, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(rows_of_files, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(ten_and_ten_are_twenty, install, e2e_teardown),
        cmocka_unit_test_setup_teardown(a_run_changes_devices, install, e2e_teardown),
    };
    return cmocka_run_group_tests_name("e2e_cuda", tests, NULL, NULL);
}
