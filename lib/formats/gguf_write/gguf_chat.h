// gguf_chat.h: writes a model directory's chat templates as keys for llama.cpp.
#ifndef RLHF_FORMATS_GGUF_WRITE_GGUF_CHAT_H
#define RLHF_FORMATS_GGUF_WRITE_GGUF_CHAT_H

#include "gguf_write/gguf_writer.h"

#include <jansson.h>

// Add the chat templates from the first of these sources that has templates:
//   chat_template.jinja and additional_chat_templates/
//   tokenizer_config.json (`config`, NULL = none): a string or a list of templates
//   chat_template.json
// The default template becomes the key tokenizer.chat_template. Other templates become
// tokenizer.chat_template.NAME and are listed in tokenizer.chat_templates. In NAME, characters
// other than ASCII letters and digits become _, as in PyPI's gguf. Errors: RLHF_E_INVALID (another
// kind of template, or two templates with the same name), RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__gguf_chat_put(struct rlhf__gguf *g, const char *dir, const json_t *config,
                                struct rlhf__error *err);

#endif
