target_sources(rlhf_host_core PRIVATE
  config/config.c config/effect.c config/hint.c config/layer.c config/layer_flag.c config/resolve.c
  config/resume.c config/resume_trust.c config/schema.c)
