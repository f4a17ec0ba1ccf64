// chat_state.h: the state of a model directory's chat template. Internal to chat/.
#ifndef RLHF_FORMATS_CHAT_CHAT_STATE_H
#define RLHF_FORMATS_CHAT_CHAT_STATE_H

#include "chat/chat.h"
#include "chat/template.h"

enum { RLHF__CHAT_TEMPLATE_MAX = 1 << 18 }; // bytes

struct rlhf__chat {
    struct rlhf__template template; // usable if `known` is set
    // The entry "tool_use" in a list of templates. As in transformers, it is for rows with tools.
    struct rlhf__template *for_tools; // NULL = the entry is missing or cannot be parsed
    char tools_why[1000];             // why the entry is unusable; "" if it is missing or usable
    json_t *vars;                     // variables that templates can read: special tokens, tools
    json_t *more;                     // for a named template: tokens that only an id names
    json_t *chosen;                   // variables that the user chose; NULL = none
    struct rlhf__template_special special;
    char date[12];
    char *dir;
    char *file;     // name or file of a template that was parsed; NULL = none
    char *text;     // its text
    char *out;      // its text with defaults for variables; NULL = it needs none
    int32_t known;  // 1: it is usable
    int32_t named;  // 1: it was chosen by name
    char why[1200]; // why the template cannot be used
    int32_t has;    // 1: the directory has a template, usable or not
};

rlhf_status rlhf__chat_no_memory(struct rlhf__error *err); // returns RLHF_E_NOMEM

// Parse a template with the variables and the date of the state. Errors: RLHF_E_UNSUPPORTED,
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__chat_parse(const struct rlhf__chat *, const char *text, size_t n,
                             struct rlhf__template *out, struct rlhf__error *err);

// Learn about the templates, and set `known`, `why` and `tools_why`. A template that was named
// stays in use, whatever the result. Errors: RLHF_E_NOMEM. [one thread]
rlhf_status rlhf__chat_learn(struct rlhf__chat *, struct rlhf__error *err);

// Compute `out` again. Errors: RLHF_E_NOMEM. [one thread]
rlhf_status rlhf__chat_put_out(struct rlhf__chat *, struct rlhf__error *err);

// Drop the entry "tool_use". [one thread]
void rlhf__chat_drop_for_tools(struct rlhf__chat *);

#endif
