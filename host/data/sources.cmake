target_sources(rlhf_host_core PRIVATE
  data/kinds.c data/lines.c data/loading.c data/line_writer.c data/dataset.c data/token_rows.c data/order.c data/batches.c data/preferences.c data/prompts.c)
