target_sources(rlhf_host_core PRIVATE
  weights/safetensors_header.c weights/safetensors.c weights/safetensors_writer.c weights/tensor.c
  weights/hf_dir.c weights/other_formats.c weights/rounding.c weights/shards.c)
