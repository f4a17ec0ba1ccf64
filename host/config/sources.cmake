target_sources(rlhf_host_core PRIVATE
  config/config.c config/effect.c config/hint.c config/layer.c config/layer_flag.c config/option_json.c config/option_value.c
  config/option_table.c config/options.c config/resolve.c config/resume.c config/resume_trust.c config/schema.c
  config/strings.c)
