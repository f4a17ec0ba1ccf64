// test_e2e_decoders.c: Llama and Qwen directories as policy, reference, critic, classifier and
// reward model: exactness, resuming, recomputed layers, and refused inputs.
#include "e2e.h"

#include <stdio.h>
#include <string.h>

#define QUIET "--set log.samples_every=0 --set log.tensorboard=false "
#define SHAPE                                                                                      \
    "\"vocab_size\": 260, \"hidden_size\": 32, \"intermediate_size\": 48, "                        \
    "\"num_hidden_layers\": 2, \"max_position_embeddings\": 64, \"bos_token_id\": 259, "           \
    "\"eos_token_id\": 259, \"hidden_act\": \"silu\", \"rms_norm_eps\": 1e-06"

// config.json as transformers writes it: an untied Llama with scaled positions, and a tied Qwen3.
static const char llama[] =
    "{\"model_type\": \"llama\", \"architectures\": [\"LlamaForCausalLM\"], " SHAPE ", "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": null, "
    "\"attention_bias\": false, \"pretraining_tp\": 1, \"tie_word_embeddings\": false, "
    "\"rope_parameters\": {\"rope_type\": \"llama3\", \"rope_theta\": 1e4, \"factor\": 2.0, "
    "\"low_freq_factor\": 1.0, \"high_freq_factor\": 4.0, "
    "\"original_max_position_embeddings\": 32}}\n";
static const char qwen3[] =
    "{\"model_type\": \"qwen3\", \"architectures\": [\"Qwen3ForCausalLM\"], " SHAPE ", "
    "\"num_attention_heads\": 2, \"num_key_value_heads\": 1, \"head_dim\": 24, "
    "\"use_sliding_window\": false, \"sliding_window\": null, \"max_window_layers\": 2, "
    "\"layer_types\": [\"full_attention\", \"full_attention\"], \"tie_word_embeddings\": true, "
    "\"rope_theta\": 1000000.0, \"rope_scaling\": null}\n";

// A SmolLM3 whose file leaves tie_word_embeddings out, which means true.
static const char smollm3[] =
    "{\"model_type\": \"smollm3\", \"architectures\": [\"SmolLM3ForCausalLM\"], " SHAPE ", "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"no_rope_layers\": [1, 0], "
    "\"no_rope_layer_interval\": 4, \"use_sliding_window\": false, \"sliding_window\": null, "
    "\"layer_types\": [\"full_attention\", \"full_attention\"], \"rope_theta\": 5000000.0}\n";

// Sliding windows: rows have three and more of them.
static const char mistral[] =
    "{\"model_type\": \"mistral\", \"architectures\": [\"MistralForCausalLM\"], " SHAPE ", "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"sliding_window\": 8, "
    "\"tie_word_embeddings\": false, \"rope_theta\": 10000.0}\n";
static const char qwen2[] =
    "{\"model_type\": \"qwen2\", \"architectures\": [\"Qwen2ForCausalLM\"], " SHAPE ", "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"use_sliding_window\": true, "
    "\"sliding_window\": 5, \"max_window_layers\": 1, \"layer_types\": [\"full_attention\", "
    "\"sliding_attention\"], \"tie_word_embeddings\": true, \"rope_theta\": 10000.0}\n";
// A dense Granite 4 as it is published: a Mamba model whose layers all have attention.
static const char granite[] =
    "{\"model_type\": \"granitemoehybrid\", \"architectures\": "
    "[\"GraniteMoeHybridForCausalLM\"], " SHAPE
    ", \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"tie_word_embeddings\": true, "
    "\"layer_types\": [\"attention\", \"attention\"], \"num_local_experts\": 0, "
    "\"num_experts_per_tok\": 0, \"shared_intermediate_size\": 40, \"position_embedding_type\": "
    "\"rope\", \"embedding_multiplier\": 12, \"residual_multiplier\": 0.22, "
    "\"attention_multiplier\": 0.015625, \"logits_scaling\": 10, \"mamba_n_heads\": 4, "
    "\"rope_theta\": 10000000, \"rope_scaling\": null}\n";

// A Gemma 3 that also reads images; checkpoints have its language model. The file is as sparse as
// the published ones.
static const char gemma3[] =
    "{\"model_type\": \"gemma3\", \"architectures\": [\"Gemma3ForConditionalGeneration\"], "
    "\"eos_token_id\": [259, 258], \"image_token_index\": 257, \"text_config\": {"
    "\"model_type\": \"gemma3_text\", \"hidden_size\": 32, \"intermediate_size\": 48, "
    "\"num_hidden_layers\": 2, \"vocab_size\": 260, \"head_dim\": 8, \"num_key_value_heads\": 2, "
    "\"max_position_embeddings\": 64, \"sliding_window\": 9, \"rope_scaling\": {\"factor\": 8.0, "
    "\"rope_type\": \"linear\"}}, \"vision_config\": {\"hidden_size\": 8}}\n";

// Gemma 2: a window in the first layer, capped scores and logits. The field layer_types is absent,
// as in the published files.
static const char gemma2[] =
    "{\"model_type\": \"gemma2\", \"architectures\": [\"Gemma2ForCausalLM\"], " SHAPE ", "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 16, "
    "\"hidden_activation\": \"gelu_pytorch_tanh\", \"query_pre_attn_scalar\": 4, "
    "\"sliding_window\": 7, \"attn_logit_softcapping\": 2.0, \"final_logit_softcapping\": 5.0, "
    "\"initializer_range\": 0.1, \"rope_theta\": 10000.0}\n";

// Half of each head is rotated, with the long factors of longrope, and the layers have a window.
static const char phi3[] =
    "{\"model_type\": \"phi3\", \"architectures\": [\"Phi3ForCausalLM\"], " SHAPE ", "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"tie_word_embeddings\": true, "
    "\"partial_rotary_factor\": 0.5, \"sliding_window\": 9, \"rope_theta\": 10000.0, "
    "\"original_max_position_embeddings\": 16, \"long_factors\": true, \"rope_scaling\": "
    "{\"type\": \"longrope\", \"short_factor\": [1, 1], \"long_factor\": [1.5, 40]}}\n";

// Norms after the blocks, and of all queries and all keys of a token. OLMo 3 has a window in the
// first layer, and stretched positions in the second; the older form of the file.
static const char olmo2[] =
    "{\"model_type\": \"olmo2\", \"architectures\": [\"Olmo2ForCausalLM\"], " SHAPE ", "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"attention_bias\": false, "
    "\"tie_word_embeddings\": false, \"rope_theta\": 500000, \"rope_scaling\": null}\n";
static const char olmo3[] =
    "{\"model_type\": \"olmo3\", \"architectures\": [\"Olmo3ForCausalLM\"], " SHAPE ", "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"attention_bias\": false, "
    "\"tie_word_embeddings\": false, \"sliding_window\": 9, \"layer_types\": "
    "[\"sliding_attention\", \"full_attention\"], \"rope_theta\": 500000, \"rope_scaling\": "
    "{\"rope_type\": \"yarn\", \"factor\": 4.0, \"original_max_position_embeddings\": 16, "
    "\"attention_factor\": 1.1386294361119891, \"beta_fast\": 32, \"beta_slow\": 1}}\n";

// LFM2, with the settings of the published files: a convolution, then attention.
static const char lfm2[] =
    "{\"model_type\": \"lfm2\", \"architectures\": [\"Lfm2ForCausalLM\"], "
    "\"vocab_size\": 260, \"hidden_size\": 32, \"num_hidden_layers\": 2, "
    "\"max_position_embeddings\": 64, \"bos_token_id\": 259, \"eos_token_id\": 259, "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"num_heads\": 4, "
    "\"block_auto_adjust_ff_dim\": true, \"block_dim\": 32, \"block_ff_dim\": 60, "
    "\"block_ffn_dim_multiplier\": 1.0, \"block_multiple_of\": 16, \"block_norm_eps\": 1e-05, "
    "\"block_use_swiglu\": true, \"conv_L_cache\": 3, \"conv_bias\": false, \"conv_dim\": 32, "
    "\"full_attn_idxs\": [1], \"norm_eps\": 1e-05, \"tie_embedding\": true, "
    "\"rope_theta\": 1000000.0, \"theta\": 1000000.0}\n";

// A Qwen3.5 that also reads images: the delta rule, then attention with gates, of which a quarter
// of each head is rotated.
static const char qwen3_5[] =
    "{\"model_type\": \"qwen3_5\", \"architectures\": [\"Qwen3_5ForConditionalGeneration\"], "
    "\"image_token_id\": 257, \"tie_word_embeddings\": true, \"text_config\": {\"model_type\": "
    "\"qwen3_5_text\", " SHAPE
    ", \"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"head_dim\": 16, "
    "\"attention_bias\": false, \"attn_output_gate\": true, \"full_attention_interval\": 2, "
    "\"layer_types\": [\"linear_attention\", \"full_attention\"], "
    "\"linear_conv_kernel_dim\": 4, \"linear_key_head_dim\": 16, "
    "\"linear_value_head_dim\": 16, \"linear_num_key_heads\": 2, "
    "\"linear_num_value_heads\": 4, \"mamba_ssm_dtype\": \"float32\", "
    "\"mtp_num_hidden_layers\": 1, \"rope_parameters\": {\"mrope_interleaved\": true, "
    "\"mrope_section\": [1, 1, 0], \"partial_rotary_factor\": 0.25, \"rope_theta\": 10000000, "
    "\"rope_type\": \"default\"}}, \"vision_config\": {\"hidden_size\": 8}}\n";

static void done(struct e2e *t, int status) {
    if (status) fail_msg("exit %d\n%s", status, t->out);
}

static int models(void **state) {
    if (e2e_setup(state)) return 1;
    struct e2e *t = *state;
    done(t, e2e_shell(t, "for m in llama qwen2 qwen3 mistral smollm3 granite gemma3 gemma2 phi3 "
                         "olmo2 olmo3 lfm2 qwen3_5; do "
                         "cp -r model $m; done"));
    e2e_write(t, "llama/config.json", llama);
    e2e_write(t, "qwen3/config.json", qwen3);
    e2e_write(t, "smollm3/config.json", smollm3);
    e2e_write(t, "mistral/config.json", mistral);
    e2e_write(t, "qwen2/config.json", qwen2);
    e2e_write(t, "granite/config.json", granite);
    e2e_write(t, "gemma3/config.json", gemma3);
    e2e_write(t, "gemma2/config.json", gemma2);
    e2e_write(t, "phi3/config.json", phi3);
    e2e_write(t, "olmo2/config.json", olmo2);
    e2e_write(t, "olmo3/config.json", olmo3);
    e2e_write(t, "lfm2/config.json", lfm2);
    e2e_write(t, "qwen3_5/config.json", qwen3_5);
    e2e_write(
        t, "pairs.jsonl",
        "{\"prompt\": \"the film\", \"chosen\": \" was good.\", \"rejected\": \" was bad\"}\n"
        "{\"prompt\": \"a story\", \"chosen\": \" of the end.\", \"rejected\": \" of it\"}\n");
    return 0;
}

static void start(struct e2e *t, const char *model) {
    done(t, e2e_run(t,
                    "--algo sft.so --data texts.jsonl --policy %s --set policy.init=random --set "
                    "run.phases=2 --out s " QUIET,
                    model));
    done(t, e2e_shell(t, "cp -rL s/checkpoints/latest policy && rm -rf s"));
}

#define RUN                                                                                        \
    "--policy policy --prompts prompts.txt --reward period_count.so --set "                        \
    "sampling.max_new_tokens=24 --set batch.size=8 --set algo.group_size=4 --set "                 \
    "optim.schedule_phases=4 " QUIET

// A run of two phases that is resumed for two more, with another number of threads and with
// recomputed layers, gives the same bytes as a run of four phases. Training recomputes the sampled
// log-probs to the bit.
static void goes_on(struct e2e *t, const char *algo, const char *more) {
    done(t, e2e_run(t, "--algo %s %s --set run.phases=4 --out a --threads 2 " RUN, algo, more));
    done(t, e2e_run(t, "--algo %s %s --set run.phases=2 --out b " RUN, algo, more));
    done(t, e2e_run(t, "--resume b --set run.phases=4 --set compute.recompute=layer"));
    e2e_same_tree(t, "a/checkpoints/000004", "b/checkpoints/000004");
    json_t *rows = e2e_metrics(t, "a");
    assert_int_equal(json_array_size(rows), 4);
    double moved = 0;
    for (int i = 0; i < 4; i++) {
        assert_true(e2e_metric(rows, i, "sampling/logp_difference/max") == 0);
        moved += e2e_metric(rows, i, "optim/grad_norm");
    }
    assert_true(moved > 0);
    json_decref(rows);
    done(t, e2e_shell(t, "cmp policy/config.json a/checkpoints/latest/config.json || grep -q "
                         "'\"rope_' a/checkpoints/latest/config.json"));
    done(t, e2e_run(t, "generate --model a/checkpoints/latest --prompt 'It was' --max-new 4"));
    done(t, e2e_shell(t, "rm -rf a b"));
}

static void runs_of(struct e2e *t, const char *model) {
    start(t, model);
    goes_on(t, "ppo.so", "");
    goes_on(t, "grpo.so", "--set batch.microbatch_tokens=32 --set compute.dtype=bf16");
}

static void llama_runs(void **state) { runs_of(*state, "llama"); }
static void qwen_runs(void **state) { runs_of(*state, "qwen3"); }
static void smollm3_runs(void **state) { runs_of(*state, "smollm3"); }
static void windows_run(void **state) {
    runs_of(*state, "mistral");
    runs_of(*state, "qwen2");
}
static void granite_runs(void **state) { runs_of(*state, "granite"); }
static void gemma2_runs(void **state) { runs_of(*state, "gemma2"); }
static void gemma3_runs(void **state) {
    runs_of(*state, "gemma3");
    e2e_shell(*state, "cat policy/config.json");
    e2e_says(*state, "\"gemma3_text\"");
    e2e_says(*state, "\"Gemma3ForCausalLM\"");
}

// A classifier and a reward model are trained from a language model, and reward the next run.
static void judges_of(struct e2e *t, const char *model) {
    start(t, model);
    done(t, e2e_run(t, "--algo classify.so --data labeled.jsonl --policy policy --set "
                       "score.labels=NEGATIVE,POSITIVE --set run.phases=2 --out c " QUIET));
    done(t, e2e_run(t, "--algo bradley_terry.so --data pairs.jsonl --policy policy --set "
                       "run.phases=2 --set sampling.max_new_tokens=6 --out r " QUIET));
    done(t, e2e_shell(t, "grep -q ForSequenceClassification c/checkpoints/latest/config.json && ! "
                         "grep -q lm_head c/checkpoints/latest/model.safetensors"));
    done(t, e2e_run(t, "--algo grpo.so --reward imdb.so:model=c/checkpoints/latest,self_test=false "
                       "--reward bt_rm.so:model=r/checkpoints/latest --policy policy --prompts "
                       "prompts.txt --set sampling.max_new_tokens=6 --set batch.size=8 --set "
                       "algo.group_size=4 --set run.phases=1 --out g " QUIET));
}

static void llama_judges(void **state) { judges_of(*state, "llama"); }
static void qwen_judges(void **state) { judges_of(*state, "qwen3"); }
static void smollm3_judges(void **state) { judges_of(*state, "smollm3"); }
static void granite_judges(void **state) { judges_of(*state, "granite"); }
static void gemma3_judges(void **state) {
    judges_of(*state, "gemma3");
    e2e_shell(*state, "cat c/checkpoints/latest/config.json");
    e2e_says(*state, "\"Gemma3TextForSequenceClassification\"");
}

static void phi3_runs(void **state) { runs_of(*state, "phi3"); }
static void phi3_judges(void **state) { judges_of(*state, "phi3"); }
static void gemma2_judges(void **state) { judges_of(*state, "gemma2"); }
static void olmo_runs(void **state) {
    runs_of(*state, "olmo2");
    runs_of(*state, "olmo3");
}
static void olmo2_judges(void **state) { judges_of(*state, "olmo2"); }
static void olmo3_judges(void **state) { judges_of(*state, "olmo3"); }

static void lfm2_runs(void **state) {
    runs_of(*state, "lfm2");
    assert_int_equal(
        e2e_run(*state, "inspect --base policy --tuned policy --prompt It --words was,is"), 2);
    e2e_says(*state, "cannot be inspected");
    e2e_says(*state, "layers with a state");
}
static void qwen3_5_runs(void **state) {
    runs_of(*state, "qwen3_5");
    e2e_shell(*state, "cat policy/config.json");
    e2e_says(*state, "\"qwen3_5_text\"");
    e2e_says(*state, "\"Qwen3_5ForCausalLM\"");
}
static void lfm2_judges(void **state) { judges_of(*state, "lfm2"); }
static void qwen3_5_judges(void **state) {
    judges_of(*state, "qwen3_5");
    e2e_shell(*state, "cat c/checkpoints/latest/config.json");
    e2e_says(*state, "\"Qwen3_5TextForSequenceClassification\"");
}

// Checkpoints and exports keep every field of config.json. Some versions of transformers halved
// the window at each save.
static void settings_stay(void **state) {
    struct e2e *t = *state;
    start(t, "gemma2");
    done(t, e2e_run(t, "--algo sft.so --data texts.jsonl --policy policy --set run.phases=1 --out "
                       "a " QUIET));
    done(t, e2e_shell(t, "\"$HOST\" export a --to b"));
    json_t *was = e2e_lines(t, "gemma2/config.json"), *is;
    static const char *const later[] = {"policy", "a/checkpoints/latest", "b"};
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        const char *key;
        json_t *value;
        done(t,
             e2e_shell(t, "tr -d '\\n' <%s/config.json >line.json && echo >>line.json", later[i]));
        is = e2e_lines(t, "line.json");
        json_object_foreach(json_array_get(was, 0), key, value) {
            if (!json_equal(value, json_object_get(json_array_get(is, 0), key)))
                fail_msg("%s/config.json: %s changed", later[i], key);
        }
        json_decref(is);
    }
    json_decref(was);
}

static void refused(void **state) {
    struct e2e *t = *state;
    static const struct {
        const char *model, *edit, *says;
    } cases[] = {
        {"llama", "s/\"llama3\"/\"dynamic\"/",
         "rope_parameters.rope_type \"dynamic\" is not implemented"},
        {"llama", "s/\"head_dim\": null/\"head_dim\": 5/", "head_dim (5) must be even"},
        {"llama", "s/\"hidden_size\": 32, //", "hidden_size is missing"},
        {"llama", "s/\"factor\": 2.0/\"factor\": \"2\"/",
         "rope_parameters.factor must be a number"},
        {"llama", "s/\"pretraining_tp\"/\"quantization_config\": {\"bits\": 4}, &/",
         "quantization_config: quantized weights"},
        {"qwen3", "s/\"full_attention\"]/\"sliding_attention\"]/",
         "layer_types has \"sliding_attention\" for layer 1, but use_sliding_window is false"},
        {"qwen2", "s/, \"sliding_attention\"]/]/", "layer_types has items for 1 of the 2 layers"},
        {"qwen2", "s/\"sliding_attention\"/\"chunked_attention\"/", "layer_types"},
        {"smollm3", "s/\\[1, 0\\]/[1, 2]/",
         "no_rope_layers must be a list of integers from 0 to 1"},
        {"smollm3", "s/\\[1, 0\\]/[1]/", "no_rope_layers has items for 1 of the 2 layers"},
        {"granite", "s/\"attention\"]/\"mamba\"]/",
         "layer_types must be a list of any of full_attention, sliding_attention, attention, "
         "conv, linear_attention, found "},
        {"granite", "s/\"num_local_experts\": 0/\"num_local_experts\": 8/",
         "num_local_experts 8 is not implemented"},
        {"phi3", "s/\\[1.5, 40\\]/[1.5, 0]/", "rope_scaling.long_factor must be a list of numbers"},
        {"phi3", "s/\\[1.5, 40\\]/[1.5]/", "rope_scaling.long_factor has 1 numbers; it must have"},
        {"mistral", "s/\"sliding_window\": 8/\"sliding_window\": -1/",
         "sliding_window is -1; it must be null or an integer of at least 1"},
        {"phi3", "s/\"partial_rotary_factor\": 0.5/\"partial_rotary_factor\": -1/",
         "partial_rotary_factor -1 rotates -8 elements of a head of 8"},
        {"lfm2", "s/\"conv_L_cache\": 3/\"conv_L_cache\": 16/",
         "conv_L_cache 16 is not implemented"},
        {"qwen3_5", "s/\"linear_attention\"/\"conv\"/",
         "layer_types has \"conv\" for layer 0, which this model_type does not have"},
        {"olmo3", "s/500000/100/", "rope_theta is 100, and it is not clear"},
        {"qwen3", "s/\"qwen3\"/\"qwen3_moe\"/",
         "model_type 'qwen3_moe' is not supported; supported: distilbert, gemma2, gemma3_text, "
         "gpt2, granite, granitemoehybrid, lfm2, llama, mistral, olmo2, olmo3, phi3, qwen2, "
         "qwen3, qwen3_5_text, "
         "smollm3, vaultgemma"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        done(t, e2e_shell(t, "rm -rf x && cp -r %s x && sed -i '%s' x/config.json", cases[i].model,
                          cases[i].edit));
        assert_int_equal(e2e_run(t, "--algo sft.so --data texts.jsonl --policy x --set "
                                    "policy.init=random --out no"),
                         2);
        e2e_says(t, cases[i].says);
        assert_false(e2e_exists(t, "no"));
    }
}

// In config.json, a null sliding window means no window, and null key heads mean as many as query
// heads. A missing field means its default instead: a window of 4,096, for example.
static void null_is_not_missing(void **state) {
    struct e2e *t = *state;
    static const char *const cases[][2] = {
        {"llama", "s/\"llama\"/\"mistral\"/; s/\"pretraining_tp\"/\"sliding_window\": null, &/; "
                  "s/\"max_position_embeddings\": [0-9]*/\"max_position_embeddings\": 8192/"},
        {"qwen3", "s/\"num_key_value_heads\": 1/\"num_key_value_heads\": null/"},
        {"qwen3",
         "s/\"use_sliding_window\": false/\"use_sliding_window\": true/; s/\"max_window_layers"
         "\": 2/\"max_window_layers\": 0/; s/\"max_position_embeddings\": "
         "[0-9]*/\"max_position_embeddings\": 8192/"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        done(t, e2e_shell(t, "rm -rf x && cp -r %s x && sed -i '%s' x/config.json", cases[i][0],
                          cases[i][1]));
        done(t, e2e_run(t, "--algo sft.so --data texts.jsonl --policy x --set policy.init=random "
                           "--dry-run " QUIET));
    }
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, models, e2e_teardown)
    const struct CMUnitTest tests[] = {
        T(llama_runs),         T(qwen_runs),      T(smollm3_runs),  T(granite_runs),
        T(windows_run),        T(llama_judges),   T(qwen_judges),   T(smollm3_judges),
        T(granite_judges),     T(gemma3_runs),    T(gemma3_judges), T(gemma2_runs),
        T(gemma2_judges),      T(phi3_runs),      T(phi3_judges),   T(olmo_runs),
        T(olmo2_judges),       T(olmo3_judges),   T(lfm2_runs),     T(lfm2_judges),
        T(qwen3_5_runs),       T(qwen3_5_judges), T(settings_stay), T(refused),
        T(null_is_not_missing)};
    return cmocka_run_group_tests_name("e2e_decoders", tests, NULL, NULL);
}
