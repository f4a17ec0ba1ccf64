// style.h: the fixed set of chat templates: how each writes a conversation, and what may differ
// from model to model within one.
//
// What it is not: it reads no files and recognises nothing (probe.h); internal to chat/.
#ifndef RLHF_HOST_CHAT_STYLE_H
#define RLHF_HOST_CHAT_STYLE_H

#include "chat/message.h"

enum rlhf__style_flag {
    RLHF__STYLE_TRIM = 1,      // contents lose white space at their ends
    RLHF__STYLE_BOS = 2,       // the text begins with the bos token
    RLHF__STYLE_EOS = 4,       // an assistant's turn ends with the eos token
    RLHF__STYLE_ALTERNATE = 8, // behind a system's, user's and assistant's turns alternate
    RLHF__STYLE_NO_SYSTEM = 16,
    RLHF__STYLE_SYSTEM_IN_USER = 32, // the system's content begins the first user's
    RLHF__STYLE_THINK = 64,          // thoughts go from all answers but those to the last question
    RLHF__STYLE_THINK_ALL = 128,     // every answer has a block of thoughts
    RLHF__STYLE_LLAMA2 = 256,        // [INST], not turns with headers
    RLHF__STYLE_CONTENTS = 512,      // no headers at all
    RLHF__STYLE_REASONING = 1024     // with THINK: thoughts may be a member of the message
};

// One of the set. A turn is open, the role's name, close, content, end, after.
struct rlhf__form {
    const char *name;
    const char *open, *close, *end, *after;
    const char *model;    // what it calls an assistant
    const char *standard; // what stands where no system's turn does; NULL = nothing
    uint32_t flags, reserved;
};

// A form as a model has it.
struct rlhf__style {
    const struct rlhf__form *form;
    uint32_t flags;        // enum rlhf__style_flag
    int32_t from, to;      // what a {% generation %} block adds to a turn at its ends, in bytes
    const char *bos, *eos; // NULL = there are none
    char *standard;        // owned; content of a system's turn where there is none; NULL = none
    char *preface;         // owned; what stands before a system's content; NULL = nothing
};

// Form i of the set; NULL behind the last. [any]
const struct rlhf__form *rlhf__form_at(size_t i);

// By its name; NULL = none. [any]
const struct rlhf__form *rlhf__form_find(const char *name);

// A form with nothing of a model's own. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__style_init(struct rlhf__style *, const struct rlhf__form *, const char *bos,
                             const char *eos, struct rlhf__error *err);
void rlhf__style_finish(struct rlhf__style *); // accepts a zeroed one

// Append a conversation of 1 message or more to *out; generate: an assistant speaks next. Errors:
// RLHF_E_INVALID: a system's turn, or an order of turns, that the template refuses; thoughts that
// it would not write; a token that the tokenizer lacks. RLHF_E_NOMEM. [any]
rlhf_status rlhf__style_render(const struct rlhf__style *, const struct rlhf__message *m, size_t n,
                               int generate, struct rlhf__turns *out, struct rlhf__error *err);

#endif
