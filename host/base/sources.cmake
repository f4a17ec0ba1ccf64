target_sources(rlhf_host_core PRIVATE
  base/buf.c base/crc32c.c base/dirs.c base/file.c base/file_writer.c base/folder.c
  base/folder_remove.c base/host_memory.c base/json.c base/json_decode.c base/json_write.c base/links.c base/log.c
  base/memory.c base/nearest.c base/printable.c base/sha256.c base/shared_object.c base/signals.c)
set_source_files_properties(base/dirs.c PROPERTIES COMPILE_DEFINITIONS
  "RLHF_LIBDIR=\"${CMAKE_INSTALL_LIBDIR}\";RLHF_DATADIR=\"${CMAKE_INSTALL_DATADIR}\";RLHF_PREFIX_LIBDIR=\"${CMAKE_INSTALL_FULL_LIBDIR}\";RLHF_PREFIX_DATADIR=\"${CMAKE_INSTALL_FULL_DATADIR}\"")
target_sources(rlhf_host_core PRIVATE base/child.c base/clock.c base/columns.c base/last_words.c base/mapped.c base/running.c)
