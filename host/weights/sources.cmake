target_sources(rlhf_host_core PRIVATE
  weights/dtype.c weights/safetensors_header.c weights/safetensors.c weights/safetensors_writer.c
  weights/hf_dir.c)
