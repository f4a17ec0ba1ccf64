// conversation.h: messages to ids, by the tokenizer's chat template, and which of the ids an
// assistant says.
//
// The rendered text is encoded as transformers' apply_chat_template does it: special tokens are
// found wherever their text stands, in a message's content too, and nothing is put around it.
#ifndef RLHF_HOST_TEXT_CONVERSATION_H
#define RLHF_HOST_TEXT_CONVERSATION_H

#include "chat/chat.h"
#include "text/tokenizer.h"

// Append the ids of a conversation to *out; generate: up to where an assistant speaks next. says
// (NULL allowed) gets a byte an id: 1 = of what an assistant says, the token that ends its turn
// included. Errors: those of rlhf__chat_render; RLHF_E_UNSUPPORTED: says is wanted and the
// tokenizer changes texts so that places cannot be told. [any]
rlhf_status rlhf__conversation_encode(const struct rlhf__tokenizer *tok,
                                      const struct rlhf__messages *m, int generate,
                                      struct rlhf__ids *out, struct rlhf__buf *says,
                                      struct rlhf__error *err);

// Append the ids of what `answer` (an assistant's turn, or several turns that begin and end with
// one) adds behind the conversation `m` as it is with generate: up to and with the token that ends
// the last turn, as a rollout has them. text (NULL allowed) gets its contents. prompt[0..n) are
// m's ids. Errors as above. [any]
rlhf_status rlhf__conversation_answer(const struct rlhf__tokenizer *tok,
                                      const struct rlhf__messages *m,
                                      const struct rlhf__messages *answer, const int32_t *prompt,
                                      size_t n, struct rlhf__ids *out, struct rlhf__error *err);

#endif
