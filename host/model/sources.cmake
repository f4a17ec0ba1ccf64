target_sources(rlhf_host_core PRIVATE model/classifier.c model/compute.c model/draw.c model/model.c
  model/parameters.c model/session.c model/text_services.c)
