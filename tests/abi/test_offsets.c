// test_offsets.c: the layout of every public struct equals offsets.txt and has no holes.
//
// If offsets.txt changes, the contract changes: read the difference before committing it. New
// members belong at the end of structs that carry their size. `test_offsets --update` rewrites the
// file.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rlhf/algo.h>
#include <rlhf/draft/collective.h>
#include <rlhf/draft/environment.h>
#include <rlhf/draft/iteration.h>
#include <rlhf/draft/program.h>
#include <rlhf/draft/tap.h>
#include <rlhf/reward.h>
#include <rlhf/rng.h>
#include <rlhf/service.h>
#include <rlhf/sink.h>

#include <cmocka.h>

// A struct (`field` is NULL), or one field of a struct. In the list, a struct's fields come after
// the struct, in order.
struct entry {
    const char *type, *field;
    size_t offset, size;
};

#define S(T)                                                                                       \
    { #T, NULL, 0, sizeof(T) }
#define F(T, f)                                                                                    \
    { #T, #f, offsetof(T, f), sizeof(((T *)0)->f) }

// clang-format off
static const struct entry layout[] = {
    S(rlhf_str), F(rlhf_str, ptr), F(rlhf_str, len),
    S(rlhf_rng), F(rlhf_rng, seed), F(rlhf_rng, stream), F(rlhf_rng, counter),
    S(rlhf_opt), F(rlhf_opt, key), F(rlhf_opt, help), F(rlhf_opt, type), F(rlhf_opt, flags),
    F(rlhf_opt, offset), F(rlhf_opt, reserved), F(rlhf_opt, i_def), F(rlhf_opt, i_min),
    F(rlhf_opt, i_max), F(rlhf_opt, f_def), F(rlhf_opt, f_min), F(rlhf_opt, f_max),
    F(rlhf_opt, s_def), F(rlhf_opt, choices), F(rlhf_opt, l_def), F(rlhf_opt, table),
    F(rlhf_opt, n_table),
    S(rlhf_host), F(rlhf_host, size), F(rlhf_host, abi_minor), F(rlhf_host, name),
    F(rlhf_host, version), F(rlhf_host, log), F(rlhf_host, fail), F(rlhf_host, alloc),
    F(rlhf_host, free), F(rlhf_host, metric), F(rlhf_host, rng), F(rlhf_host, cancelled),
    F(rlhf_host, service), F(rlhf_host, reduce),
    S(rlhf_ostream), F(rlhf_ostream, size), F(rlhf_ostream, reserved), F(rlhf_ostream, write),
    S(rlhf_istream), F(rlhf_istream, size), F(rlhf_istream, reserved), F(rlhf_istream, read),
    F(rlhf_istream, left),
    S(rlhf_plugin), F(rlhf_plugin, size), F(rlhf_plugin, kind), F(rlhf_plugin, id),
    F(rlhf_plugin, version), F(rlhf_plugin, summary), F(rlhf_plugin, vendor), F(rlhf_plugin, url),
    F(rlhf_plugin, license), F(rlhf_plugin, host_minor_min), F(rlhf_plugin, flags),
    F(rlhf_plugin, opts), F(rlhf_plugin, n_opts), F(rlhf_plugin, opt_stride),
    F(rlhf_plugin, config_size), F(rlhf_plugin, state_version), F(rlhf_plugin, why_unused),
    F(rlhf_plugin, create), F(rlhf_plugin, destroy), F(rlhf_plugin, save), F(rlhf_plugin, load),
    F(rlhf_plugin, ops), F(rlhf_plugin, extension),
    S(rlhf_bundle), F(rlhf_bundle, size), F(rlhf_bundle, abi_major), F(rlhf_bundle, abi_minor),
    F(rlhf_bundle, n_plugins), F(rlhf_bundle, plugins), F(rlhf_bundle, built_with),
    S(rlhf_reward_in), F(rlhf_reward_in, size), F(rlhf_reward_in, n), F(rlhf_reward_in, phase),
    F(rlhf_reward_in, prompt), F(rlhf_reward_in, response), F(rlhf_reward_in, meta),
    F(rlhf_reward_in, source), F(rlhf_reward_in, group), F(rlhf_reward_in, finished),
    F(rlhf_reward_in, prompt_len), F(rlhf_reward_in, ids), F(rlhf_reward_in, offset),
    F(rlhf_reward_in, logp_sampled), F(rlhf_reward_in, logp_ref), F(rlhf_reward_in, turn),
    F(rlhf_reward_in, messages), F(rlhf_reward_in, end),
    S(rlhf_reward_out), F(rlhf_reward_out, size), F(rlhf_reward_out, reserved),
    F(rlhf_reward_out, seq), F(rlhf_reward_out, token), F(rlhf_reward_out, verdict),
    F(rlhf_reward_out, failed),
    S(rlhf_reward_ops), F(rlhf_reward_ops, size), F(rlhf_reward_ops, flags),
    F(rlhf_reward_ops, score), F(rlhf_reward_ops, check_row),
    S(rlhf_ragged), F(rlhf_ragged, size), F(rlhf_ragged, n), F(rlhf_ragged, total),
    F(rlhf_ragged, max_q), F(rlhf_ragged, max_k), F(rlhf_ragged, reserved), F(rlhf_ragged, offset),
    F(rlhf_ragged, start), F(rlhf_ragged, kv_base), F(rlhf_ragged, prefix_base),
    F(rlhf_ragged, prefix_len),
    S(rlhf_attn), F(rlhf_attn, size), F(rlhf_attn, heads), F(rlhf_attn, kv_heads),
    F(rlhf_attn, head_dim), F(rlhf_attn, causal), F(rlhf_attn, dtype), F(rlhf_attn, q_stride),
    F(rlhf_attn, kv_stride), F(rlhf_attn, out_stride), F(rlhf_attn, scale),
    S(rlhf_rope), F(rlhf_rope, size), F(rlhf_rope, heads), F(rlhf_rope, kv_heads),
    F(rlhf_rope, head_dim), F(rlhf_rope, dtype), F(rlhf_rope, n_pos), F(rlhf_rope, stride),
    F(rlhf_rope, eps), F(rlhf_rope, pos), F(rlhf_rope, turn), F(rlhf_rope, gamma_q),
    F(rlhf_rope, gamma_k), F(rlhf_rope, raw), F(rlhf_rope, stats),
    S(rlhf_dist), F(rlhf_dist, size), F(rlhf_dist, greedy), F(rlhf_dist, inv_temperature),
    F(rlhf_dist, top_p), F(rlhf_dist, top_k), F(rlhf_dist, reserved), F(rlhf_dist, min_p),
    S(rlhf_lm_head), F(rlhf_lm_head, size), F(rlhf_lm_head, rows), F(rlhf_lm_head, d),
    F(rlhf_lm_head, vocab), F(rlhf_lm_head, dtype), F(rlhf_lm_head, ref_d),
    F(rlhf_lm_head, divergence), F(rlhf_lm_head, once), F(rlhf_lm_head, divergence_beta),
    F(rlhf_lm_head, dist), F(rlhf_lm_head, hidden), F(rlhf_lm_head, weight),
    F(rlhf_lm_head, target), F(rlhf_lm_head, logp), F(rlhf_lm_head, entropy), F(rlhf_lm_head, kl),
    F(rlhf_lm_head, ref_hidden), F(rlhf_lm_head, ref_weight), F(rlhf_lm_head, d_logp),
    F(rlhf_lm_head, d_entropy), F(rlhf_lm_head, d_kl), F(rlhf_lm_head, d_hidden),
    F(rlhf_lm_head, d_weight), F(rlhf_lm_head, support),
    S(rlhf_lm_sample), F(rlhf_lm_sample, size), F(rlhf_lm_sample, rows), F(rlhf_lm_sample, d),
    F(rlhf_lm_sample, vocab), F(rlhf_lm_sample, dtype), F(rlhf_lm_sample, reserved),
    F(rlhf_lm_sample, dist), F(rlhf_lm_sample, logp_dist), F(rlhf_lm_sample, hidden),
    F(rlhf_lm_sample, weight), F(rlhf_lm_sample, seed), F(rlhf_lm_sample, stream),
    F(rlhf_lm_sample, host_counter), F(rlhf_lm_sample, host_id), F(rlhf_lm_sample, host_logp),
    F(rlhf_lm_sample, host_support), F(rlhf_lm_sample, counter), F(rlhf_lm_sample, id),
    F(rlhf_lm_sample, logp), F(rlhf_lm_sample, support),
    S(rlhf_blocks), F(rlhf_blocks, size), F(rlhf_blocks, n), F(rlhf_blocks, rank),
    F(rlhf_blocks, dtype), F(rlhf_blocks, flags), F(rlhf_blocks, n_blocks), F(rlhf_blocks, from),
    F(rlhf_blocks, count), F(rlhf_blocks, scale),
    S(rlhf_linear_sum), F(rlhf_linear_sum, size), F(rlhf_linear_sum, rows),
    F(rlhf_linear_sum, out_dtype), F(rlhf_linear_sum, accumulate), F(rlhf_linear_sum, across),
    F(rlhf_linear_sum, reserved), F(rlhf_linear_sum, out), F(rlhf_linear_sum, x),
    F(rlhf_linear_sum, x2), F(rlhf_linear_sum, w), F(rlhf_linear_sum, w2),
    F(rlhf_linear_sum, bias),
    S(rlhf_adamw), F(rlhf_adamw, size), F(rlhf_adamw, epsilon), F(rlhf_adamw, lr),
    F(rlhf_adamw, beta1), F(rlhf_adamw, beta2), F(rlhf_adamw, eps), F(rlhf_adamw, weight_decay),
    F(rlhf_adamw, grad_scale), F(rlhf_adamw, step),
    S(rlhf_muon), F(rlhf_muon, size), F(rlhf_muon, nesterov), F(rlhf_muon, ns_steps),
    F(rlhf_muon, in_out), F(rlhf_muon, lr), F(rlhf_muon, momentum), F(rlhf_muon, weight_decay),
    F(rlhf_muon, grad_scale),
    S(rlhf_tensors), F(rlhf_tensors, size), F(rlhf_tensors, n), F(rlhf_tensors, len),
    F(rlhf_tensors, g), F(rlhf_tensors, w), F(rlhf_tensors, m), F(rlhf_tensors, v),
    F(rlhf_tensors, lr), F(rlhf_tensors, weight_decay),
    S(rlhf_clip), F(rlhf_clip, sumsq), F(rlhf_clip, norm), F(rlhf_clip, scale), F(rlhf_clip, skip),
    F(rlhf_clip, reserved),
    S(rlhf_call_weight), F(rlhf_call_weight, k), F(rlhf_call_weight, n),
    F(rlhf_call_weight, dtype), F(rlhf_call_weight, flags), F(rlhf_call_weight, rank),
    F(rlhf_call_weight, reserved),
    S(rlhf_call), F(rlhf_call, size), F(rlhf_call, op), F(rlhf_call, rows), F(rlhf_call, d),
    F(rlhf_call, dtype), F(rlhf_call, flags), F(rlhf_call, n), F(rlhf_call, weight),
    F(rlhf_call, weight2), F(rlhf_call, attn), F(rlhf_call, ragged), F(rlhf_call, rope),
    F(rlhf_call, head), F(rlhf_call, sample), F(rlhf_call, sum), F(rlhf_call, muon),
    F(rlhf_call, tensors),
    S(rlhf_compute), F(rlhf_compute, size), F(rlhf_compute, device), F(rlhf_compute, dtypes),
    F(rlhf_compute, threads), F(rlhf_compute, flags), F(rlhf_compute, slots_hint),
    F(rlhf_compute, microbatch_hint), F(rlhf_compute, reserved), F(rlhf_compute, name),
    F(rlhf_compute, detail), F(rlhf_compute, ctx), F(rlhf_compute, alloc),
    F(rlhf_compute, release), F(rlhf_compute, bytes_in_use), F(rlhf_compute, upload),
    F(rlhf_compute, download), F(rlhf_compute, copy), F(rlhf_compute, zero),
    F(rlhf_compute, convert), F(rlhf_compute, sync), F(rlhf_compute, alloc_host),
    F(rlhf_compute, release_host), F(rlhf_compute, upload_async), F(rlhf_compute, download_async),
    F(rlhf_compute, mark), F(rlhf_compute, wait), F(rlhf_compute, weight_create),
    F(rlhf_compute, weight_destroy), F(rlhf_compute, weight_create_blocks),
    F(rlhf_compute, weight_bytes), F(rlhf_compute, weight_pack), F(rlhf_compute, linear),
    F(rlhf_compute, linear_dx), F(rlhf_compute, linear_dw), F(rlhf_compute, linear_add),
    F(rlhf_compute, linear_sum), F(rlhf_compute, embed), F(rlhf_compute, embed_bwd),
    F(rlhf_compute, norm), F(rlhf_compute, norm_bwd), F(rlhf_compute, rms_norm),
    F(rlhf_compute, rms_norm_bwd), F(rlhf_compute, act), F(rlhf_compute, act_bwd),
    F(rlhf_compute, gate), F(rlhf_compute, gate_bwd), F(rlhf_compute, rope),
    F(rlhf_compute, rope_bwd), F(rlhf_compute, add), F(rlhf_compute, gather),
    F(rlhf_compute, scatter_add), F(rlhf_compute, pool), F(rlhf_compute, pool_bwd),
    F(rlhf_compute, kv_store), F(rlhf_compute, attention), F(rlhf_compute, attention_bwd),
    F(rlhf_compute, lm_head), F(rlhf_compute, lm_head_bwd), F(rlhf_compute, lm_sample),
    F(rlhf_compute, sumsq), F(rlhf_compute, adamw), F(rlhf_compute, muon),
    F(rlhf_compute, sumsq_many), F(rlhf_compute, adamw_many), F(rlhf_compute, record),
    F(rlhf_compute, record_end), F(rlhf_compute, workspace_bytes),
    F(rlhf_compute, arithmetic_f32), F(rlhf_compute, arithmetic_bf16), F(rlhf_compute, native), F(rlhf_compute, add_all),
    S(rlhf_kernels_open), F(rlhf_kernels_open, size), F(rlhf_kernels_open, threads),
    F(rlhf_kernels_open, gpu), F(rlhf_kernels_open, guard), F(rlhf_kernels_open, workspace_bytes),
    F(rlhf_kernels_open, arithmetic),
    S(rlhf_kernels_ops), F(rlhf_kernels_ops, size), F(rlhf_kernels_ops, flags),
    F(rlhf_kernels_ops, compute_major), F(rlhf_kernels_ops, compute_minor),
    F(rlhf_kernels_ops, device), F(rlhf_kernels_ops, reserved), F(rlhf_kernels_ops, open),
    F(rlhf_kernels_ops, close), F(rlhf_kernels_ops, describe),
    S(rlhf_adapter), F(rlhf_adapter, size), F(rlhf_adapter, rank), F(rlhf_adapter, scale),
    F(rlhf_adapter, target), F(rlhf_adapter, n_targets), F(rlhf_adapter, reserved),
    S(rlhf_model_open), F(rlhf_model_open, size), F(rlhf_model_open, dtype),
    F(rlhf_model_open, trainable), F(rlhf_model_open, n_labels), F(rlhf_model_open, pooling),
    F(rlhf_model_open, value_kind), F(rlhf_model_open, value_init),
    F(rlhf_model_open, value_detach), F(rlhf_model_open, compute), F(rlhf_model_open, score_init),
    F(rlhf_model_open, frozen), F(rlhf_model_open, recompute), F(rlhf_model_open, n_tokens),
    F(rlhf_model_open, adapter), F(rlhf_model_open, base),
    S(rlhf_model_info), F(rlhf_model_info, size), F(rlhf_model_info, heads),
    F(rlhf_model_info, caps), F(rlhf_model_info, reserved), F(rlhf_model_info, n_params),
    F(rlhf_model_info, flops_per_token), F(rlhf_model_info, n_vocab), F(rlhf_model_info, n_ctx),
    F(rlhf_model_info, d_model), F(rlhf_model_info, n_layer), F(rlhf_model_info, n_tensors),
    F(rlhf_model_info, causal), F(rlhf_model_info, base_prefix), F(rlhf_model_info, grad_base),
    F(rlhf_model_info, grad_bytes),
    S(rlhf_param), F(rlhf_param, size), F(rlhf_param, ndim), F(rlhf_param, name),
    F(rlhf_param, shape), F(rlhf_param, group), F(rlhf_param, flags), F(rlhf_param, init),
    F(rlhf_param, reserved), F(rlhf_param, init_std), F(rlhf_param, value), F(rlhf_param, grad),
    S(rlhf_batch), F(rlhf_batch, size), F(rlhf_batch, n), F(rlhf_batch, total),
    F(rlhf_batch, reserved), F(rlhf_batch, ids), F(rlhf_batch, offset), F(rlhf_batch, prompt_len),
    F(rlhf_batch, prefix), F(rlhf_batch, turn),
    S(rlhf_forward), F(rlhf_forward, size), F(rlhf_forward, heads), F(rlhf_forward, train),
    F(rlhf_forward, flags), F(rlhf_forward, dist), F(rlhf_forward, kl_self),
    F(rlhf_forward, kl_hidden), F(rlhf_forward, support), F(rlhf_forward, kl_dev_hidden),
    F(rlhf_forward, kl_dev_row), F(rlhf_forward, divergence), F(rlhf_forward, reserved),
    F(rlhf_forward, divergence_beta), F(rlhf_forward, graded), F(rlhf_forward, graded_ctx),
    F(rlhf_forward, wanted), F(rlhf_forward, wanted_ctx),
    S(rlhf_heads), F(rlhf_heads, size), F(rlhf_heads, reserved), F(rlhf_heads, logp),
    F(rlhf_heads, entropy), F(rlhf_heads, kl), F(rlhf_heads, value), F(rlhf_heads, score),
    F(rlhf_heads, hidden), F(rlhf_heads, token_score), F(rlhf_heads, dev_hidden),
    S(rlhf_gen_step), F(rlhf_gen_step, size), F(rlhf_gen_step, n), F(rlhf_gen_step, slot),
    F(rlhf_gen_step, start), F(rlhf_gen_step, ids), F(rlhf_gen_step, offset),
    F(rlhf_gen_step, dist), F(rlhf_gen_step, logp_dist), F(rlhf_gen_step, seed),
    F(rlhf_gen_step, stream), F(rlhf_gen_step, counter), F(rlhf_gen_step, next),
    F(rlhf_gen_step, logp), F(rlhf_gen_step, prefix), F(rlhf_gen_step, silent),
    F(rlhf_gen_step, support),
    S(rlhf_model_ops), F(rlhf_model_ops, size), F(rlhf_model_ops, flags),
    F(rlhf_model_ops, compute_major), F(rlhf_model_ops, compute_minor), F(rlhf_model_ops, open),
    F(rlhf_model_ops, info), F(rlhf_model_ops, param), F(rlhf_model_ops, refresh),
    F(rlhf_model_ops, forward), F(rlhf_model_ops, backward), F(rlhf_model_ops, gen_open),
    F(rlhf_model_ops, gen_step), F(rlhf_model_ops, gen_close), F(rlhf_model_ops, trim),
    S(rlhf_run_info), F(rlhf_run_info, size), F(rlhf_run_info, batch_size),
    F(rlhf_run_info, max_new_tokens), F(rlhf_run_info, max_turns), F(rlhf_run_info, n_labels),
    F(rlhf_run_info, shards), F(rlhf_run_info, phases), F(rlhf_run_info, temperature),
    F(rlhf_run_info, ahead), F(rlhf_run_info, reserved),
    S(rlhf_plan), F(rlhf_plan, size), F(rlhf_plan, source), F(rlhf_plan, heads),
    F(rlhf_plan, flags), F(rlhf_plan, epochs), F(rlhf_plan, minibatches), F(rlhf_plan, group_size),
    F(rlhf_plan, resample_rounds), F(rlhf_plan, named), F(rlhf_plan, n_named),
    F(rlhf_plan, divergence), F(rlhf_plan, divergence_beta), F(rlhf_plan, divergence_from),
    S(rlhf_rollout), F(rlhf_rollout, size), F(rlhf_rollout, n), F(rlhf_rollout, total),
    F(rlhf_rollout, max_new_tokens), F(rlhf_rollout, phase), F(rlhf_rollout, steps),
    F(rlhf_rollout, offset), F(rlhf_rollout, prompt_len), F(rlhf_rollout, group),
    F(rlhf_rollout, label), F(rlhf_rollout, source), F(rlhf_rollout, version),
    F(rlhf_rollout, finished), F(rlhf_rollout, meta), F(rlhf_rollout, ids), F(rlhf_rollout, turn),
    F(rlhf_rollout, score), F(rlhf_rollout, token_reward), F(rlhf_rollout, logp_old),
    F(rlhf_rollout, logp_sampled), F(rlhf_rollout, logp_ref), F(rlhf_rollout, value_old),
    F(rlhf_rollout, logp_named), F(rlhf_rollout, batch_score), F(rlhf_rollout, batch_tokens),
    F(rlhf_rollout, batch_finished_tokens), F(rlhf_rollout, batch_n), F(rlhf_rollout, reserved),
    F(rlhf_rollout, advantage), F(rlhf_rollout, returns), F(rlhf_rollout, use),
    S(rlhf_loss_in), F(rlhf_loss_in, size), F(rlhf_loss_in, n), F(rlhf_loss_in, total),
    F(rlhf_loss_in, epoch), F(rlhf_loss_in, minibatch), F(rlhf_loss_in, minibatches),
    F(rlhf_loss_in, shard), F(rlhf_loss_in, n_labels), F(rlhf_loss_in, max_new_tokens),
    F(rlhf_loss_in, reserved), F(rlhf_loss_in, phase), F(rlhf_loss_in, steps),
    F(rlhf_loss_in, batch_sequences), F(rlhf_loss_in, batch_tokens), F(rlhf_loss_in, offset),
    F(rlhf_loss_in, prompt_len), F(rlhf_loss_in, group), F(rlhf_loss_in, label),
    F(rlhf_loss_in, margin), F(rlhf_loss_in, source), F(rlhf_loss_in, version),
    F(rlhf_loss_in, ids), F(rlhf_loss_in, turn), F(rlhf_loss_in, left_out), F(rlhf_loss_in, heads),
    F(rlhf_loss_in, logp_old), F(rlhf_loss_in, logp_sampled), F(rlhf_loss_in, logp_ref),
    F(rlhf_loss_in, value_old), F(rlhf_loss_in, advantage), F(rlhf_loss_in, returns),
    F(rlhf_loss_in, logp_named),
    S(rlhf_loss_out), F(rlhf_loss_out, size), F(rlhf_loss_out, reserved), F(rlhf_loss_out, loss),
    F(rlhf_loss_out, d_heads),
    S(rlhf_step_info), F(rlhf_step_info, size), F(rlhf_step_info, epoch),
    F(rlhf_step_info, minibatch), F(rlhf_step_info, skipped), F(rlhf_step_info, phase),
    F(rlhf_step_info, steps), F(rlhf_step_info, loss), F(rlhf_step_info, grad_norm),
    F(rlhf_step_info, grad_norm_clipped), F(rlhf_step_info, lr), F(rlhf_step_info, lr_factor),
    S(rlhf_prompts), F(rlhf_prompts, size), F(rlhf_prompts, n_choose), F(rlhf_prompts, n),
    F(rlhf_prompts, phase), F(rlhf_prompts, last_score), F(rlhf_prompts, seen),
    F(rlhf_prompts, meta),
    S(rlhf_algo_ops), F(rlhf_algo_ops, size), F(rlhf_algo_ops, flags), F(rlhf_algo_ops, plan),
    F(rlhf_algo_ops, advantages), F(rlhf_algo_ops, loss), F(rlhf_algo_ops, minibatch_end),
    F(rlhf_algo_ops, phase_end), F(rlhf_algo_ops, choose_prompts),
    S(rlhf_sink_run), F(rlhf_sink_run, size), F(rlhf_sink_run, resumed), F(rlhf_sink_run, phase),
    F(rlhf_sink_run, phases), F(rlhf_sink_run, dir), F(rlhf_sink_run, name),
    F(rlhf_sink_run, config),
    S(rlhf_sink_phase), F(rlhf_sink_phase, size), F(rlhf_sink_phase, n_metrics),
    F(rlhf_sink_phase, n_samples), F(rlhf_sink_phase, reserved), F(rlhf_sink_phase, phase),
    F(rlhf_sink_phase, steps), F(rlhf_sink_phase, elapsed), F(rlhf_sink_phase, name),
    F(rlhf_sink_phase, value), F(rlhf_sink_phase, prompt), F(rlhf_sink_phase, response),
    F(rlhf_sink_phase, score),
    S(rlhf_sink_ops), F(rlhf_sink_ops, size), F(rlhf_sink_ops, flags), F(rlhf_sink_ops, begin),
    F(rlhf_sink_ops, phase), F(rlhf_sink_ops, end),
    S(rlhf_classifier_service), F(rlhf_classifier_service, size),
    F(rlhf_classifier_service, reserved), F(rlhf_classifier_service, open),
    F(rlhf_classifier_service, close), F(rlhf_classifier_service, n_labels),
    F(rlhf_classifier_service, label), F(rlhf_classifier_service, logits),
    S(rlhf_tokenizer_service), F(rlhf_tokenizer_service, size),
    F(rlhf_tokenizer_service, reserved), F(rlhf_tokenizer_service, open),
    F(rlhf_tokenizer_service, close), F(rlhf_tokenizer_service, n_vocab),
    F(rlhf_tokenizer_service, encode), F(rlhf_tokenizer_service, decode),
    S(rlhf_reward_model_service), F(rlhf_reward_model_service, size),
    F(rlhf_reward_model_service, reserved), F(rlhf_reward_model_service, open),
    F(rlhf_reward_model_service, close), F(rlhf_reward_model_service, score),
    S(rlhf_row_service), F(rlhf_row_service, size), F(rlhf_row_service, reserved),
    F(rlhf_row_service, open), F(rlhf_row_service, close), F(rlhf_row_service, type),
    F(rlhf_row_service, string), F(rlhf_row_service, number), F(rlhf_row_service, boolean),
    F(rlhf_row_service, length),
    S(rlhf_limits), F(rlhf_limits, size), F(rlhf_limits, retries), F(rlhf_limits, timeout_s),
    F(rlhf_limits, memory_bytes),
    S(rlhf_iteration), F(rlhf_iteration, size), F(rlhf_iteration, reward_model),
    F(rlhf_iteration, moves_reference), F(rlhf_iteration, reserved),
    S(rlhf_reward_update), F(rlhf_reward_update, size), F(rlhf_reward_update, epochs),
    F(rlhf_reward_update, batch_pairs), F(rlhf_reward_update, refit), F(rlhf_reward_update, lr),
    F(rlhf_reward_update, replay_share), F(rlhf_reward_update, history_max),
    S(rlhf_reward_update_report), F(rlhf_reward_update_report, size),
    F(rlhf_reward_update_report, steps), F(rlhf_reward_update_report, fresh),
    F(rlhf_reward_update_report, replayed), F(rlhf_reward_update_report, history),
    F(rlhf_reward_update_report, loss), F(rlhf_reward_update_report, accuracy),
    F(rlhf_reward_update_report, margin), F(rlhf_reward_update_report, fresh_before),
    F(rlhf_reward_update_report, fresh_after),
    S(rlhf_iteration_service), F(rlhf_iteration_service, size),
    F(rlhf_iteration_service, reserved), F(rlhf_iteration_service, reference_sync),
    F(rlhf_iteration_service, collect_pairs), F(rlhf_iteration_service, reward_update),
    S(rlhf_program_use), F(rlhf_program_use, size), F(rlhf_program_use, reserved),
    S(rlhf_program), F(rlhf_program, size), F(rlhf_program, reserved), F(rlhf_program, path),
    F(rlhf_program, argv), F(rlhf_program, env), F(rlhf_program, memory_bytes),
    S(rlhf_process), F(rlhf_process, size), F(rlhf_process, in), F(rlhf_process, out),
    F(rlhf_process, err), F(rlhf_process, confined),
    S(rlhf_program_service), F(rlhf_program_service, size), F(rlhf_program_service, reserved),
    F(rlhf_program_service, start), F(rlhf_program_service, ended), F(rlhf_program_service, works),
    F(rlhf_program_service, end),
    S(rlhf_tap_info), F(rlhf_tap_info, size), F(rlhf_tap_info, norm), F(rlhf_tap_info, norm_eps),
    F(rlhf_tap_info, n_layer), F(rlhf_tap_info, n_head), F(rlhf_tap_info, n_kv_head),
    F(rlhf_tap_info, head_dim), F(rlhf_tap_info, d_model), F(rlhf_tap_info, n_vocab),
    F(rlhf_tap_info, positions), F(rlhf_tap_info, n_labels), F(rlhf_tap_info, value_kind),
    F(rlhf_tap_info, value_hidden),
    S(rlhf_tap_run), F(rlhf_tap_run, size), F(rlhf_tap_run, keep), F(rlhf_tap_run, point),
    F(rlhf_tap_run, layer), F(rlhf_tap_run, stream),
    S(rlhf_tap_ops), F(rlhf_tap_ops, size), F(rlhf_tap_ops, reserved), F(rlhf_tap_ops, info),
    F(rlhf_tap_ops, run), F(rlhf_tap_ops, read), F(rlhf_tap_ops, project), F(rlhf_tap_ops, head),
    F(rlhf_tap_ops, logits),
    S(rlhf_block), F(rlhf_block, at), F(rlhf_block, bytes),
    S(rlhf_collective), F(rlhf_collective, size), F(rlhf_collective, flags),
    F(rlhf_collective, rank), F(rlhf_collective, ranks), F(rlhf_collective, local),
    F(rlhf_collective, locals), F(rlhf_collective, name), F(rlhf_collective, detail),
    F(rlhf_collective, ctx), F(rlhf_collective, exchange), F(rlhf_collective, wait),
    F(rlhf_collective, gather), F(rlhf_collective, abort), F(rlhf_collective, last_error),
    S(rlhf_collective_options), F(rlhf_collective_options, size),
    F(rlhf_collective_options, device), F(rlhf_collective_options, timeout_s),
    F(rlhf_collective_options, lost), F(rlhf_collective_options, lost_ctx),
    F(rlhf_collective_options, base), F(rlhf_collective_options, stream),
    S(rlhf_collectives), F(rlhf_collectives, size), F(rlhf_collectives, major),
    F(rlhf_collectives, minor), F(rlhf_collectives, reserved), F(rlhf_collectives, name),
    F(rlhf_collectives, summary), F(rlhf_collectives, started), F(rlhf_collectives, create),
    F(rlhf_collectives, destroy),
    S(rlhf_tool_call), F(rlhf_tool_call, name), F(rlhf_tool_call, arguments),
    S(rlhf_episode_in), F(rlhf_episode_in, size), F(rlhf_episode_in, n), F(rlhf_episode_in, phase),
    F(rlhf_episode_in, state), F(rlhf_episode_in, episode), F(rlhf_episode_in, seed),
    F(rlhf_episode_in, turn), F(rlhf_episode_in, meta), F(rlhf_episode_in, text),
    F(rlhf_episode_in, call_offset), F(rlhf_episode_in, call), F(rlhf_episode_in, end),
    S(rlhf_episode_out), F(rlhf_episode_out, size), F(rlhf_episode_out, reserved),
    F(rlhf_episode_out, reward), F(rlhf_episode_out, end), F(rlhf_episode_out, verdict),
    F(rlhf_episode_out, failed), F(rlhf_episode_out, say), F(rlhf_episode_out, metric),
    S(rlhf_environment_ops), F(rlhf_environment_ops, size), F(rlhf_environment_ops, flags),
    F(rlhf_environment_ops, state_size), F(rlhf_environment_ops, tools),
    F(rlhf_environment_ops, reset), F(rlhf_environment_ops, step), F(rlhf_environment_ops, finish),
    F(rlhf_environment_ops, close), F(rlhf_environment_ops, check_row),
    F(rlhf_environment_ops, promises),
};
// clang-format on
enum { N_LAYOUT = sizeof layout / sizeof *layout };

static void golden_path(char *path, size_t cap) {
    const char *root = getenv("RLHF_SOURCE_DIR");
    snprintf(path, cap, "%s/tests/abi/offsets.txt", root ? root : ".");
}

static void line_of(const struct entry *e, char *line, size_t cap) {
    if (e->field)
        snprintf(line, cap, "  %s %zu %zu\n", e->field, e->offset, e->size);
    else
        snprintf(line, cap, "%s %zu\n", e->type, e->size);
}

static int update(void) {
    char path[4096], line[256];
    golden_path(path, sizeof path);
    FILE *f = fopen(path, "w");
    if (!f) return 1;
    fputs("# struct size, then field offset size; x86-64 and every LP64. See test_offsets.c.\n", f);
    for (int i = 0; i < N_LAYOUT; i++) {
        line_of(layout + i, line, sizeof line);
        fputs(line, f);
    }
    return fclose(f) != 0;
}

static void layout_is_golden(void **state) {
    (void)state;
    char path[4096], want[256], got[256];
    golden_path(path, sizeof path);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    int at = 0, wrong = 0;
    while (fgets(want, sizeof want, f)) {
        if (want[0] == '#') continue;
        got[0] = 0;
        if (at < N_LAYOUT) line_of(layout + at, got, sizeof got);
        if (strcmp(got, want) != 0 && wrong++ < 5)
            print_error("%s: offsets.txt has %s  this build has %s", layout[at].type, want, got);
        if (at < N_LAYOUT) at++;
    }
    fclose(f);
    assert_int_equal(wrong, 0);
    assert_int_equal(at, N_LAYOUT);
}

// Fields follow each other without a hole, and the table is complete.
static void no_holes(void **state) {
    (void)state;
    size_t end = 0, size = 0;
    for (int i = 0; i <= N_LAYOUT; i++) {
        if (i == N_LAYOUT || !layout[i].field) {
            assert_int_equal(end, size);
            if (i < N_LAYOUT) size = layout[i].size;
            end = 0;
            continue;
        }
        assert_int_equal(layout[i].offset, end);
        end = layout[i].offset + layout[i].size;
    }
}

// Structs that can grow begin with uint32_t size. Code that reads such a struct relies on this.
static void size_comes_first(void **state) {
    (void)state;
    for (int i = 0; i < N_LAYOUT; i++)
        if (layout[i].field && strcmp(layout[i].field, "size") == 0) {
            assert_int_equal(layout[i].offset, 0);
            assert_int_equal(layout[i].size, 4);
        }
}

// The SDK's version is <major>.<minor>.<patch> of the contract.
static void the_version_says_the_minor(void **state) {
    (void)state;
    char want[32];
    snprintf(want, sizeof want, "%d.%d.", RLHF_ABI_MAJOR, RLHF_ABI_MINOR);
    assert_int_equal(strncmp(RLHF_SDK_VERSION, want, strlen(want)), 0);
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--update") == 0) return update();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_golden), cmocka_unit_test(no_holes),
        cmocka_unit_test(size_comes_first), cmocka_unit_test(the_version_says_the_minor)};
    return cmocka_run_group_tests_name("abi/offsets", tests, NULL, NULL);
}
