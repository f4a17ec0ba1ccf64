target_sources(rlhf_host_core PRIVATE
  run/best.c run/boundary.c run/calibration.c run/checkpoint.c run/completions.c
  run/early_stop.c run/effect_rules.c run/feed.c run/findings.c run/fresh_groups.c run/held_out_prompts.c run/iteration.c run/iteration_state.c run/judge.c
  run/loop.c run/pay.c run/phase_run.c run/phase_report.c run/phase_update.c run/phase_warnings.c run/plan.c
  run/preference_feed.c run/prompt_feed.c run/read_inputs.c run/rehearsal.c run/reward_accounts.c run/reward_round.c run/reward_training.c
  run/reward_training_state.c run/rollout_log.c
  run/saving.c run/setup.c run/setup_models.c run/setup_rows.c run/taught.c run/optim_state.c run/plugin_states.c run/run_models.c run/run_state.c run/text_feed.c run/trainer.c
  run/undo.c)
