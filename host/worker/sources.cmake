target_sources(rlhf_host_core PRIVATE
  worker/ask.c worker/batch.c worker/confine.c worker/descendants.c worker/describe.c worker/fence.c worker/instance.c worker/landlock.c
  worker/mounts.c worker/process.c worker/seccomp.c worker/serve.c worker/stand_in.c worker/table.c worker/table_services.c worker/upcall.c
  worker/warden.c worker/wire.c)
