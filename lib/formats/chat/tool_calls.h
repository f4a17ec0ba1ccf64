// tool_calls.h: finds the tool calls in a turn of the policy.
//
// The turn is the text of the sampled ids, including special tokens but without the token that
// ended the turn. Calls inside <think> blocks are not executed, because they are only thoughts. The
// text of a call may itself have think marks; there they mean nothing. A
// policy may write marks that only the environment should write, such as those of a tool's result
// or of another speaker's turn. They stay part of the policy's text, but they are counted.
//
// This file does not execute calls. It does not write them either: chat templates do.
#ifndef RLHF_FORMATS_CHAT_TOOL_CALLS_H
#define RLHF_FORMATS_CHAT_TOOL_CALLS_H

#include "base/buf.h"
#include "chat/tool_form.h"

#include <jansson.h>

enum {
    RLHF__TOOL_CALLS_MAX = 16,           // calls in a turn
    RLHF__TOOL_ARGUMENTS_MAX = 64 << 10, // bytes of a call's arguments
    RLHF__TOOL_DEPTH_MAX = 64            // nesting of a call's arguments
};

enum rlhf__call_fault {
    RLHF__CALL_GOOD = 0,
    RLHF__CALL_MALFORMED,  // not in this form, too long or too deep, or beyond the number of calls
                           // allowed
    RLHF__CALL_UNKNOWN,    // no tool has this name
    RLHF__CALL_INCOMPLETE, // a required argument is missing
    RLHF__CALL_NOT_RUN,    // the call is valid, but another call of the turn is not
    RLHF__N_CALL_FAULTS
};

struct rlhf__called {
    json_t *name;      // a string; "" if malformed
    json_t *arguments; // an object
    json_t *id;        // a string; NULL = none
    int32_t fault;     // enum rlhf__call_fault
};

// Zero-initialize; release with rlhf__tool_calls_finish.
struct rlhf__tool_calls {
    struct rlhf__called item[RLHF__TOOL_CALLS_MAX + 1]; // [n] in the order of the turn
    size_t n;
    size_t first;   // with calls: offset in the turn at which the first one's mark begins
    int32_t faults; // number of invalid calls; if there are any, the valid calls of the turn are
                    // NOT_RUN
    int32_t forged; // number of marks that only the environment or the template should write
};

// Find the calls of a turn. `tools` is the list of tools that the row or the environment declares.
// Names and required arguments are checked against this list, unless it is NULL. With
// RLHF__TOOL_FORM_NONE, finds no calls and only counts out->forged. Replaces the contents of *out.
// Errors: RLHF_E_NOMEM, RLHF_E_INVALID (no such form). [any]
rlhf_status rlhf__tool_calls_read(int32_t form, rlhf_str turn, const json_t *tools,
                                  struct rlhf__tool_calls *out, struct rlhf__error *err);

void rlhf__tool_calls_finish(struct rlhf__tool_calls *); // [any]

// The answer that the policy gets to a call with this fault: a JSON object, {"error": "..."}. [any]
const char *rlhf__call_fault_answer(int32_t fault);

// Returns the calls in the form of chat templates and data rows: a list of {"type": "function",
// "function": {"name", "arguments"}}, with the member "id" if the call has one. The list is a new
// reference, or NULL if memory runs out. [any]
json_t *rlhf__tool_calls_json(const struct rlhf__tool_calls *);

#endif
