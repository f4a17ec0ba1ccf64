// tool_calls.h: finds the tool calls in a turn of the policy.
//
// The turn is the text of the sampled ids, special tokens included, without the token that ended
// it. Calls inside <think> blocks are thoughts and not calls. What a turn says in the place of the
// environment (a result, another speaker's turn) is never read as such: it stays the policy's own
// text, and is only counted.
//
// It does not run calls, and writes none: chat templates do.
#ifndef RLHF_HOST_CHAT_TOOL_CALLS_H
#define RLHF_HOST_CHAT_TOOL_CALLS_H

#include "base/buf.h"
#include "chat/tool_form.h"

#include <jansson.h>

enum {
    RLHF__TOOL_CALLS_MAX = 16,           // of a turn
    RLHF__TOOL_ARGUMENTS_MAX = 64 << 10, // bytes of a call
    RLHF__TOOL_DEPTH_MAX = 64            // of its arguments
};

enum rlhf__call_fault {
    RLHF__CALL_GOOD = 0,
    RLHF__CALL_MALFORMED,  // not of the form, too long or too deep, or one more than are allowed
    RLHF__CALL_UNKNOWN,    // no tool has this name
    RLHF__CALL_INCOMPLETE, // a required argument is missing
    RLHF__CALL_NOT_RUN,    // a good call beside one of the above
    RLHF__N_CALL_FAULTS
};

struct rlhf__called {
    json_t *name;      // a string; "" if malformed
    json_t *arguments; // an object
    json_t *id;        // a string; NULL = none
    int32_t fault;     // enum rlhf__call_fault
    int32_t reserved;
};

// Zero-initialize; release with rlhf__tool_calls_finish.
struct rlhf__tool_calls {
    struct rlhf__called item[RLHF__TOOL_CALLS_MAX + 1]; // [n] in the order of the turn
    size_t n;
    int32_t faults; // invalid calls; the valid calls of the same turn are NOT_RUN
    int32_t forged; // marks with which only the environment or the template begins a message
};

// Find the calls of a turn. tools is the list that the row or the environment declares, to check
// names and required arguments; NULL = not checked. Replaces what *out holds. Errors: RLHF_E_NOMEM,
// RLHF_E_INVALID (no such form). [any]
rlhf_status rlhf__tool_calls_read(int32_t form, rlhf_str turn, const json_t *tools,
                                  struct rlhf__tool_calls *out, struct rlhf__error *err);

void rlhf__tool_calls_finish(struct rlhf__tool_calls *); // [any]

// What the policy is told about a call with this fault: a JSON object, {"error": "..."}. [any]
const char *rlhf__call_fault_answer(int32_t fault);

// The calls as chat templates and data rows have them: a list of {"type": "function", "function":
// {"name", "arguments"}}, with the member "id" where a call has one. New reference; NULL when out
// of memory. [any]
json_t *rlhf__tool_calls_json(const struct rlhf__tool_calls *);

#endif
