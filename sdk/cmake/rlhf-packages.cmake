# `cpack -G DEB` in the build directory builds three Debian packages: rlhf-host (the program, its
# plugins, presets and pages), rlhf-models (the default models) and librlhf-sdk-dev (headers,
# libraries, templates and examples for plugins). Each package is one component of the install.
# dpkg-shlibdeps finds the libraries that each package depends on.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME rlhf-host)
set(CPACK_PACKAGE_VENDOR "the rlhf-host authors")
set(CPACK_PACKAGE_CONTACT "the rlhf-host authors <rlhf-host@localhost>")
string(REPLACE "-" "~" CPACK_PACKAGE_VERSION "${RLHF_RELEASE}") # Debian sorts 1.0.0~rc1 before 1.0.0
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_ALL host models sdk)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_RLHF_CHANGES ${PROJECT_SOURCE_DIR}/CHANGELOG.md)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/rlhf-packages-files.cmake)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip) # weights do not compress, and xz would try for minutes
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ
  GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_HOST_PACKAGE_NAME rlhf-host)
set(CPACK_DEBIAN_HOST_PACKAGE_SECTION science)
set(CPACK_DEBIAN_HOST_PACKAGE_SHLIBDEPS ON)
if(CMAKE_CROSSCOMPILING)
  # dpkg-shlibdeps would search this machine's packages. The versions are those of Debian 12.
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
  set(CPACK_DEBIAN_HOST_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_HOST_PACKAGE_DEPENDS "libc6 (>= 2.36), libjansson4 (>= 2.14), \
libpcre2-8-0 (>= 10.42), libutf8proc2 (>= 2.8), zlib1g (>= 1:1.2.13)")
  if(CURL_FOUND)
    string(APPEND CPACK_DEBIAN_HOST_PACKAGE_DEPENDS ", libcurl4 (>= 7.88)")
  endif()
endif()
set(CPACK_DEBIAN_HOST_PACKAGE_RECOMMENDS "rlhf-models (= ${CPACK_PACKAGE_VERSION}), libedit2")
set(CPACK_DEBIAN_HOST_PACKAGE_SUGGESTS "librlhf-sdk-dev (= ${CPACK_PACKAGE_VERSION})")
set(CPACK_COMPONENT_HOST_DESCRIPTION "reinforcement learning from feedback for language models
A program that fine-tunes language models by reinforcement learning from
feedback. Algorithms, rewards and model families are plugins.")

set(CPACK_DEBIAN_MODELS_PACKAGE_NAME rlhf-models)
set(CPACK_DEBIAN_MODELS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MODELS_PACKAGE_ARCHITECTURE all)
set(CPACK_COMPONENT_MODELS_DESCRIPTION "default models and rows of rlhf-host
A small policy, a sentiment classifier, a reward model and rows to use them on,
so that rlhf-host runs as typed.")

# The tools that are needed to build a plugin: compilers (the examples are in C and C++), and either
# make with pkg-config, or CMake.
set(CPACK_DEBIAN_SDK_PACKAGE_NAME librlhf-sdk-dev)
set(CPACK_DEBIAN_SDK_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_SDK_PACKAGE_DEPENDS "libc6-dev")
set(CPACK_DEBIAN_SDK_PACKAGE_RECOMMENDS
  "rlhf-host (= ${CPACK_PACKAGE_VERSION}), gcc | c-compiler, g++ | c++-compiler, make, pkg-config, cmake")
set(CPACK_COMPONENT_SDK_DESCRIPTION "headers and libraries for plugins of rlhf-host
Everything that rewards, algorithms, model families and compute backends are
built with and tested on, and templates to begin with.")
include(CPack)
