target_sources(rlhf_host_core PRIVATE
  plugin/descriptor.c plugin/elf.c plugin/elf_names.c plugin/kernels.c plugin/load.c plugin/metadata.c plugin/metric_names.c plugin/note.c plugin/row_service.c plugin/search.c plugin/services.c plugin/state.c
  plugin/trust.c)
