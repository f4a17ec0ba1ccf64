target_sources(rlhf_host_core PRIVATE
  weights/safetensors_header.c weights/safetensors.c weights/safetensors_writer.c weights/tensor.c
  weights/beside.c weights/gguf.c weights/gguf_chat.c weights/gguf_config.c weights/gguf_form.c
  weights/gguf_names.c weights/gguf_rope.c weights/gguf_tokens.c weights/gguf_writer.c
  weights/hf_dir.c weights/low_rank.c weights/other_formats.c weights/peft.c weights/peft_read.c
  weights/rounded_file.c weights/rounding.c weights/run_checkpoint.c weights/shards.c weights/sum.c)
