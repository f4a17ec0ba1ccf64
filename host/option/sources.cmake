target_sources(rlhf_host_core PRIVATE
  option/option_json.c option/option_table.c option/option_value.c option/options.c option/strings.c)
