# RLHF_STATIC_DEPS=ON: programs and plugins that need only the C library on the target machine.
# Links the archive of each -dev package instead of its shared library.

# Replaces the libraries of an imported target by lib<name>.a.
function(rlhf_link_archive target name)
  find_library(RLHF_ARCHIVE_${name} NAMES lib${name}.a REQUIRED)
  set_property(TARGET ${target} PROPERTY INTERFACE_LINK_LIBRARIES ${RLHF_ARCHIVE_${name}})
endfunction()
get_property(jansson TARGET PkgConfig::JANSSON PROPERTY INTERFACE_LINK_LIBRARIES)
rlhf_link_archive(PkgConfig::JANSSON jansson)
rlhf_link_archive(PkgConfig::PCRE2 pcre2-8)
rlhf_link_archive(PkgConfig::UTF8PROC utf8proc)
# Jansson's archive cannot be linked into a shared object, because it refers to stdin.
set_property(TARGET PkgConfig::JANSSON PROPERTY INTERFACE_LINK_LIBRARIES
  "$<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>,${RLHF_ARCHIVE_jansson},${jansson}>")

# Plugins export only their entry, so that symbols of the archives stay private.
add_link_options(-static-libgcc $<$<LINK_LANGUAGE:CXX,CUDA>:-static-libstdc++>
  -Wl,--exclude-libs,libjansson.a:libpcre2-8.a:libutf8proc.a:libz.a:libstdc++.a:libgcc.a)

# Two libraries stay shared: Jansson in plugins, and cmocka, which has no archive.
# scripts/pack-gpu copies them next to the files that load them.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(CMAKE_INSTALL_RPATH "$ORIGIN")
