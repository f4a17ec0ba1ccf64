// jinja_run.h: a chat template run on a conversation, with bounds on steps, text and depth.
//
// It reaches its variables and nothing else: no files, no clock, no environment. A template that
// asks for today's date (strftime_now) finds no such function and says what it says without.
//
// What it is not: all of Jinja. A construct that is not known is an error, not a guess; internal to
// chat/.
#ifndef RLHF_HOST_CHAT_JINJA_RUN_H
#define RLHF_HOST_CHAT_JINJA_RUN_H

#include "chat/jinja_parse.h"
#include "chat/message.h"

// What became of it: its text, with the parts that stand in {% generation %}; or it raised.
struct rlhf__jinja_result {
    struct rlhf__turns turns;
    int32_t raised; // 1: raise_exception(), or an operation that Jinja refuses
    int32_t reserved;
};

// vars: an object of the variables. *out zeroed or used before; release with rlhf__turns_finish.
// Errors: RLHF_E_UNSUPPORTED ("line 3: the filter 'map' of a list"), RLHF_E_NOMEM. [any]
rlhf_status rlhf__jinja_run(const struct rlhf__jinja *, const json_t *vars,
                            struct rlhf__jinja_result *out, struct rlhf__error *err);

#endif
