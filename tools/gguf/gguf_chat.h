// gguf_chat.h: the chat templates of a model directory as llama.cpp's keys.
#ifndef RLHF_HOST_WEIGHTS_GGUF_CHAT_H
#define RLHF_HOST_WEIGHTS_GGUF_CHAT_H

#include "gguf/gguf_writer.h"

#include <jansson.h>

// Add the templates of chat_template.jinja and additional_chat_templates/, or else of
// tokenizer_config.json (config, NULL = none; a string or a list of templates), or else of
// chat_template.json. The default one is tokenizer.chat_template. Others are
// tokenizer.chat_template.NAME, listed in tokenizer.chat_templates; in NAME, characters other than
// ASCII letters and digits become _, as in PyPI's gguf. Errors: RLHF_E_INVALID (another kind of
// template, two with one name), RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__gguf_chat_put(struct rlhf__gguf *g, const char *dir, const json_t *config,
                                struct rlhf__error *err);

#endif
