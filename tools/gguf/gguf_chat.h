// gguf_chat.h: the chat templates of a model directory as llama.cpp's keys.
#ifndef RLHF_HOST_WEIGHTS_GGUF_CHAT_H
#define RLHF_HOST_WEIGHTS_GGUF_CHAT_H

#include "gguf/gguf_writer.h"

#include <jansson.h>

// Add the templates of chat_template.jinja and additional_chat_templates/, else of
// tokenizer_config.json (config, NULL = there is none; a string or a list of them), else of
// chat_template.json. The default one is tokenizer.chat_template; others are
// tokenizer.chat_template.NAME, listed in tokenizer.chat_templates, with _ for what is no ASCII
// letter or digit in NAME, as PyPI's gguf writes them. Errors: RLHF_E_INVALID (a template of
// another kind than these, two of one name), RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__gguf_chat_put(struct rlhf__gguf *g, const char *dir, const json_t *config,
                                struct rlhf__error *err);

#endif
