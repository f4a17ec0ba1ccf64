target_sources(rlhf_host_core PRIVATE
  data/batches.c data/completion_row.c data/dataset.c data/kinds.c data/line_writer.c data/lines.c data/loading.c
  data/order.c data/preference_texts.c data/preferences.c data/prompts.c data/row_label.c data/row_line.c
  data/token_chunk.c data/token_rows.c)
