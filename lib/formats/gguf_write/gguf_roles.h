// gguf_roles.h: the tokens of a GGUF file, and the keys for those with a role: BOS, EOS, end of a
// turn, unknown, padding.
#ifndef RLHF_FORMATS_GGUF_WRITE_GGUF_ROLES_H
#define RLHF_FORMATS_GGUF_WRITE_GGUF_ROLES_H

#include "gguf/gguf_words.h"
#include "gguf_write/gguf_form.h"
#include "gguf_write/gguf_writer.h"
#include "tokenizer/tokenizer.h"

struct rlhf__gguf_token {
    const char *text; // NULL = no text for this id; borrowed
    int32_t type,
        ranked;  // enum rlhf__gguf_token_type (gguf/gguf_words.h); ranked: a merge makes it
    float score; // minus the rank of the token among the results of merges
};

struct rlhf__gguf_token_list {
    const char *dir;
    struct rlhf__gguf_token *token; // [n]
    int32_t n;
    json_t *full, *vocab,
        *added;           // tokenizer.json or NULL; {"text": id}; [{"id", "content", ..}]
    json_t *merges;       // ["a b"] or [["a", "b"]]
    json_t *config, *map; // tokenizer_config.json, special_tokens_map.json, or NULL
    struct rlhf__gguf_form form;
    struct rlhf__tokenizer *tokenizer; // rejects files that models reject; adds BOS and EOS
};

// Add the keys of the roles, and set the types of these tokens. `config` is the model's
// config.json. Errors: RLHF_E_INVALID (the tokenizer puts other tokens around a text than BOS
// before and EOS after it), those of reading generation_config.json. [main]
rlhf_status rlhf__gguf_roles_put(struct rlhf__gguf *g, struct rlhf__gguf_token_list *t,
                                 const json_t *config, struct rlhf__error *err);

#endif
