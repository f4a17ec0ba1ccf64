target_sources(rlhf_host_core PRIVATE
  learn/algo.c learn/evaluate.c learn/evaluate_preferences.c learn/flops.c learn/head_store.c learn/learner.c learn/microbatch.c learn/moved.c learn/optim.c learn/optim_step.c
  learn/pair_loss.c learn/pass.c learn/row_use.c)
