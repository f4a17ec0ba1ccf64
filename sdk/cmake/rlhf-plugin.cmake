# rlhf_add_plugin(NAME KIND algo|reward|model SOURCES a.c ... [LIBS ...] [ALIASES ...])
# Target plugin_NAME: a module NAME.so that exports rlhf_plugin_v0 and nothing else and imports
# nothing from the host. Installed to <libdir>/rlhf/<abi>/<kind>s under the prefix. An alias is a
# symbolic link beside it: a model plugin is looked for as <model_type>.so.
function(rlhf_add_plugin name)
  cmake_parse_arguments(P "" "KIND" "SOURCES;LIBS;ALIASES" ${ARGN})
  if(NOT P_KIND MATCHES "^(algo|reward|model)$")
    message(FATAL_ERROR "rlhf_add_plugin(${name}): KIND must be algo, reward or model")
  endif()
  if(NOT P_SOURCES)
    message(FATAL_ERROR "rlhf_add_plugin(${name}): SOURCES is empty")
  endif()
  set(target plugin_${name})
  add_library(${target} MODULE ${P_SOURCES})
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${name}
    C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${target} PRIVATE rlhf_sdk ${P_LIBS} m)
  if(TARGET rlhf_warnings)
    target_link_libraries(${target} PRIVATE rlhf_warnings)
  endif()
  if(NOT RLHF_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-z,defs)
  endif()
  if(RLHF_LIB_DIR)
    set_target_properties(${target} PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY ${RLHF_LIB_DIR}/${P_KIND}s)
  endif()
  set(subdir ${RLHF_PLUGIN_SUBDIR})
  if(NOT subdir)
    set(subdir ${CMAKE_INSTALL_LIBDIR}/rlhf/${RLHF_PLUGIN_ABI})
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION ${subdir}/${P_KIND}s)
  foreach(alias ${P_ALIASES})
    add_custom_command(TARGET ${target} POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E create_symlink ${name}.so
              $<TARGET_FILE_DIR:${target}>/${alias}.so)
    install(FILES $<TARGET_FILE_DIR:${target}>/${alias}.so DESTINATION ${subdir}/${P_KIND}s)
  endforeach()
endfunction()
