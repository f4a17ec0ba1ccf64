target_sources(rlhf_host_core PRIVATE model/compute.c model/draw.c model/model.c
  model/parameters.c)
