target_sources(rlhf_host_core PRIVATE
  config/option_json.c config/option_value.c config/options.c config/schema.c)
