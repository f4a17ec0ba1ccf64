target_sources(rlhf_host_core PRIVATE
  sample/ahead.c sample/decode.c sample/diversity.c sample/experience.c sample/mixing.c sample/response_rules.c
  sample/reward_ask.c sample/reward_books.c sample/reward_call.c sample/reward_early.c sample/reward_metrics.c sample/reward_narrow.c sample/reward_rows.c sample/rewards.c sample/rollout.c sample/scored.c sample/scoring.c)
