target_sources(rlhf_host_core PRIVATE
  cmd/cli.c cmd/eval_preferences.c cmd/eval_rollout.c cmd/export_adapter.c cmd/export_card.c
  cmd/export_card_run.c cmd/export_config.c cmd/export_gguf.c cmd/export_place.c cmd/export_source.c cmd/export_tensors.c cmd/flags.c cmd/generate_prompts.c
  cmd/generate_stop.c cmd/generated.c cmd/help.c cmd/hub_id.c cmd/levels.c cmd/plugin_info.c cmd/plugin_list.c cmd/plugin_new.c cmd/print.c cmd/search.c
  cmd/trial.c cmd/tuned.c cmd/version.c cmd/workplace.c)
foreach(command run generate eval label pairs export devices)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/cmd/${command}.c)
    target_sources(rlhf_host_core PRIVATE cmd/${command}.c)
  endif()
endforeach()
target_sources(rlhf_host_core PRIVATE cmd/end.c cmd/plugin_check.c)

# Rows of the metrics' tables, for `help WORD`.
set(rows ${CMAKE_CURRENT_BINARY_DIR}/metrics_rows.inc)
add_custom_command(OUTPUT ${rows}
  COMMAND sed -n "/^|/{s/\\\\/&&/g;s/\"/\\\\\"/g;s/.*/\"&\",/p}" ${PROJECT_SOURCE_DIR}/docs/metrics.md > ${rows}
  DEPENDS ${PROJECT_SOURCE_DIR}/docs/metrics.md VERBATIM)
target_sources(rlhf_host_core PRIVATE ${rows})
