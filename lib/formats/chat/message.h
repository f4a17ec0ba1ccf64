// message.h: the messages of a conversation, {"role", "content"} objects as in data rows.
//
// It knows no template; see chat.h.
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
    rlhf_str thoughts; // its "reasoning_content", borrowed; ptr NULL if missing
    int32_t role;      // enum rlhf__role
    int32_t reserved;
};

// Zero-initialize; release with rlhf__messages_finish.
struct rlhf__messages {
    struct rlhf__message *item; // [n]
    size_t n, cap;
};

// "system", "user", "assistant". [any]
const char *rlhf__role_name(int32_t role);

// Append a message. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__messages_add(struct rlhf__messages *, int32_t role, rlhf_str content,
                               struct rlhf__error *err);
// Append a message of another list. [any]
rlhf_status rlhf__messages_put(struct rlhf__messages *, const struct rlhf__message *,
                               struct rlhf__error *err);

// Append the messages of a JSON list; field is the list's name, for error messages. The contents
// are borrowed from the list. Errors: RLHF_E_NOMEM, and RLHF_E_INVALID for:
//   anything but a list, and an empty list
//   an unknown role (a tool's counts as unknown)
//   content that is not a string
//   reasoning_content in a message of another role than assistant
//   an unsupported member that would have to be rendered (tool_calls, ...)
// [any]
rlhf_status rlhf__messages_read(struct rlhf__messages *, const json_t *list, const char *field,
                                struct rlhf__error *err);

// Refuse a row with messages if it has fields that we do not support: tools, functions, documents,
// chat_template_kwargs. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__messages_check_row(const json_t *row, struct rlhf__error *err);

// Refuse messages that are not a prompt: the last message must be the user's. Errors:
// RLHF_E_INVALID. [any]
rlhf_status rlhf__messages_check_prompt(const struct rlhf__messages *, const char *field,
                                        struct rlhf__error *err);

// Append the contents, separated by empty lines: the text that users and rewards see. [any]
void rlhf__messages_text(const struct rlhf__messages *, struct rlhf__buf *out);

void rlhf__messages_clear(struct rlhf__messages *);
void rlhf__messages_finish(struct rlhf__messages *);

// ---- a conversation as one text ----

// Bytes [from, to) of the text are an assistant's turn with its end token. If the template marks
// turns itself, the range may be a little longer than the turn. end is just after the end token.
struct rlhf__turn {
    size_t from, to, end;
};

// Zero-initialize; release with rlhf__turns_finish.
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
