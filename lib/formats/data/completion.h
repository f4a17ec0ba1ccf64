// completion.h: tokenizes a prompt with its completion as a row of data, and marks the completion's
// tokens.
#ifndef RLHF_FORMATS_DATA_COMPLETION_H
#define RLHF_FORMATS_DATA_COMPLETION_H

#include "data/dataset.h"
#include "tokenizer/tokenizer.h"

// This bit is set in the ids of the tokens that the assistant wrote, and of a completion's tokens.
#define RLHF__TOKEN_SAYS (1 << 30)

// Set RLHF__TOKEN_SAYS in every id from index `from` onward. [any]
static inline void rlhf__token_mark(struct rlhf__ids *ids, size_t from) {
    for (size_t i = from; i < ids->n; i++)
        ids->data[i] |= RLHF__TOKEN_SAYS;
}

// Append the ids of a prompt and of its completion. As in a rollout, the two are tokenized
// separately. The completion's ids have RLHF__TOKEN_SAYS set. Flags: RLHF__ENCODE_BOS puts bos
// before the prompt, RLHF__ENCODE_EOS puts eos after the completion. In
// rlhf__token_completion_chat, the first `asked` messages are the prompt, and the completion ends
// with the token that ends its last turn. Errors: RLHF_E_NOMEM, those of rlhf__conversation_encode.
// [any]
rlhf_status rlhf__token_completion(const struct rlhf__tokenizer *tok,
                                   const struct rlhf__data_row *row, uint32_t flags,
                                   struct rlhf__ids *ids, struct rlhf__error *err);
rlhf_status rlhf__token_completion_chat(const struct rlhf__tokenizer *tok,
                                        const struct rlhf__messages *m, size_t asked,
                                        struct rlhf__ids *ids, struct rlhf__error *err);

#endif
