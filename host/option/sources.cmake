target_sources(rlhf_host_core PRIVATE
  option/aliases.c option/option_json.c option/option_table.c option/option_value.c option/options.c option/strings.c)
