# Builds for aarch64 on another machine, with Debian's compiler (gcc-aarch64-linux-gnu). The preset
# arm64 uses this file. RLHF_ARM64_ROOT is a directory with the libraries of Debian's arm64, from
# scripts/arm64-root. Without it, the libraries that are installed as NAME:arm64 are used. Tests and
# the program run under qemu-aarch64 (qemu-user), if it is installed.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES RLHF_ARM64_ROOT)
set(RLHF_ARM64_ROOT "" CACHE PATH "Root of Debian's arm64 (scripts/arm64-root); empty: this machine's")
if(RLHF_ARM64_ROOT)
  set(CMAKE_SYSROOT ${RLHF_ARM64_ROOT})
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${RLHF_ARM64_ROOT}")
set(ENV{PKG_CONFIG_LIBDIR}
  "${RLHF_ARM64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${RLHF_ARM64_ROOT}/usr/share/pkgconfig")
find_program(RLHF_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
if(RLHF_QEMU AND NOT CMAKE_HOST_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(CMAKE_CROSSCOMPILING_EMULATOR ${RLHF_QEMU} -L ${RLHF_ARM64_ROOT}/)
endif()
