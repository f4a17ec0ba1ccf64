// conversation.h: encodes messages with the tokenizer's chat template, and says which ids are the
// assistant's.
//
// The rendered text is encoded as in transformers' apply_chat_template. Special tokens are found
// wherever their text occurs, even in the content of a message, unless the message's `written` is
// RLHF__CONTENT_SPELLED. No special tokens are added around the text.
#ifndef RLHF_FORMATS_TOKENIZER_CONVERSATION_H
#define RLHF_FORMATS_TOKENIZER_CONVERSATION_H

#include "chat/chat.h"
#include "tokenizer/tokenizer.h"

// Append the ids of a conversation to *out. If `generate` is 1, the ids end where the assistant's
// next turn begins. Unless `says` is NULL, appends one byte for each id to *says: 1 for the
// assistant's ids, including the token that ends a turn, and 0 for others. Errors: those of
// rlhf__chat_render, and RLHF_E_UNSUPPORTED if the tokenizer changes texts so much that `says`
// cannot be determined. [any]
rlhf_status rlhf__conversation_encode(const struct rlhf__tokenizer *tok,
                                      const struct rlhf__messages *m, int generate,
                                      struct rlhf__ids *out, struct rlhf__buf *says,
                                      struct rlhf__error *err);

// Append the ids that `answer` adds to the conversation `m`, which is rendered with `generate` 1.
// `answer` is one turn of the assistant, or several messages, the first and the last by the
// assistant. The ids include the token that ends the last turn, as in a rollout. prompt[0..n) are
// the ids of m. Errors: those of rlhf__conversation_encode. [any]
rlhf_status rlhf__conversation_answer(const struct rlhf__tokenizer *tok,
                                      const struct rlhf__messages *m,
                                      const struct rlhf__messages *answer, const int32_t *prompt,
                                      size_t n, struct rlhf__ids *out, struct rlhf__error *err);

#endif
