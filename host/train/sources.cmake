target_sources(rlhf_host_core PRIVATE train/best.c train/checkpoint.c train/checkpoint_dir.c
  train/completions.c train/decode.c
  train/early_stop.c train/effect_rules.c train/episodes.c train/evaluate.c train/evaluate_preferences.c
  train/iteration.c train/iteration_state.c train/learner.c train/loop.c train/manifest.c train/mixing.c
  train/optim.c train/phase_report.c train/plan.c train/phase_rollout.c train/phase_supervised.c
  train/preference_source.c train/reference.c train/replay.c train/replay_file.c train/response_rules.c
  train/early_stop.c train/episodes.c train/flops.c train/evaluate.c train/evaluate_preferences.c
  train/iteration.c train/iteration_state.c train/learner.c train/loop.c train/mixing.c
  train/optim.c train/phase_report.c train/phase_rollout.c train/phase_supervised.c
  train/preference_source.c train/replay.c train/replay_file.c train/response_rules.c
  train/reward_round.c train/reward_training.c train/reward_training_state.c train/rollout.c
  train/rollout_log.c train/rollout_source.c train/run_dir.c train/run_dir_resume.c
  train/run_lock.c train/schedule.c train/scoring.c train/setup.c train/setup_preferences.c
  train/setup_supervised.c train/shared_batch.c train/state_file.c train/text_source.c
  cmd/eval_rollout.c)
target_sources(rlhf_host_core PRIVATE train/boundary.c train/saving.c train/undo.c)
