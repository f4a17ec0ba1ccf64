// aliases.c: see aliases.h.
#include "option/aliases.h"

#include <string.h>

static const struct rlhf__alias all[] = {
    // the trainers
    {"SFTTrainer", "--algo sft.so", "with --data"},
    {"DPOTrainer", "--algo dpo.so", "with --data"},
    {"KTOTrainer", "--algo kto.so", "with --data"},
    {"RewardTrainer", "--algo bradley_terry.so", "with --data"},
    {"GRPOTrainer", "--algo grpo.so", "with --prompts and --reward"},
    {"RLOOTrainer", "--algo rloo.so", "with --prompts and --reward"},
    {"PPOTrainer", "--algo ppo.so", "with --prompts and --reward"},
    // the run
    {"model_name_or_path", "--policy", "a directory; nothing is downloaded"},
    {"output_dir", "--out", NULL},
    {"resume_from_checkpoint", "--resume", "with the run's directory"},
    {"seed", "run.seed", "or --seed"},
    {"max_steps", "run.phases", "a phase is one batch; with sft.so and dpo.so one optimizer step"},
    {"num_train_epochs", "data.epochs", "sft.so, classify.so, dpo.so, kto.so, bradley_terry.so"},
    {"epochs", "data.epochs", "passes over the rows; of a batch of responses: algo.epochs"},
    {"report_to", "--sink", "wandb.so or trackio.so; log.tensorboard is on"},
    {"logging_dir", "--out", "TensorBoard's events are in its folder tensorboard"},
    {"logging_steps", "log.samples_every", "of sample tables; metrics have a row a phase"},
    {"log_completions", "log.samples", "how many"},
    {"save_strategy", "checkpoint.every", "phases; checkpoint.every_s: seconds"},
    {"save_steps", "checkpoint.every", "phases; checkpoint.every_s: seconds"},
    {"save_total_limit", "checkpoint.keep", NULL},
    {"load_best_model_at_end", "checkpoint.best", "name the metric"},
    // data
    {"dataset_name", "--data", "a file; --prompts where responses are drawn"},
    {"train_file", "--data", "--prompts where responses are drawn"},
    {"eval_dataset", "data.eval_path", NULL},
    {"eval_strategy", "data.eval_every", "phases, with data.eval_path"},
    {"eval_steps", "data.eval_every", NULL},
    {"remove_unused_columns", NULL, "not needed: rewards get every field of a row"},
    {"max_length", "data.max_tokens", NULL},
    {"max_seq_length", "data.max_tokens", NULL},
    {"max_prompt_length", "prompts.max_tokens", NULL},
    {"assistant_only_loss", "data.assistant_only", NULL},
    {"chat_template_path", "prompts.template", "a name (chatml, qwen3, ...) or a .jinja file"},
    {"chat_template_kwargs", "prompts.template_vars", "or a row's own chat_template_kwargs"},
    // batches
    {"batch_size", "batch.size", "rows or responses of a phase"},
    {"per_device_train_batch_size", "batch.size", "of a whole phase, whatever fits at once"},
    {"gradient_accumulation_steps", "batch.microbatch_tokens",
     "tokens at once; gradients of the whole batch are summed anyway"},
    {"num_mini_batches", "algo.minibatches", "ppo.so, grpo.so, rloo.so"},
    {"steps_per_generation", "algo.minibatches", "ppo.so, grpo.so, rloo.so"},
    {"gradient_checkpointing", "compute.recompute", "layer"},
    // optimizer
    {"learning_rate", "optim.lr", NULL},
    {"lr", "optim.lr", NULL},
    {"weight_decay", "optim.weight_decay", NULL},
    {"max_grad_norm", "optim.max_grad_norm", NULL},
    {"warmup_steps", "optim.warmup", "phases"},
    {"warmup_ratio", "optim.warmup", "phases, not a share"},
    {"lr_scheduler_type", "optim.schedule", NULL},
    {"adam_beta1", "optim.beta1", NULL},
    {"adam_beta2", "optim.beta2", NULL},
    {"adam_epsilon", "optim.eps", NULL},
    {"optimizer", "optim.kind", "adamw or muon"},
    // sampling
    {"num_generations", "algo.group_size", "grpo.so, rloo.so, ppo.so"},
    {"rloo_k", "algo.group_size", "rloo.so"},
    {"max_completion_length", "sampling.max_new_tokens", NULL},
    {"response_length", "sampling.max_new_tokens", NULL},
    {"max_new_tokens", "sampling.max_new_tokens", NULL},
    {"temperature", "sampling.temperature", NULL},
    {"top_p", "sampling.top_p", NULL},
    {"top_k", "sampling.top_k", NULL},
    {"stop_token_id", "sampling.stop", "a list of ids and texts"},
    {"missing_eos_penalty", "response.non_stop_penalty",
     "positive, as in TRL; with response.non_stop=subtract"},
    // rewards and reference
    {"reward_funcs", "--reward", "python.so:file=FILE.py,function=NAME"},
    {"reward_model_path", "--reward", "bt_rm.so:model=DIR"},
    {"reward_weights", "reward.N.weight", "or --reward X.so:weight=W"},
    {"ref_model", "reference.path", NULL},
    // algorithms
    {"beta", "algo.kl_coef", "grpo.so, ppo.so, rloo.so; in dpo.so and kto.so it is algo.beta"},
    {"kl_coef", "algo.kl_coef", "ppo.so, grpo.so, rloo.so"},
    {"init_kl_coef", "algo.kl_coef", "ppo.so"},
    {"target_kl", "algo.target_kl", "ppo.so, grpo.so; early_stop.kl ends the run"},
    {"num_iterations", "algo.epochs", "grpo.so, rloo.so, ppo.so"},
    {"num_ppo_epochs", "algo.epochs", "ppo.so"},
    {"epsilon", "algo.clip_range", "grpo.so, ppo.so, rloo.so"},
    {"epsilon_high", "algo.clip_range_high", "grpo.so, ppo.so: the distance, as in TRL"},
    {"cliprange", "algo.clip_range", "ppo.so"},
    {"cliprange_value", "algo.value_clip", "ppo.so"},
    {"vf_coef", "algo.value_coef", "ppo.so"},
    {"lam", "algo.lambda", "ppo.so"},
    {"gamma", "algo.gamma", "ppo.so"},
    {"scale_rewards", "algo.advantage_scale", "grpo.so"},
    {"multi_objective_aggregation", "algo.advantage_rewards", "grpo.so; each: normalize_then_sum"},
    {"loss_type", "algo.loss", "grpo.so, dpo.so, kto.so"},
    {"importance_sampling_level", "algo.ratio", "grpo.so: token or sequence_mean"},
    {"mask_truncated_completions", "algo.mask_truncated", "grpo.so, rloo.so"},
    {"entropy_coef", "algo.entropy_coef", "ppo.so, grpo.so"},
    {"label_smoothing", "algo.label_smoothing", "dpo.so"},
    {"desirable_weight", "algo.desirable_weight", "kto.so"},
    {"undesirable_weight", "algo.undesirable_weight", "kto.so"},
    // adapters and numbers
    {"lora", "policy.adapter.rank", "a rank above 0, such as 8"},
    {"lora_r", "policy.adapter.rank", NULL},
    {"lora_alpha", "policy.adapter.alpha", NULL},
    {"lora_target_modules", "policy.adapter.targets", NULL},
    {"lora_dropout", NULL, "adapters have no dropout"},
    {"bf16", "compute.dtype", "bf16 or f32"},
    {"fp16", "compute.dtype", "bf16 or f32; fp16 is not supported"},
    {"peft", "policy.adapter.rank", "a rank above 0; adapters are LoRA"},
    {"use_peft", "policy.adapter.rank", "a rank above 0, such as 8"},
    {"use_vllm", NULL, "sampling and training are one program"},
    // programs and techniques that users look for
    {"wandb", "--sink", "wandb.so"},
    {"mlflow", NULL,
     "not supported; metrics.jsonl has every metric, and a sink can send them (plugin new sink)"},
    {"trackio", "--sink", "trackio.so"},
    {"vllm", NULL, "not used: sampling and training are one program"},
    {"deepspeed", NULL, "not supported: mpirun or srun starts several processes"},
    {"fsdp", NULL, "not supported: every process holds the whole model"},
    {"accelerate", NULL, "not used: mpirun or srun starts several processes"},
    {"qlora", NULL, "not supported: weights are f32 or bf16 (compute.dtype)"},
    {"load_in_4bit", NULL, "not supported: weights are f32 or bf16 (compute.dtype)"},
    {"load_in_8bit", NULL, "not supported: weights are f32 or bf16 (compute.dtype)"},
    {"bitsandbytes", NULL, "not supported: weights are f32 or bf16 (compute.dtype)"},
    {"attn_implementation", NULL, "there is one implementation of attention"},
    {"torch_compile", NULL, "PyTorch is not used: kernels are compiled code"},
    {"use_liger_kernel", NULL, "PyTorch is not used: kernels are compiled code"},
    {"packing", NULL, "not needed: batches have no padding"},
    {"neftune_noise_alpha", NULL, "not supported"},
    {"push_to_hub", NULL, "nothing is uploaded; rlhf-host export writes the directory to upload"},
};

const struct rlhf__alias *rlhf__aliases(size_t *n) {
    *n = sizeof all / sizeof *all;
    return all;
}

// Returns 1 if the words are equal. A '-' in `a` also matches a '_' in `b`.
static int same_word(const char *a, const char *b) {
    for (; *a && *b; a++, b++)
        if (*a != *b && !(*a == '-' && *b == '_')) return 0;
    return !*a && !*b;
}

const struct rlhf__alias *rlhf__alias_find(const char *typed) {
    const char *dot = strrchr(typed, '.');
    if (dot) typed = dot + 1;
    while (*typed == '-')
        typed++;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (same_word(typed, all[i].theirs)) return &all[i];
    return NULL;
}

int rlhf__alias_hint(const char *typed, int as_flag, struct rlhf__buf *out) {
    const struct rlhf__alias *a = rlhf__alias_find(typed);
    if (!a || (a->ours && strcmp(typed, a->ours) == 0)) return 0;
    if (!a->ours) {
        rlhf__buf_printf(out, " (%s)", a->note);
        return 1;
    }
    const int is_flag = a->ours[0] == '-';
    rlhf__buf_printf(out, " (here it is %s%s%s%s%s)", as_flag && !is_flag ? "--set " : "", a->ours,
                     as_flag && !is_flag ? "=" : "", a->note ? ": " : "", a->note ? a->note : "");
    return 1;
}
