// schema.c: the option tables of the host's own sections: defaults, ranges and help texts.
#include "config/schema.h"

#include <rlhf/host.h>

#define B(f, def, text)               RLHF_OPT_BOOL(T, f, def, text)
#define I(f, def, lo, hi, text)       RLHF_OPT_I64(T, f, def, lo, hi, text)
#define F(f, def, lo, hi, text)       RLHF_OPT_F64(T, f, def, lo, hi, text)
#define S(f, text)                    RLHF_OPT_STR(T, f, "", text)
#define P(f, text)                    RLHF_OPT_PATH(T, f, "", text)
#define E(f, def, names, text)        RLHF_OPT_ENUM(T, f, def, names, text)
#define F_ABOVE(f, def, lo, hi, text) RLHF_OPT_F64_ABOVE(T, f, def, lo, hi, text)
#define F_BELOW(f, def, lo, hi, text) RLHF_OPT_F64_BELOW(T, f, def, lo, hi, text)
// An option that is a list of texts and token ids.
#define L(f, text)                                                                                 \
    {                                                                                              \
        .key = #f, .help = (text), .type = RLHF_T_STR, .flags = RLHF__OPT_ENDS,                    \
        .offset = offsetof(T, f), .s_def = "[]"                                                    \
    }
// An option that is a JSON object.
#define O(f, text)                                                                                 \
    {                                                                                              \
        .key = #f, .help = (text), .type = RLHF_T_STR, .flags = RLHF__OPT_OBJECT,                  \
        .offset = offsetof(T, f), .s_def = "{}"                                                    \
    }
#define BIG ((int64_t)1 << 40)

static const char *const dtype_names[] = {"auto", "f32", "bf16", NULL};
static const char *const arithmetic_names[] = {"auto", "v1", NULL};   // enum rlhf__arithmetic
static const char *const recompute_names[] = {"none", "layer", NULL}; // enum rlhf_recompute
static const char *const init_names[] = {"pretrained", "random", NULL};
static const char *const value_names[] = {"none", "linear", "mlp", NULL};
static const char *const value_init_names[] = {"zero", "orthogonal", "normal", NULL};
static const char *const critic_names[] = {"shared", "separate", NULL};
static const char *const pooling_names[] = {"auto", "mean", "first", "last", NULL};
static const char *const bad_row_names[] = {"refuse", "skip", NULL};
static const char *const long_names[] = {"truncate", "split", NULL};
static const char *const long_prompt_names[] = {"cut_left", "cut_right", "skip", "refuse", NULL};
static const char *const stop_on_names[] = {"none", "collapse", NULL};
static const char *const auto_names[] = {"auto", "true", "false", NULL};
static const char *const truncate_names[] = {"none", "stop", "period", NULL};
static const char *const non_stop_names[] = {"none", "replace", "subtract", NULL};
static const char *const normalize_names[] = {"none", "before", "after", NULL};
static const char *const isolate_names[] = {"always", "third_party", "never", NULL};
static const char *const nan_names[] = {"stop", "zero", "drop", NULL};
static const char *const failure_names[] = {"stop", "retry", "zero", "drop", NULL};
static const char *const optim_names[] = {"adamw", "muon", NULL};
static const char *const epsilon_names[] = {"torch", "tf1", NULL};
static const char *const schedule_names[] = {"constant", "linear", "cosine", NULL};
static const char *const warmup_names[] = {"step", "zero", NULL};
static const char *const best_mode_names[] = {"max", "min", NULL};
static const char *const checkpoint_dtype_names[] = {"f32", "bf16", NULL};
static const char *const format_names[] = {"text", "json", NULL};
static const char *const progress_names[] = {"auto", "bar", "plain", "off", "full", NULL};
static const char *const level_names[] = {"debug", "info", "warn", "error", NULL};

#define T struct rlhf__run_config
static const rlhf_opt run_opts[] = {
    P(dir, "run directory; empty: runs/<algo>-<date>-<n>"),
    S(preset, "preset that this config builds on: share/rlhf/configs/presets/<name>.json"),
    S(note, "free text that is stored with the run; presets name their source here"),
    I(phases, 0, 0, BIG,
      "phases to run; 0: as many as data.epochs needs, or 100 if the algorithm samples responses"),
    I(stop_after, 0, 0, BIG,
      "stop with a checkpoint after this many phases; acts once: a resumed run continues to its "
      "end unless this is set again; 0: never"),
    E(stop_on, RLHF__STOP_ON_NONE, stop_on_names,
      "collapse: end the run, with a checkpoint and exit status 3, after a phase in which the "
      "policy is far from the reference (KL above 1 nat per token) or has collapsed (entropy below "
      "a tenth of the first phase's)"),
    I(seed, 1, 0, INT64_MAX, "seed of every random number of the run"),
    I(threads, 0, 0, 1024,
      "CPU threads; 0: one for each physical core that this process may use. Results do not depend "
      "on it"),
};
#undef T
#define T struct rlhf__compute_config
static const rlhf_opt compute_opts[] = {
    RLHF_OPT_STR(T, backend, "auto",
                 "kernels to use: auto (a usable GPU, else the CPU), cpu, cuda, reference (slow, "
                 "plain C), or a file; with options: file.so:key=value,..."),
    I(gpu, 0, 0, 1023,
      "which GPU, counted from 0; rlhf-host devices lists them. Without it, several processes "
      "of a machine use its GPUs in turn"),
    E(dtype, RLHF__DTYPE_AUTO, dtype_names,
      "precision of matrix products; auto: bf16 where it is fast"),
    B(guard, 0,
      "check the use of device memory: reference makes it unreadable for the host, cuda reports "
      "invalid values in it at once"),
    I(workspace_mib, 0, 0, 1 << 20,
      "memory for the language-model head in MiB; 0: chosen by the backend"),
    B(memory_check, 1, "refuse a run that does not fit into memory before models are loaded"),
    E(recompute, 0, recompute_names,
      "layer: keep only each layer's input and recompute the rest in the backward pass, which "
      "takes less memory and a third more time; the results are the same"),
    E(arithmetic, RLHF__ARITHMETIC_AUTO, arithmetic_names,
      "v1: the bits that every CPU gives, even where something else would be faster (AMX in bf16); "
      "auto: the fastest"),
};
#undef T
#define T struct rlhf__policy_config
static const rlhf_opt policy_opts[] = {
    P(path,
      "model to train: a directory in Hugging Face layout, also looked for in share/rlhf, or a "
      "GGUF file; empty: the default policy"),
    E(init, RLHF__INIT_PRETRAINED, init_names,
      "random: start from random weights; the directory needs only config.json and a tokenizer"),
    B(dequantize, 0,
      "read the quantised weights of a GGUF file as f32: needed to train all weights; an adapter "
      "leaves them quantised in memory, with the same results"),
    {.key = "adapter.rank",
     .help = "train a low-rank adapter (LoRA) of this rank and leave the model unchanged; 0: train "
             "the model",
     .type = RLHF_T_I64,
     .offset = offsetof(T, adapter_rank),
     .i_max = 65536},
    {.key = "adapter.alpha",
     .help = "the adapter's output is multiplied by alpha / rank; 0: twice the rank",
     .type = RLHF_T_F64,
     .offset = offsetof(T, adapter_alpha),
     .f_max = 1e9},
    {.key = "adapter.targets",
     .help = "linear layers that get an adapter: the last parts of their names, separated by "
             "commas (q_proj,v_proj), or all-linear",
     .type = RLHF_T_STR,
     .offset = offsetof(T, adapter_targets),
     .s_def = "all-linear"},
    {.key = "adapter.path",
     .help = "adapter to start from, a directory that PEFT or a run wrote; empty: a new adapter",
     .type = RLHF_T_PATH,
     .offset = offsetof(T, adapter_path),
     .s_def = ""},
};
#undef T
#define T struct rlhf__reference_config
static const rlhf_opt reference_opts[] = {
    P(path, "model directory or GGUF file of the reference; empty: the policy's first weights"),
};
#undef T
#define T struct rlhf__value_config
static const rlhf_opt value_opts[] = {
    E(kind, 2, value_names,
      "value head after the final norm; mlp: a hidden layer of width 4d with ReLU"),
    E(init, 0, value_init_names, "first weights of the value head; normal: std 1/sqrt(d + 1)"),
    B(detach, 0, "keep the value gradient out of the trunk"),
    E(critic, RLHF__CRITIC_SHARED, critic_names,
      "value head on the policy, or on a separate model"),
    P(path, "separate critic: model directory to start from; empty: the policy"),
    F(lr, 0, 0, 10, "learning rate of the value head; 0: optim.lr"),
};
#undef T
#define T struct rlhf__score_head_config
static const rlhf_opt score_head_opts[] = {
    S(labels, "names of the classes, comma-separated, class 0 first; empty: those of the "
              "classifier that the run starts from, else LABEL_0, ..."),
    E(pooling, 0, pooling_names,
      "which hidden state is scored; auto: the architecture's own choice; for a reward "
      "model: mean"),
    I(calibrate, 512, 0, 1 << 20,
      "number of responses of the reference that a reward model's gain and bias are fitted to, at "
      "most two for each prompt (but 64 in any case); 0: do not fit"),
};
#undef T
#define T struct rlhf__data_config
static const rlhf_opt data_opts[] = {
    P(path, "training rows of supervised algorithms: .jsonl, .jsonl.gz or .txt"),
    P(eval_path, "held-out rows of the same kind (prompts if the algorithm samples responses), "
                 "also looked for in share/rlhf; empty: none"),
    I(limit, 0, 0, BIG, "rows to use; 0: all"),
    I(skip, 0, 0, BIG, "rows to leave out at the start"),
    I(eval_limit, 0, 0, BIG, "held-out rows to use; 0: all"),
    I(eval_every, 0, 0, BIG,
      "phases between evaluations; 0: only at the end (with sampled responses also before the "
      "first phase)"),
    I(max_tokens, 0, 0, 1 << 24, "longest row in tokens; 0: the model's context"),
    I(batch_tokens, 0, 0, 1 << 30, "tokens per phase; 0: batch.size rows per phase"),
    F_ABOVE(epochs, 1, 0, 1e6, "passes over the rows if run.phases is 0"),
    B(shuffle, 1, "use a new order of the rows in every pass"),
    E(long_rows, RLHF__DATA_TRUNCATE, long_names,
      "what happens to rows longer than max_tokens; split only with sft"),
    B(assistant_only, 0,
      "rows with messages: compute the loss only on the assistant's tokens, including the token "
      "that ends a turn; only with sft"),
    E(bad_rows, RLHF__BAD_ROWS_REFUSE, bad_row_names,
      "rows and prompts of files that cannot be used (not JSON, a field that is missing, empty or "
      "of another type, messages that the chat template refuses): refuse the run, or skip them and "
      "name the first three"),
    I(max_mib, 1024, 1, 1 << 20,
      "MiB of memory that the rows or prompts of a file may take, including their tokens"),
};
#undef T
#define T struct rlhf__prompts_config
static const rlhf_opt prompts_opts[] = {
    P(path,
      "prompts: .jsonl, .jsonl.gz or .txt (a line each), also looked for in share/rlhf; empty: "
      "the default prompts"),
    S(text, "one constant prompt instead of a file"),
    RLHF_OPT_STR(T, field, "prompt",
                 "member of a JSONL row with the prompt, which is a text or messages; by default, "
                 "\"messages\" or \"text\" is used if \"prompt\" is missing"),
    I(length, 0, 0, 1 << 20, "cut prompts to exactly this many tokens; shorter ones are skipped"),
    I(min_tokens, 1, 1, 1 << 20, "skip shorter prompts"),
    I(max_tokens, 0, 0, 1 << 20, "longest prompt in tokens; 0: limited only by the context"),
    E(long_rows, 0, long_prompt_names,
      "what happens to prompts longer than max_tokens: cut off their first tokens (cut_left) or "
      "their last (cut_right), skip them, or refuse the run"),
    RLHF_OPT_STR(
        T, template, "auto",
        "chat template of rows with messages: auto (that of the model's directory), chatml, "
        "llama2, llama3, qwen2.5, qwen3, gemma, zephyr, plain, or a .jinja file"),
    O(template_vars,
      "variables of the chat template, such as {\"enable_thinking\": false}; a row's own "
      "chat_template_kwargs win"),
    S(date, "date that the chat template writes where it asks for today's, such as 2026-11-28"),
    I(limit, 0, 0, BIG, "prompts to use; 0: all"),
    E(prepend_bos, RLHF__BOS_AUTO, auto_names,
      "begin each text with the BOS token; auto: if the tokenizer itself puts it there"),
    B(start_after_period, 0, "begin after the first period; texts without one are skipped"),
    B(end_at_period, 0, "end at the last period that fits; texts without one are skipped"),
    B(shuffle, 1, "use a new order in every pass"),
};
#undef T
#define T struct rlhf__sampling_config
static const rlhf_opt sampling_opts[] = {
    F_ABOVE(temperature, 1, 0, 100, "logits are divided by it"),
    F_ABOVE(top_p, 1, 0, 1, "keep the most likely tokens up to this total probability; 1: all"),
    I(top_k, 0, 0, 1 << 24, "keep only this many of the most likely tokens; 0: all"),
    F(min_p, 0, 0, 1,
      "keep the tokens whose probability is at least this share of the most likely token's; "
      "0: all"),
    I(max_new_tokens, 48, 1, 1 << 20, "longest response in tokens"),
    I(slots, 0, 0, 1 << 16, "rows decoded at once; 0: chosen for the device, 64 on a CPU"),
    E(stop_at_eos, RLHF__STOP_AUTO, auto_names,
      "end a response at an end token; false: end tokens are ordinary tokens, and responses have "
      "full length unless sampling.stop ends them; auto: true, unless the policy's config.json has "
      "\"rlhf_stop_at_eos\": false, as the default policy's has"),
    L(stop, "further texts and token ids that end a response, such as [\"\\n\\n\", 13]; the scored "
            "text ends before such a text"),
};
#undef T
#define T struct rlhf__response_config
static const rlhf_opt response_opts[] = {
    E(truncate, RLHF__TRUNCATE_NONE, truncate_names, "where the scored text ends"),
    E(non_stop, RLHF__NON_STOP_NONE, non_stop_names,
      "how the penalty for a response without a stop token is applied"),
    S(period_token, "text of the token that counts as a period (truncate: period), such as \".\"; "
                    "empty: any token that contains a period"),
    I(period_min, 16, 0, 1 << 20, "first token at which a period ends the text (truncate: period)"),
    I(period_max, 24, 1, 1 << 20, "last token at which a period ends the text"),
    F(period_penalty, -1, -1e6, 1e6,
      "reward of a response without such a period, instead of its score"),
    F(non_stop_penalty, 0, -1e6, 1e6, "replaces the reward, or is subtracted from the score"),
};
#undef T
#define T struct rlhf__mixing_config
static const rlhf_opt mixing_opts[] = {
    E(normalize, RLHF__NORMALIZE_NONE, normalize_names,
      "(reward of a row - mean) / std over the batch, before or after mixing"),
    E(nan_policy, RLHF__NAN_STOP, nan_names,
      "what happens if a reward is not finite: end the run, count the reward as zero, or drop "
      "the row"),
    F(clip, 0, 0, 1e9, "limit of the magnitude of a row's reward; 0: none"),
    E(on_failure, RLHF__FAILURE_STOP, failure_names,
      "what happens to a row that a reward could not score; retry: score it again, then stop"),
    I(retries, 3, 1, 1000, "how many times failed rows are scored again (on_failure: retry)"),
    E(isolate, RLHF__ISOLATE_THIRD_PARTY, isolate_names,
      "which rewards and sinks, and whether the environment, run in a worker process: always, "
      "third_party (plugins that did not come with the program) or never; a plugin's own "
      "isolate=true or false takes precedence"),
    F(timeout_s, 300, 0, 1e6,
      "seconds that one call of a reward or a sink outside this process may take; 0: no limit"),
    I(memory_mib, 0, 0, 1 << 24,
      "MiB that such a process may use beyond its size at the start; 0: no limit"),
    I(workers, 1, 1, 64,
      "worker processes that share the batch of a reward; the results are the same"),
    B(overlap, 0,
      "call rewards that work outside the process while responses are still being sampled; the "
      "results are the same"),
};
#undef T
static const char *const tools_names[] = {"template", "hidden", NULL};
// in the order of enum rlhf__tool_form
static const char *const calls_names[] = {"auto",        "hermes", "llama3", "mistral",
                                          "qwen3_coder", "xml",    NULL};
static const char *const episode_failure_names[] = {"stop", "drop", NULL};
static const char *const rewrites_names[] = {"keep", "refuse", NULL};
static const char *const starts_names[] = {"same", "any", NULL};
#define T struct rlhf__episodes_config
static const rlhf_opt episodes_opts[] = {
    I(turns, 8, 1, 4096, "turns that the policy may take; the last one is answered, too"),
    I(tokens, 0, 0, 1 << 24,
      "longest row in tokens, with its prompt; 0: the longest prompt, and episodes.turns times "
      "sampling.max_new_tokens and episodes.reply_tokens, at most the model's context"),
    I(reply_tokens, 256, 1, 1 << 20,
      "tokens that an environment may add after a turn; longer texts are cut, but not what it "
      "says in reset()"),
    I(retries, 3, 0, 1000,
      "how often the host replays an episode after a failure of the environment, with the same "
      "turns"),
    E(on_failure, RLHF__EPISODE_STOP, episode_failure_names,
      "what happens after the last replay has failed: stop (the run ends) or drop (the batch "
      "goes on without the row, so results depend on the failure)"),
    E(rewrites, RLHF__REWRITES_KEEP, rewrites_names,
      "what happens if the chat template renders a turn differently once later turns follow: keep "
      "(the row has what the policy wrote) or refuse (the run ends)"),
    E(starts, RLHF__STARTS_SAME, starts_names,
      "how an environment must begin the episodes of a group: with the same text (same), or any, "
      "as environments do that ignore the seed; then a run cannot be repeated exactly"),
    E(tools, RLHF__TOOLS_TEMPLATE, tools_names,
      "how the policy learns of an environment's tools: template (the chat template lists them) or "
      "hidden (they are not listed)"),
    E(calls, 0, calls_names,
      "the form in which the policy calls tools; auto: the chat template's, or xml if it has none"),
};
#undef T
#define T struct rlhf__ahead_config
static const rlhf_opt rollout_opts[] = {
    I(ahead, 0, 0, 1,
      "1: sample the responses of the next phase while this one trains, with the weights at its "
      "start (docs/staleness.md)"),
    I(threads, 0, 0, 1024,
      "how many of the CPU threads (run.threads) sample if rollout.ahead is 1; the others train; "
      "0: a third. Results do not depend on it"),
};
#undef T
#define T struct rlhf__batch_config
static const rlhf_opt batch_opts[] = {
    I(size, 64, 1, 1 << 20, "sequences per phase"),
    I(microbatch_tokens, 0, 0, 1 << 24,
      "tokens per forward and backward pass; 0: chosen for the device; on a CPU 4096, or fewer if "
      "the vocabulary has more than 65,536 tokens"),
    B(share_prompts, 1,
      "compute the prompt of a group's rows once; the samples are the same, but gradients are "
      "added in another order"),
};
#undef T
#define T struct rlhf__optim_config
static const rlhf_opt optim_opts[] = {
    E(kind, RLHF__OPTIM_ADAMW, optim_names, "muon: Muon for matrices, AdamW for the rest"),
    E(epsilon, 0, epsilon_names,
      "where AdamW adds eps: after (torch) or before (tf1) bias correction"),
    E(schedule, RLHF__SCHEDULE_LINEAR, schedule_names, "learning rate after the warm-up"),
    F(lr, 1e-4, 0, 10, "learning rate"),
    F_BELOW(beta1, 0.9, 0, 1, "decay of the mean gradient"),
    F_BELOW(beta2, 0.999, 0, 1, "decay of the mean squared gradient"),
    F_ABOVE(eps, 1e-8, 0, 1, "epsilon of AdamW"),
    F(weight_decay, 0, 0, 10, "decoupled weight decay of matrices"),
    F(max_grad_norm, 1, 0, 1e9, "gradients are scaled down to this norm; 0: never"),
    F(final_scale, 0, 0, 1, "share of lr left after the last phase (linear, cosine)"),
    F(muon_lr, 0.02, 0, 10,
      "learning rate of Muon's matrices; multiplied by sqrt(outputs / inputs) if a matrix has more "
      "outputs than inputs"),
    F_BELOW(muon_momentum, 0.95, 0, 1, "momentum of Muon"),
    I(warmup, 0, 0, BIG, "phases of linear warm-up"),
    E(warmup_from, RLHF__WARMUP_FROM_STEP, warmup_names,
      "share of lr in the first phase of the warm-up; step: 1 / warmup; zero: 0"),
    I(schedule_phases, 0, 0, BIG,
      "length of the schedule in phases, or run.phases if that is more"),
    I(max_skipped, 10, 0, BIG,
      "stop after this many steps in a row whose gradient is not finite; 0: never"),
};
#undef T
#define T struct rlhf__parallel_config
static const rlhf_opt parallel_opts[] = {
    RLHF_OPT_STR(
        T, backend, "auto",
        "how the processes of a run reach each other: auto (the MPI of the launcher; "
        "without a launcher the run has one process), none (a separate run in each "
        "process), mpi (as auto, but a launcher is needed, and NCCL is not used), openmpi, "
        "mpich, nccl (MPI, and NCCL between the GPUs, without which the run does not start; "
        "auto uses NCCL if it can), or the path of a collective plugin; a resumed run begins "
        "with auto again"),
    F(timeout_s, 0, 0, 1e9,
      "seconds that processes wait for one of them that still runs, e.g. in a reward that never "
      "returns; 0: for ever, but 60 for one that has not begun. A process that has ended or was "
      "stopped is noticed without this"),
    I(shards, 0, 0, 4096,
      "parts that a minibatch is divided into; the number of processes must divide it. Runs with "
      "the same number have the same bits for any number of processes; 0: as many as processes "
      "that "
      "train"),
    I(actors, 0, 0, 4095,
      "how many of the processes only sample the responses of the next phase while the others "
      "train; "
      "needs rollout.ahead=1 (docs/staleness.md)"),
    I(check_every, 16, 0, BIG,
      "phases after which the processes compare their weights, as they also do before each "
      "checkpoint; 0: never"),
};
#undef T
#define T struct rlhf__early_stop_config
static const rlhf_opt early_stop_opts[] = {
    F(kl, 0, 0, 1e9,
      "stop if the mean sequence KL in nats stays above this; an infinite KL counts as above; "
      "0: off"),
    F(reward, 0, -1e9, 1e9, "stop if the mean reward stays above this; 0: off"),
    I(patience, 2, 1, BIG, "phases in a row above the limit after which the run stops"),
    I(window, 1, 1, BIG,
      "how many of the newest phases are averaged and compared with the limit; fewer at the start "
      "of a run"),
};
#undef T
#define T struct rlhf__checkpoint_config
static const rlhf_opt checkpoint_opts[] = {
    I(every, 0, 0, BIG, "phases between checkpoints; 0: off"),
    I(every_s, 300, 0, BIG,
      "seconds between checkpoints, which are written at the end of a phase; 0: off"),
    I(undo_mib, 256, 0, BIG,
      "MiB for a copy of weights and optimizer state, from which a run that fails during an update "
      "returns to the previous phase; without a copy it returns to the last checkpoint"),
    I(keep, 2, 0, BIG,
      "how many of the newest checkpoints to keep; 0: all. With 1, the previous one stays until "
      "the next is written or the run ends"),
    E(dtype, RLHF__CHECKPOINT_F32, checkpoint_dtype_names, "dtype of model.safetensors"),
    S(best,
      "metric whose best value chooses checkpoints/best, which is never removed; empty: none"),
    E(best_mode, RLHF__BEST_MAX, best_mode_names, "the best value is the highest or the lowest"),
};
#undef T
#define T struct rlhf__log_config
static const rlhf_opt log_opts[] = {
    B(tensorboard, 1, "write TensorBoard events to tensorboard/ (tensorboard.so)"),
    B(csv, 1, "write metrics.csv, the numbers of metrics.jsonl as a table (csv.so)"),
    B(report, 1, "write report.html, a page about the run, to its directory when it ends"),
    E(progress, RLHF__PROGRESS_AUTO, progress_names,
      "auto: a bar on a terminal, else plain lines; full: the whole terminal if it has at least "
      "100 columns and 24 lines, else as auto"),
    E(format, RLHF__LOG_TEXT, format_names,
      "json: log lines, phases and samples as JSON objects, one per line, on standard error"),
    E(level, RLHF_LOG_INFO, level_names, "lowest level of the log lines to print"),
    I(samples, 5, 0, 1000, "samples per phase: rows of the sample table and of samples.jsonl"),
    B(rollouts, 0, "write every row that is trained on to rollouts.jsonl (docs/rollouts.md)"),
    I(samples_every, 10, 0, BIG,
      "phases between sample tables, in addition to those of the first phase, the last phase and "
      "phases with a warning; 0: never"),
    I(samples_every_s, 300, 0, BIG,
      "seconds between sample tables, which are shown at the end of a phase; 0: off"),
};
#undef T

#define SECTION_OF(member, name, text)                                                             \
    {                                                                                              \
        name, text,                                                                                \
            {member##_opts, sizeof member##_opts / sizeof *member##_opts, sizeof(rlhf_opt)},       \
            offsetof(struct rlhf__config, member), sizeof(((struct rlhf__config *)0)->member)      \
    }
#define SECTION(member, text) SECTION_OF(member, #member, text)

static const struct rlhf__section all_sections[] = {
    SECTION(run, "the run as a whole"),
    SECTION(compute, "kernels and precision"),
    SECTION(policy, "the model that is trained"),
    SECTION(reference, "the model that KL is measured against"),
    SECTION(value, "the critic"),
    SECTION_OF(score_head, "score", "the score head of a classifier"),
    SECTION(data, "rows of supervised algorithms"),
    SECTION(prompts, "prompts of rollout algorithms"),
    SECTION(sampling, "how responses are drawn"),
    SECTION(response, "what is scored"),
    SECTION_OF(mixing, "rewards", "how scores are mixed"),
    SECTION(episodes, "limits of an environment's episodes"),
    SECTION(rollout, "responses ahead of training"),
    SECTION(batch, "sizes"),
    SECTION(optim, "the optimizer"),
    SECTION(parallel, "how a run is divided between processes"),
    SECTION(early_stop, "when a run ends before its last phase"),
    SECTION(checkpoint, "what is kept on disk"),
    SECTION(log, "what is shown and written"),
};

const struct rlhf__section *rlhf__sections(size_t *n) {
    *n = sizeof all_sections / sizeof *all_sections;
    return all_sections;
}
