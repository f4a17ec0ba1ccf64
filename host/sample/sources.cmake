target_sources(rlhf_host_core PRIVATE
  sample/decode.c sample/diversity.c sample/experience.c sample/mixing.c sample/response_rules.c sample/rewards.c sample/rollout.c sample/scoring.c)
