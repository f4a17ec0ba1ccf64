target_sources(rlhf_host_core PRIVATE
  learn/evaluate.c learn/evaluate_preferences.c learn/flops.c learn/head_store.c learn/learner.c learn/optim.c learn/pass.c
  learn/schedule.c)
