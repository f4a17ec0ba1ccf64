target_sources(rlhf_host_core PRIVATE
  check/algo.c check/algo_batch.c check/algo_phase.c check/algo_state.c
  check/board.c check/check.c check/fakes.c check/guard.c check/life.c check/model.c check/model_heads.c check/reward.c check/kept.c check/reward_rows.c check/scores.c check/tried_model.c check/watched.c)
# Which lines of the headers say what is looked for.
set(check_lines ${CMAKE_CURRENT_BINARY_DIR}/rule_lines.h)
file(GLOB check_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sdk/include/rlhf/*.h)
add_custom_command(OUTPUT ${check_lines}
  COMMAND ${CMAKE_COMMAND} -DRULES=${CMAKE_CURRENT_SOURCE_DIR}/check/rules.def
          -DHEADERS=${PROJECT_SOURCE_DIR}/sdk/include/rlhf -DOUT=${check_lines}
          -P ${CMAKE_CURRENT_SOURCE_DIR}/check/lines.cmake
  DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/check/rules.def ${CMAKE_CURRENT_SOURCE_DIR}/check/lines.cmake
          ${check_headers})
target_sources(rlhf_host_core PRIVATE ${check_lines})
target_include_directories(rlhf_host_core PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
