// typed_tokenizer.h: opens the tokenizer of a model that a flag names.
#ifndef RLHF_TOOLS_PROMPT_TYPED_TOKENIZER_H
#define RLHF_TOOLS_PROMPT_TYPED_TOKENIZER_H

#include "base/env.h"
#include "tokenizer/tokenizer.h"

// Open a model's tokenizer. `given` is the model directory, run or adapter that the user gave with
// `flag`, or NULL for the default policy. `chat` is the choice of the chat template. Errors:
// RLHF_E_INVALID with the flag's name, RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__typed_tokenizer(const struct rlhf__env *, const char *flag, const char *given,
                                  const struct rlhf__chat_choice *chat,
                                  struct rlhf__tokenizer **out, struct rlhf__error *err);

#endif
