target_sources(rlhf_host_core PRIVATE
  batch/rows.c batch/minibatches.c batch/preference_source.c batch/replay.c batch/replay_file.c
  batch/shared_batch.c batch/text_source.c)
