# Flags and helper functions shared by every directory.
add_library(rlhf_warnings INTERFACE)
target_compile_options(rlhf_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wcast-qual -Wvla
  -Wconversion $<$<BOOL:${RLHF_WERROR}>:-Werror>)

# Contraction is off except for explicit FMAs in kernels, so that all optimisation levels give the
# same bits.
add_compile_options(-ffp-contract=off)
add_compile_definitions(_GNU_SOURCE)

if(RLHF_SANITIZE)
  add_compile_options(-fsanitize=${RLHF_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${RLHF_SANITIZE})
  add_compile_definitions(RLHF_SANITIZED=1) # plugins are then loaded with RTLD_NODELETE
endif()
if(RLHF_SANITIZE MATCHES "thread")
  # ThreadSanitizer sees calls of memcpy and memset, but not the inline code that GCC may generate
  # instead of these calls.
  include(CheckCCompilerFlag)
  set(strategy -mmemcpy-strategy=libcall:-1:noalign -mmemset-strategy=libcall:-1:noalign)
  check_c_compiler_flag("${strategy}" RLHF_HAS_MEMCPY_STRATEGY)
  if(RLHF_HAS_MEMCPY_STRATEGY)
    add_compile_options(${strategy})
  endif()
endif()

add_library(rlhf_sdk INTERFACE)
target_include_directories(rlhf_sdk INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/sdk/include> $<INSTALL_INTERFACE:include>)

# Environment of the tests. Only sanitizer builds read LSAN_OPTIONS. RLHF_TEST_SANITIZE tells tests
# that they run in a sanitizer build, which cannot limit memory.
set(RLHF_TEST_ENV "RLHF_SOURCE_DIR=${PROJECT_SOURCE_DIR}" "RLHF_TEST_SANITIZE=${RLHF_SANITIZE}"
  "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0")

# Labels of tests with their time limits in seconds: more than ten times what the slowest test of the
# label takes on an idle machine of two cores (quick 36 s, full 149 s), so that a busy machine fails no
# test. Sanitizers and emulators of CPUs are ten times slower. For set_tests_properties.
set(RLHF_TEST_quick LABELS quick TIMEOUT 600)
set(RLHF_TEST_full LABELS full TIMEOUT 1800)
set(RLHF_TEST_cuda LABELS cuda TIMEOUT 7200)
set(RLHF_TEST_nightly LABELS nightly TIMEOUT 7200)
if(RLHF_SANITIZE OR CMAKE_CROSSCOMPILING)
  foreach(label quick full)
    set(RLHF_TEST_${label} LABELS ${label} TIMEOUT 7200)
  endforeach()
endif()

# rlhf_add_test(NAME SOURCES ... [LIBS ...] [LABEL quick|full|cuda|nightly]): one CMocka executable.
# ./run-tests runs the labels quick (tenths of a second) and full. It runs cuda (the emulation) if the
# backend has changed, and nightly only with --nightly.
function(rlhf_add_test name)
  cmake_parse_arguments(T "" "LABEL" "SOURCES;LIBS" ${ARGN})
  if(NOT T_LABEL)
    set(T_LABEL quick)
  endif()
  add_executable(${name} ${T_SOURCES})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE rlhf_test rlhf_sdk rlhf_warnings ${T_LIBS} cmocka m dl)
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES ${RLHF_TEST_${T_LABEL}}
    ENVIRONMENT "RLHF_BUILD_DIR=${CMAKE_BINARY_DIR};${RLHF_TEST_ENV}")
endfunction()

# rlhf_add_plugin_test(NAME): test_NAME.c, a program that tests the plugin NAME, whose path is its
# argument (`rlhf-host plugin new` generates such tests).
function(rlhf_add_plugin_test name)
  add_executable(test_${name} test_${name}.c)
  set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(test_${name} PRIVATE rlhf_test rlhf_sdk rlhf_warnings)
  add_dependencies(test_${name} plugin_${name})
  add_test(NAME test_${name} COMMAND test_${name} $<TARGET_FILE:plugin_${name}>)
  set_tests_properties(test_${name} PROPERTIES ${RLHF_TEST_quick} ENVIRONMENT "${RLHF_TEST_ENV}")
endfunction()
