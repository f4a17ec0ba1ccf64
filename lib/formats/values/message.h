// message.h: the messages of a conversation, as the {"role", "content"} objects of data rows, and
// the tools that the conversation's row lists.
//
// It does not use templates; see chat.h.
#ifndef RLHF_FORMATS_VALUES_MESSAGE_H
#define RLHF_FORMATS_VALUES_MESSAGE_H

#include "base/buf.h"

#include <jansson.h>

enum rlhf__role {
    RLHF__ROLE_SYSTEM = 0,
    RLHF__ROLE_USER = 1,
    RLHF__ROLE_ASSISTANT = 2,
    RLHF__ROLE_TOOL = 3, // the result of a tool call
    RLHF__ROLE_DEVELOPER = 4,
    RLHF__N_ROLES = 5
};

// How the content of a message was given.
enum rlhf__content {
    RLHF__CONTENT_TEXT = 0,
    RLHF__CONTENT_PARTS =
        1, // a list of text parts: `parts` or, if that is NULL, one with `content`
    RLHF__CONTENT_ABSENT = 2, // no content, or null
    // a text in which ordinary tokens spell out special tokens (tokenizer/conversation.h)
    RLHF__CONTENT_SPELLED = 3
};

// A message. Everything but the roles is borrowed. The ptr of a missing text is NULL.
struct rlhf__message {
    rlhf_str content;
    const json_t *parts;    // the content as a list of {"type": "text", "text"}
    rlhf_str thoughts;      // the first of "reasoning_content", "thinking" and "reasoning"
    rlhf_str name, call_id; // "name"; "tool_call_id" of a tool message
    const json_t *calls;    // "tool_calls" of an assistant message; NULL = none
    const json_t *given;    // the row's object, with all its members; NULL = the program's message
    int32_t role;           // enum rlhf__role
    int32_t written;        // enum rlhf__content
};

// Zero-initialize; release with rlhf__messages_finish.
struct rlhf__messages {
    struct rlhf__message *item; // [n]
    size_t n, cap;
    const json_t *tools; // a list of objects, borrowed; NULL = none
    const json_t *vars;  // the row's variables of the template: an object, borrowed; NULL = none
};

// "system", "user", "assistant", "tool", "developer". [any]
const char *rlhf__role_name(int32_t role);

// The members in which a message may have the assistant's thoughts; NULL-terminated. [any]
const char *const *rlhf__thought_names(void);

// Append a message. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__messages_add(struct rlhf__messages *, int32_t role, rlhf_str content,
                               struct rlhf__error *err);
// Append a message of another list. [any]
rlhf_status rlhf__messages_put(struct rlhf__messages *, const struct rlhf__message *,
                               struct rlhf__error *err);

// Append the messages of a JSON list. `field` is the list's name, for error messages. The contents
// are borrowed from the list. Errors: RLHF_E_NOMEM, and RLHF_E_INVALID for:
//   a value that is not a list, or an empty list
//   an unknown role
//   content other than a string or a list of text parts; it may be null or missing in an
//   assistant's message with tool calls or thoughts
//   thoughts or tool calls in a message that is not an assistant's
//   a tool call without a name, or whose arguments are neither an object nor a string
//   an unsupported member that would have to be rendered (function_call)
// A member that is null, "", [] or {} is never a reason to refuse a message.
// [any]
rlhf_status rlhf__messages_read(struct rlhf__messages *, const json_t *list, const char *field,
                                struct rlhf__error *err);

// Refuse a row with messages if it has fields that we do not support (functions, documents), or if
// its chat_template_kwargs is not an object. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__messages_check_row(const json_t *row, struct rlhf__error *err);

// Returns the template variables of a row, its member chat_template_kwargs. Borrowed; NULL = none.
// [any]
const json_t *rlhf__messages_vars(const json_t *row);

// Read the field "tools" of a row: a list of objects, or the JSON text of such a list. (Some
// dataset formats cannot store objects with different members, so they store text.) *tools is a new
// reference, or NULL if the row has no tools. Errors: RLHF_E_INVALID, RLHF_E_NOMEM. [any]
rlhf_status rlhf__messages_tools(const json_t *row, json_t **tools, struct rlhf__error *err);

// Returns the messages of a row (`list`) with its tools and variables (each may be NULL) in the
// text form in which a dataset stores them, or NULL if memory runs out. rlhf__messages_unpack reads
// this text. The caller frees it with free(). [any]
char *rlhf__messages_pack(const json_t *list, const json_t *tools, const json_t *vars);

// Read a text that rlhf__messages_pack made. *held is a new reference; everything in *out is
// borrowed from it. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__messages_unpack(rlhf_str packed, json_t **held, struct rlhf__messages *out,
                                  struct rlhf__error *err);

// Refuse messages that are not a prompt. A prompt has a message from the user, and its last message
// is from the user or a tool. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__messages_check_prompt(const struct rlhf__messages *, const char *field,
                                        struct rlhf__error *err);

// Append the content of a message; the texts of parts stand one after the other. [any]
void rlhf__message_text(const struct rlhf__message *, struct rlhf__buf *out);

// Append the contents of the messages, separated by empty lines. This is the text that users and
// rewards get. [any]
void rlhf__messages_text(const struct rlhf__messages *, struct rlhf__buf *out);

void rlhf__messages_clear(struct rlhf__messages *);
void rlhf__messages_finish(struct rlhf__messages *);

// ---- a conversation as one text ----

// One turn of the assistant: bytes [from, to) of the text, including the token that ends the turn.
// If the template marks turns itself, this range may be a little longer than the turn. `end` is the
// position after the token that ends the turn.
struct rlhf__turn {
    size_t from, to, end;
};

// Zero-initialize; release with rlhf__turns_finish.
struct rlhf__turns {
    struct rlhf__buf text;
    struct rlhf__turn *item; // [n] in order
    size_t n, cap;
};

// Append a turn. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__turns_add(struct rlhf__turns *, size_t from, size_t to, struct rlhf__error *err);
void rlhf__turns_clear(struct rlhf__turns *);
void rlhf__turns_finish(struct rlhf__turns *);

#endif
