# Every source hot_*.c is compiled once per level; machine/isa.c chooses the level at run time. The backend links
# ${RLHF_HOT_LIBS}: the loops and the GEMM tiles.
#
# RLHF_CPU_LEVELS=NATIVE builds two levels, baseline and the best of this machine. This is enough
# for development and halves the compile time.
set(RLHF_CPU_LEVELS ALL CACHE STRING "Instruction sets of kernels_cpu.so: ALL, or NATIVE (baseline and this machine's)")
set_property(CACHE RLHF_CPU_LEVELS PROPERTY STRINGS ALL NATIVE)
set(RLHF_ISA_SOURCE machine/isa_x86.c)
set(levels baseline avx2 avx512 avx512_bf16)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$") # such a CPU has only NEON
  set(RLHF_ISA_SOURCE machine/isa_neon.c)
  set(levels neon)
elseif(RLHF_CPU_LEVELS STREQUAL "NATIVE")
  execute_process(COMMAND ${CMAKE_C_COMPILER} -march=native -dM -E -x c /dev/null
    OUTPUT_VARIABLE macros COMMAND_ERROR_IS_FATAL ANY)
  set(levels baseline)
  if(macros MATCHES "__AVX512BF16__")
    list(APPEND levels avx512_bf16)
  elseif(macros MATCHES "__AVX512F__" AND macros MATCHES "__AVX512BW__" AND
      macros MATCHES "__AVX512DQ__" AND macros MATCHES "__AVX512VL__")
    list(APPEND levels avx512)
  elseif(macros MATCHES "__AVX2__" AND macros MATCHES "__FMA__")
    list(APPEND levels avx2)
  endif()
elseif(NOT RLHF_CPU_LEVELS STREQUAL "ALL")
  message(FATAL_ERROR "RLHF_CPU_LEVELS is \"${RLHF_CPU_LEVELS}\", allowed are ALL, NATIVE")
endif()
set(RLHF_ISA_SOURCE ${RLHF_ISA_SOURCE} CACHE INTERNAL "isa_x86.c or isa_neon.c, in kernels/cpu")
set(RLHF_HOT_LEVELS ${levels} CACHE INTERNAL "Levels that are built; tests/kernels reads it")

set(hot_loops attention/hot_attn_bwd.c attention/hot_attn_fwd.c attention/hot_rope.c
  head/hot_divergence.c head/hot_head.c head/hot_truncate.c machine/hot_table.c row/hot_act.c
  row/hot_convert.c row/hot_embed.c row/hot_norm.c row/hot_optim.c row/hot_rms_norm.c
  state/hot_conv.c state/hot_delta.c state/hot_delta_bwd.c state/hot_gated_norm.c)
set(hot_tiles product/hot_gemm.c product/hot_gemm_pack.c product/hot_few.c
  product/hot_unquantise.c)
set(hot_flags -fno-math-errno $<$<NOT:$<CONFIG:Debug,Dev>>:-O3>) # the tiles need unrolled loops
set(hot_flags_baseline "")
set(hot_flags_neon "")
set(hot_flags_avx2 -mavx2 -mfma)
set(hot_flags_avx512
  -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma -mprefer-vector-width=512)
set(hot_flags_avx512_bf16 ${hot_flags_avx512} -mavx512bf16)

# rlhf_hot(OUT PREFIX SOURCES LEVELS FLAGS...): the libraries of SOURCES at all LEVELS in ${OUT}.
function(rlhf_hot out prefix sources levels)
  set(libs "")
  foreach(level ${levels})
    set(name ${prefix}_${level})
    add_library(${name} OBJECT ${sources})
    target_compile_definitions(${name} PRIVATE RLHF_HOT_LEVEL=${level})
    target_compile_options(${name} PRIVATE ${hot_flags_${level}} ${ARGN} ${hot_flags})
    target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(${name} PRIVATE rlhf_sdk rlhf_warnings)
    list(APPEND libs ${name})
  endforeach()
  set(${out} ${libs} PARENT_SCOPE)
endfunction()
set(amx_flags -mamx-tile -mamx-bf16 -mprfchw)
if(RLHF_AMX_IN_C)
  list(APPEND amx_flags -include ${PROJECT_SOURCE_DIR}/tests/kernels/amx_in_c.h)
endif()
set_source_files_properties(product/hot_amx_tile.c PROPERTIES COMPILE_OPTIONS "${amx_flags}")

set(hot_flags_tiles "")
if("neon" IN_LIST levels AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
  set(hot_flags_tiles -fira-region=all) # otherwise GCC 12 keeps some sums of a tile in memory
endif()
# These files compile to the same code for avx512 and avx512_bf16, so they are compiled once
# (hot_table.c).
string(REPLACE avx512_bf16 avx512 tile_levels "${levels}")
list(REMOVE_DUPLICATES tile_levels)
rlhf_hot(tiles rlhf_hot_tiles "${hot_tiles}" "${tile_levels}" ${hot_flags_tiles})
rlhf_hot(loops rlhf_hot "${hot_loops}" "${levels}")

# The bf16 GEMMs of x86-64 are in the tables of machine/isa_x86.c. hot_bf16_tile.c is compiled
# once for each form of a panel, NAME:PACKED:ONE_TILE (explained in that file).
set(bf16 "")
if(NOT "neon" IN_LIST levels)
  add_library(rlhf_hot_bf16 OBJECT product/hot_amx_tile.c product/hot_bf16_pack.c
    product/hot_bf16_few.c product/hot_bf16_unquantise.c)
  set(bf16 rlhf_hot_bf16)
  foreach(form tile_packed:1:1 tile_rows:0:1 tiles_packed:1:0 tiles_rows:0:0)
    string(REPLACE ":" ";" form ${form})
    list(GET form 0 name)
    list(GET form 1 packed)
    list(GET form 2 one_tile)
    add_library(rlhf_hot_bf16_${name} OBJECT product/hot_bf16_tile.c)
    target_compile_definitions(rlhf_hot_bf16_${name} PRIVATE RLHF_BF16_PANEL=rlhf__bf16_${name}
      RLHF_BF16_PACKED=${packed} RLHF_BF16_ONE_TILE=${one_tile})
    list(APPEND bf16 rlhf_hot_bf16_${name})
  endforeach()
endif()
foreach(name ${bf16})
  target_compile_definitions(${name} PRIVATE RLHF_HOT_LEVEL=avx512_bf16)
  target_compile_options(${name} PRIVATE ${hot_flags_avx512_bf16} ${hot_flags})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE rlhf_sdk rlhf_warnings)
endforeach()
list(APPEND tiles ${bf16})
# GCC cannot unroll a loop of this file that has checks in it; its warning has no option of its own.
if(RLHF_SANITIZE)
  set_property(SOURCE product/hot_bf16_few.c APPEND PROPERTY COMPILE_OPTIONS -Wno-error)
endif()
set(RLHF_HOT_LIBS ${loops} ${tiles})
