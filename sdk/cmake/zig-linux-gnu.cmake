# Builds with zig's C compiler (clang with the headers and symbol versions of any glibc) for a machine and a
# version of glibc that this machine need not have. scripts/portable-tree sets
#   RLHF_ZIG_TOOLS    folder with the commands cc, ar and ranlib, which it writes
#   RLHF_ZIG_MACHINE  x86_64 or aarch64
#   RLHF_ZIG_PREFIX   prefix of the libraries to link, all of them archives
#   RLHF_ARM64_ROOT   root of Debian's arm64 (scripts/arm64-root), for programs that a cross build runs
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RLHF_ZIG_TOOLS RLHF_ZIG_MACHINE RLHF_ZIG_PREFIX RLHF_ARM64_ROOT)
if(NOT CMAKE_HOST_SYSTEM_PROCESSOR STREQUAL RLHF_ZIG_MACHINE)
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_SYSTEM_PROCESSOR ${RLHF_ZIG_MACHINE})
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${RLHF_ZIG_MACHINE} -L ${RLHF_ARM64_ROOT}/)
endif()
set(CMAKE_C_COMPILER ${RLHF_ZIG_TOOLS}/cc)
set(CMAKE_AR ${RLHF_ZIG_TOOLS}/ar CACHE FILEPATH "zig's ar")
set(CMAKE_RANLIB ${RLHF_ZIG_TOOLS}/ranlib CACHE FILEPATH "zig's ranlib")
# Nothing of this machine is linked.
set(CMAKE_FIND_ROOT_PATH ${RLHF_ZIG_PREFIX})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_PREFIX_PATH ${RLHF_ZIG_PREFIX})
set(ENV{PKG_CONFIG_LIBDIR} ${RLHF_ZIG_PREFIX}/lib/pkgconfig:${RLHF_ZIG_PREFIX}/share/pkgconfig)
