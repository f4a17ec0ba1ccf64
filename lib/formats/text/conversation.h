// conversation.h: encodes messages by the tokenizer's chat template, and tells which ids are the
// assistant's.
//
// The rendered text is encoded as in transformers' apply_chat_template. Special tokens are found
// wherever their text occurs, also in the content of messages. None are added around the text.
#ifndef RLHF_HOST_TEXT_CONVERSATION_H
#define RLHF_HOST_TEXT_CONVERSATION_H

#include "chat/chat.h"
#include "text/tokenizer.h"

// Append the ids of a conversation to *out. generate: end where the assistant speaks next. says
// (NULL allowed) gets a byte for each id: 1 if it is the assistant's, including the token that ends
// its turn. Errors: those of rlhf__chat_render; RLHF_E_UNSUPPORTED: the tokenizer changes texts so
// much that says cannot be determined. [any]
rlhf_status rlhf__conversation_encode(const struct rlhf__tokenizer *tok,
                                      const struct rlhf__messages *m, int generate,
                                      struct rlhf__ids *out, struct rlhf__buf *says,
                                      struct rlhf__error *err);

// Append the ids that `answer` adds to the conversation `m` rendered with generate. `answer` is an
// assistant's turn, or several turns of which the first and the last are an assistant's. As in a
// rollout, the ids include the token that ends the last turn. prompt[0..n) are the ids of m. Errors
// as above. [any]
rlhf_status rlhf__conversation_answer(const struct rlhf__tokenizer *tok,
                                      const struct rlhf__messages *m,
                                      const struct rlhf__messages *answer, const int32_t *prompt,
                                      size_t n, struct rlhf__ids *out, struct rlhf__error *err);

#endif
