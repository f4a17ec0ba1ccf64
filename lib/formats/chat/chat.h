// chat.h: the chat template of a model directory: messages become the text that the model was
// trained on.
//
// Templates are a fixed set, rendered by our own code: chatml, llama2, llama3, qwen2.5, qwen3,
// gemma, zephyr, plain. A directory's own template (chat_template.jinja, else chat_template of
// tokenizer_config.json) is one of them when it produces the same (probe.h); else, and where there
// is none, whoever renders gets an error that says how to name one. Special tokens stand in the
// text as their texts, as in transformers; the tokenizer finds them (RLHF__ENCODE_SPECIAL).
//
// What it is not: a Jinja for everybody, or a tokenizer.
#ifndef RLHF_HOST_CHAT_CHAT_H
#define RLHF_HOST_CHAT_CHAT_H

#include "chat/message.h"

struct rlhf__chat; // opaque

// What a template finds of the tokenizer; NULL = there is no such token. Borrowed during the call.
struct rlhf__chat_tokens {
    const char *bos, *eos, *unk, *pad;
};

// Read the template of a directory. One that is not there, cannot be read or is none of the set is
// no error yet. Caller owns *out; free with rlhf__chat_close. Errors: RLHF_E_NOMEM. [main]
rlhf_status rlhf__chat_open(const char *dir, const struct rlhf__chat_tokens *tokens,
                            struct rlhf__chat **out, struct rlhf__error *err);
void rlhf__chat_close(struct rlhf__chat *); // NULL allowed

// Take a template of the set by its name in place of the directory's; "auto" leaves it. Errors:
// RLHF_E_INVALID lists the names. [one thread]
rlhf_status rlhf__chat_name(struct rlhf__chat *, const char *name, struct rlhf__error *err);

// The names that rlhf__chat_name takes, NULL-ended, "auto" first. [any]
const char *const *rlhf__chat_names(void);

// Append a conversation's text to *out, with the places where an assistant speaks; generate: the
// header of the assistant's next turn follows. Errors: RLHF_E_INVALID: no template is known (says
// how to name one), the template refuses the conversation. RLHF_E_NOMEM. [any]
rlhf_status rlhf__chat_render(const struct rlhf__chat *, const struct rlhf__messages *,
                              int generate, struct rlhf__turns *out, struct rlhf__error *err);

// Its name; NULL when none is known. [any]
const char *rlhf__chat_known(const struct rlhf__chat *);

// Why the directory's template is not recognized, as a clause; NULL when it is recognized or the
// directory lacks one. [any]
const char *rlhf__chat_unknown(const struct rlhf__chat *);

// Append what it is in words: "qwen2.5 (recognised from DIR/tokenizer_config.json)". Nothing when
// none is known. [any]
void rlhf__chat_describe(const struct rlhf__chat *, struct rlhf__buf *out);

// The Jinja of a template that was named, which other programs render as this one; NULL where it is
// the directory's own or none is known. [any]
const char *rlhf__chat_jinja(const struct rlhf__chat *);

// The text that ends an assistant's turn: a special token's. NULL when none is known. [any]
const char *rlhf__chat_turn_end(const struct rlhf__chat *);

#endif
