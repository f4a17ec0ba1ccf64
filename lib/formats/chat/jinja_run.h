// jinja_run.h: runs a chat template on a conversation, with bounds on steps, text and depth
// (jinja_value.h).
//
// A template can read its variables and nothing else: no files, no clock, no environment.
// `strftime_now` is undefined. Templates that test for it use their own fixed date instead; a
// template that calls it without a test is refused.
//
// It is not all of Jinja. An unknown construct is an error, not a guess. Internal to chat/.
#ifndef RLHF_HOST_CHAT_JINJA_RUN_H
#define RLHF_HOST_CHAT_JINJA_RUN_H

#include "chat/jinja_eval.h"
#include "chat/jinja_text.h"

#include <jansson.h>

// The variables of a template are the members of vars. If `messages` is not NULL, `messages` and
// add_generation_prompt are variables too, and so is `tools` unless it is NULL.
struct rlhf__jinja_input {
    const json_t *vars;                   // an object
    const json_t *tools;                  // a list
    const struct rlhf__message *messages; // [n]; NULL = only vars
    size_t n;
    int32_t generate, reserved;
};

// The rendered text and where its {% generation %} blocks are; or the reason why the template
// raised an error.
struct rlhf__jinja_result {
    struct rlhf__turns turns;
    char why[300];  // what raise_exception() said, or the operation that Jinja refuses
    int32_t raised; // 1: raised, so turns holds no complete text
    int32_t line;   // where it raised
};

// Run the template. *out is zeroed or was used before; release it with rlhf__turns_finish. Errors:
// RLHF_E_UNSUPPORTED ("line 3: the filter 'map' of a list"), RLHF_E_NOMEM. [any]
rlhf_status rlhf__jinja_run(const struct rlhf__jinja *, const struct rlhf__jinja_input *,
                            struct rlhf__jinja_result *out, struct rlhf__error *err);

// Call a macro with these arguments; returns its text. For jinja_eval.c. [any]
rlhf__value rlhf__jinja_macro(struct rlhf__jinja_machine *, const struct rlhf__jinja_node *macro,
                              const struct rlhf__jinja_args *args);

#endif
