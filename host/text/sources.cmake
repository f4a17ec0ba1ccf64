target_sources(rlhf_host_core PRIVATE
  text/ids.c text/utf8.c text/unicode.c text/unicode_new.c text/vocab.c text/pieces.c text/word_cache.c text/work.c
  text/word_rule.c text/pattern.c text/pattern_translate.c text/tokenizer_part.c
  text/bert_normal.c text/normaliser.c text/normaliser_step.c text/normaliser_form.c
  text/pre_tokenizer.c text/pre_tokenizer_step.c text/pre_tokenizer_cut.c
  text/bpe_merge.c text/bpe.c text/wordpiece.c text/pipeline.c
  text/added_tokens.c text/added_id.c text/added_read.c text/added_ready.c text/added.c text/match.c text/encode.c
  text/spans.c text/decoder_step.c text/decoder.c text/decode.c
  text/tokenizer_config.c text/special.c text/frame.c text/tokenizer_files.c
  text/tokenizer_json.c text/tokenizer.c text/tokenizer_open.c text/conversation.c)
