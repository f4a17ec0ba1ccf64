target_sources(rlhf_host_core PRIVATE
  text/ids.c text/utf8.c text/vocab.c text/bpe_merge.c text/bpe.c text/bert_normal.c
  text/wordpiece.c text/special.c text/frame.c text/tokenizer_files.c text/tokenizer_json.c
  text/tokenizer.c text/tokenizer_open.c)
