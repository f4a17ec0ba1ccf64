// chat_note.h: what is said about a model's chat template once it is known whether rows have
// messages.
#ifndef RLHF_HOST_MODEL_CHAT_NOTE_H
#define RLHF_HOST_MODEL_CHAT_NOTE_H

#include "base/log.h"
#include "model/model.h"

// Take the template that prompts.template names (place in rlhf__chat_names()). Errors:
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__model_name_chat(const struct rlhf__model *m, int32_t template,
                                  struct rlhf__error *err);

// Log which template `rows` rows with messages went through; warn when there are none although one
// is named, when its special tokens are none of the tokenizer's, and, for models that write, when
// the token that ends a turn is none that ends a response. draws: 1 where responses are sampled,
// which sampling.stop can end. [main]
void rlhf__model_chat_note(const struct rlhf__model *m, int64_t rows, int32_t template, int draws,
                           struct rlhf__log *log);

#endif
