// test_e2e_quantised.c: a GGUF file whose weights stay quantised in memory. Runs, samples and
// exports have the bytes that they have with the dequantised weights.
#include "e2e.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUIET   "--set log.samples_every=0 --set log.tensorboard=false "
#define ADAPTER "--set policy.adapter.rank=4 "
#define GRPO                                                                                       \
    "--algo grpo.so --set algo.group_size=4 --prompts prompts.txt --reward "                       \
    "$RLHF_TEST_PLUGINS/parity_reward.so --set sampling.max_new_tokens=8 --set "                   \
    "batch.size=8 " QUIET

static void done(struct e2e *t, int status) {
    if (status) fail_msg("exit %d\n%s", status, t->out);
}

// model.gguf: a small Llama with every format that stays quantised, and one (Q5_K) that does not.
static int setup(void **state) {
    if (e2e_setup(state) != 0) return -1;
    struct e2e *t = *state;
    e2e_write(t, "llama.json",
              "{\"model_type\": \"llama\", \"hidden_size\": 256, \"num_hidden_layers\": 2, "
              "\"intermediate_size\": 256, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, "
              "\"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-6, \"rope_theta\": 10000.0, "
              "\"tie_word_embeddings\": false, \"vocab_size\": 290, \"bos_token_id\": 0, "
              "\"eos_token_id\": 0}\n");
    return e2e_shell(t, "python3 \"$RLHF_SOURCE_DIR/tests/exact/gguf_model.py\" model.gguf "
                        "\"$RLHF_BUILD_DIR/tests/hf/dirs/gpt2/tokenizer.json\" llama.json "
                        "q=Q4_0,k=Q8_0,v=Q5_0,o=Q4_1,down=Q5_1,up=Q5_K,head=Q6_K,*=Q4_K");
}

static void same_adapter(struct e2e *t, const char *a, const char *b) {
    done(t, e2e_shell(t,
                      "cmp %s/checkpoints/latest/adapter_model.safetensors "
                      "%s/checkpoints/latest/adapter_model.safetensors",
                      a, b));
}

static void a_run_has_the_bytes_of_the_dequantised_model(void **state) {
    struct e2e *t = *state;
    static const char *const dtypes[] = {"f32", "bf16"};
    done(t, e2e_shell(t, "\"$HOST\" export model.gguf --to dir"));
    for (int i = 0; i < 2; i++) {
        e2e_shell(t, "rm -rf a b c d");
        done(t, e2e_run(t,
                        GRPO ADAPTER "--policy model.gguf --phases 2 --set compute.dtype=%s "
                                     "--out a",
                        dtypes[i]));
        // q, k, v, o and down of two layers, the embedding and the LM head; gate and up are one
        // matrix
        e2e_says(t, "policy: Q8_0 2, Q4_0 2, Q4_1 2, Q5_0 2, Q5_1 2, Q4_K 1, Q6_K 1 tensors stay "
                    "quantised in memory (");
        e2e_says(t, "Q4_K 2, Q5_K 2 tensors are dequantised when they are read");
        done(t, e2e_run(t,
                        GRPO ADAPTER "--policy model.gguf --phases 2 --set compute.dtype=%s "
                                     "--set policy.dequantize=true --threads 2 --out b",
                        dtypes[i]));
        assert_int_equal(e2e_count(t, "stay quantised"), 0);
        same_adapter(t, "a", "b");
        done(t, e2e_run(t, GRPO ADAPTER "--policy dir --phases 2 --set compute.dtype=%s --out c",
                        dtypes[i]));
        same_adapter(t, "a", "c");
        done(t, e2e_run(t,
                        GRPO ADAPTER "--policy model.gguf --phases 2 --set run.stop_after=1 "
                                     "--set compute.dtype=%s --threads 2 --out d",
                        dtypes[i]));
        done(t, e2e_run(t, "--resume d"));
        same_adapter(t, "a", "d");
    }
    done(t, e2e_shell(t, "\"$HOST\" export a --merge --to merged && test -e "
                         "merged/model.safetensors"));
}

static void frozen_models_stay_quantised(void **state) {
    struct e2e *t = *state;
    done(t, e2e_shell(t, "\"$HOST\" export model.gguf --to dir && \"$HOST\" generate --model dir "
                         "--prompt 'The tree' --max-new 12 2>/dev/null >want && \"$HOST\" "
                         "generate --model model.gguf --prompt 'The tree' --max-new 12 "
                         "2>/dev/null >got && cmp want got && test -s got"));
    // a full run whose reference is another file
    done(t, e2e_run(t, GRPO "--policy model.gguf --set policy.dequantize=true --phases 1 --out a"));
    done(t, e2e_run(t, GRPO "--policy dir --set reference.path=model.gguf --phases 1 --out b"));
    e2e_says(t, "reference: Q8_0 2, ");
    done(t, e2e_shell(t, "cmp a/checkpoints/latest/model.safetensors "
                         "b/checkpoints/latest/model.safetensors"));
}

static void refusals(void **state) {
    struct e2e *t = *state;
    assert_int_equal(e2e_run(t, GRPO "--policy model.gguf --phases 1 --out a"), 2);
    e2e_says(t, "the policy '");
    e2e_says(t, "model.gguf' has 16 quantised tensors, which cannot be trained: train an adapter "
                "(--set policy.adapter.rank=16, or --adapter DIR), or set policy.dequantize=true");
    assert_false(e2e_exists(t, "a"));
    assert_int_equal(e2e_run(t, GRPO "--policy model.gguf --phases 1 --dry-run"), 2);
}

// A block whose scale is not a number, found by its tensor's name: generate, runs and exports
// refuse the file.
static void bad_scales(void **state) {
    struct e2e *t = *state;
    e2e_write(t, "spoil.py",
              "b = bytearray(open('model.gguf', 'rb').read())\n"
              "at = b.index(b'blk.1.attn_q.weight') + 19 + 4 + 2 * 8 + 4\n"        // to its offset
              "end = b.index(b'blk.1.ffn_down.weight') + 21 + 4 + 2 * 8 + 4 + 8\n" // of the head
              "start = -(-end // 32) * 32 + int.from_bytes(b[at:at + 8], 'little')\n"
              "b[start + 18 * 5:start + 18 * 5 + 2] = b'\\x01\\x7c'\n"
              "open('nan.gguf', 'wb').write(b)\n");
    done(t, e2e_shell(t, "python3 spoil.py"));
#define SAYS                                                                                       \
    "nan.gguf: block 5 of tensor model.layers.1.self_attn.q_proj.weight (Q4_0) has a scale that "  \
    "is infinite or NaN"
    assert_int_equal(e2e_run(t, "generate --model nan.gguf --prompt a --max-new 2"), 2);
    e2e_says(t, SAYS);
    assert_int_equal(e2e_run(t, GRPO ADAPTER "--policy nan.gguf --phases 1 --out a"), 2);
    e2e_says(t, SAYS);
    assert_int_equal(e2e_shell(t, "\"$HOST\" export nan.gguf --to dir"), 2);
    e2e_says(t, SAYS);
    assert_false(e2e_exists(t, "dir"));
    assert_int_equal(e2e_shell(t, "\"$HOST\" export nan.gguf --gguf copy.gguf"), 2);
    assert_false(e2e_exists(t, "copy.gguf"));
#undef SAYS
}

// What exports of an adapter say about its base, and what commands say without the base.
static void the_base_is_a_file(void **state) {
    struct e2e *t = *state;
#define LEARN                                                                                      \
    GRPO ADAPTER "--policy model.gguf --phases 1 --set log.rollouts=true --set run.seed=3 "
    done(t, e2e_run(t, LEARN "--out a"));
    assert_int_equal(e2e_count(t, "does not promise"), 0); // its scores are recorded
    done(t, e2e_shell(t, "\"$HOST\" export a --to peft"));
    e2e_says(t, "the base of this adapter is a GGUF file, which PEFT does not load: export it, too "
                "(rlhf-host export ");
    done(t, e2e_shell(t, "\"$HOST\" export a --to named --base-model OWNER/NAME"));
    assert_int_equal(e2e_count(t, "which PEFT does not load"), 0);
    done(t, e2e_shell(t, "\"$HOST\" export a --merge --gguf whole.gguf"));
    e2e_says(t, "written as f16, because the model's weights are quantised; --dtype f32 ");
    e2e_says(t, "for llama.cpp as f16: whole.gguf");
    done(t, e2e_shell(t, "grep -aq general.base_model.0.name whole.gguf"));
    assert_int_equal(e2e_run(t, "generate --model model.gguf --adapter whole.gguf --prompt a"), 2);
    e2e_says(t, "whole.gguf is a GGUF file; an adapter is read only as PEFT or a run writes it");
    done(t, e2e_run(t, "verify a --all"));
    done(t, e2e_shell(t, "mv model.gguf moved.gguf"));
    assert_int_equal(e2e_run(t, "verify a --all"), 2);
    e2e_says(t, "model.gguf does not exist");
}

// The copy of an adapter during an update is counted, even if an update cannot be undone.
static void the_copy_of_an_adapter_is_counted(void **state) {
    struct e2e *t = *state;
    done(t, e2e_run(t, GRPO ADAPTER
                    "--policy model.gguf --set checkpoint.undo_mib=0 --dry-run --out a"));
    e2e_says(t, "policy           packed weights ");
    e2e_says(t, "host             undo copy ");
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, e2e_teardown)
    const struct CMUnitTest tests[] = {T(a_run_has_the_bytes_of_the_dequantised_model),
                                       T(frozen_models_stay_quantised),
                                       T(refusals),
                                       T(bad_scales),
                                       T(the_base_is_a_file),
                                       T(the_copy_of_an_adapter_is_counted)};
    if (system("python3 -c 'import sys' >/dev/null 2>&1") != 0) {
        print_message("skipped: there is no python3\n");
        return 0;
    }
    return cmocka_run_group_tests_name("e2e_quantised", tests, NULL, NULL);
}
