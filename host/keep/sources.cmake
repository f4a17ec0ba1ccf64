target_sources(rlhf_host_core PRIVATE
  keep/checkpoint_dir.c keep/inputs.c keep/leftover.c keep/manifest.c keep/run_dir.c keep/run_dir_resume.c keep/run_lock.c)
