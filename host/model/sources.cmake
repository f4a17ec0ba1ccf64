target_sources(rlhf_host_core PRIVATE model/adapter.c model/adapter_write.c model/classifier.c model/classifier_config.c model/compute.c model/config_common.c model/ends.c model/compute_load.c model/compute_peak.c
   model/draw.c model/model.c model/open.c model/paper.c model/parameters.c model/parameters_read.c model/surplus.c model/reward_front.c model/reward_head.c
  model/reward_model.c  model/reward_service.c model/room.c model/session.c model/text_services.c model/chat_note.c)
