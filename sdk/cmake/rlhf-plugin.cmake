# rlhf_add_plugin(NAME KIND algo|reward|model|environment|kernels|sink SOURCES a.c ... [LIBS ...] [ALIASES ...])
# Defines the target plugin_NAME: a module NAME.so (kernels: kernels_<backend>.so) that exports only
# its entry (rlhf_plugin_v1) and imports nothing from the host. It is installed to
# <libdir>/rlhf/<abi>/<kind>s under the prefix (kernels: <libdir>/rlhf/<abi>/kernels). An alias is a
# symbolic link to it in the same directory; a model plugin is looked up as <model_type>.so.
function(rlhf_add_plugin name)
  cmake_parse_arguments(P "" "KIND" "SOURCES;LIBS;ALIASES" ${ARGN})
  if(NOT P_KIND MATCHES "^(algo|reward|model|environment|kernels|sink)$")
    message(FATAL_ERROR "rlhf_add_plugin(${name}): KIND must be algo, reward, model, environment, kernels or sink")
  endif()
  if(NOT P_SOURCES)
    message(FATAL_ERROR "rlhf_add_plugin(${name}): SOURCES is empty")
  endif()
  set(target plugin_${name})
  set_property(GLOBAL APPEND PROPERTY RLHF_PLUGINS_${P_KIND} ${target})
  set(dir ${P_KIND}s)
  if(P_KIND STREQUAL "kernels")
    set(dir kernels)
  endif()
  add_library(${target} MODULE ${P_SOURCES})
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME ${name}
    C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${target} PRIVATE rlhf_sdk ${P_LIBS} m)
  # Multiply-adds are fused only if the source calls fma(), so results have the same bits for every
  # -march. All plugins leave fields of their tables unset, so the C++ warning about missing
  # initializers is off.
  target_compile_options(${target} PRIVATE -ffp-contract=off
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)
  if(TARGET rlhf_warnings)
    target_link_libraries(${target} PRIVATE rlhf_warnings)
  endif()
  if(NOT RLHF_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,-z,defs
      "-Wl,--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/rlhf-plugin.map")
  endif()
  if(RLHF_LIB_DIR)
    set_target_properties(${target} PROPERTIES
      LIBRARY_OUTPUT_DIRECTORY ${RLHF_LIB_DIR}/${dir})
  endif()
  set(subdir ${RLHF_PLUGIN_SUBDIR})
  if(NOT subdir)
    set(subdir ${CMAKE_INSTALL_LIBDIR}/rlhf/${RLHF_PLUGIN_ABI})
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION ${subdir}/${dir})
  foreach(alias ${P_ALIASES})
    add_custom_command(TARGET ${target} POST_BUILD
      COMMAND ${CMAKE_COMMAND} -E create_symlink ${name}.so
              $<TARGET_FILE_DIR:${target}>/${alias}.so)
    install(FILES $<TARGET_FILE_DIR:${target}>/${alias}.so DESTINATION ${subdir}/${dir})
  endforeach()
endfunction()
