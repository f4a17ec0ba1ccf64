// message.h: the messages of a conversation, {"role", "content"} objects, as rows have them.
//
// What it is not: it knows no template; see chat.h.
#ifndef RLHF_HOST_CHAT_MESSAGE_H
#define RLHF_HOST_CHAT_MESSAGE_H

#include "base/buf.h"

#include <jansson.h>

enum rlhf__role {
    RLHF__ROLE_SYSTEM = 0,
    RLHF__ROLE_USER = 1,
    RLHF__ROLE_ASSISTANT = 2,
    RLHF__N_ROLES = 3
};

struct rlhf__message {
    rlhf_str content;  // borrowed
    rlhf_str thoughts; // the same, of its "reasoning_content"; ptr NULL = it has none
    int32_t role;      // enum rlhf__role
    int32_t reserved;
};

// Zero-initialise; release with rlhf__messages_finish.
struct rlhf__messages {
    struct rlhf__message *item; // [n]
    size_t n, cap;
};

// "system", "user", "assistant". [any]
const char *rlhf__role_name(int32_t role);

// Append a message. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__messages_add(struct rlhf__messages *, int32_t role, rlhf_str content,
                               struct rlhf__error *err);
// The same as another list has it. [any]
rlhf_status rlhf__messages_put(struct rlhf__messages *, const struct rlhf__message *,
                               struct rlhf__error *err);

// Append the messages of a JSON list; field is its name, for messages. Contents are borrowed from
// it. Errors: RLHF_E_INVALID: no list, an empty one, an unknown role (tools have none here), a
// content that is no string, thoughts (reasoning_content) of others than an assistant, a member
// that would have to be rendered and is by none (tool_calls, ...). [any]
rlhf_status rlhf__messages_read(struct rlhf__messages *, const json_t *list, const char *field,
                                struct rlhf__error *err);

// Refuse what a row with messages asks for beside them and nobody does: tools, functions,
// documents, chat_template_kwargs. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__messages_check_row(const json_t *row, struct rlhf__error *err);

// Refuse messages that are no prompt: the last one has to be a user's. Errors: RLHF_E_INVALID.
// [any]
rlhf_status rlhf__messages_check_prompt(const struct rlhf__messages *, const char *field,
                                        struct rlhf__error *err);

// Append the contents with an empty line between two: the text that is shown and that rewards see.
// [any]
void rlhf__messages_text(const struct rlhf__messages *, struct rlhf__buf *out);

void rlhf__messages_clear(struct rlhf__messages *);
void rlhf__messages_finish(struct rlhf__messages *);

// ---- a conversation as one text ----

// Bytes [from, to) of the text: what an assistant says, with what ends its turn and, where the
// model's own template marks it so, a little more. end: behind the token that ends the turn.
struct rlhf__turn {
    size_t from, to, end;
};

// Zero-initialise; release with rlhf__turns_finish.
struct rlhf__turns {
    struct rlhf__buf text;
    struct rlhf__turn *item; // [n] in order
    size_t n, cap;
};

// Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__turns_add(struct rlhf__turns *, size_t from, size_t to, struct rlhf__error *err);
void rlhf__turns_clear(struct rlhf__turns *);
void rlhf__turns_finish(struct rlhf__turns *);

#endif
