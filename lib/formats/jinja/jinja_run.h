// jinja_run.h: runs a chat template on a conversation, with limits on steps, text and depth
// (jinja_value.h).
//
// A template can read its variables and nothing else: no files, no clock, no environment.
// `strftime_now` gives the date of the input. Without a date it is undefined. Many templates test
// for it and use a fixed date if it is undefined; a template that calls it without a test is
// refused.
//
// This file implements only a part of Jinja. An unknown construct is an error; the program never
// guesses its meaning.
#ifndef RLHF_FORMATS_JINJA_JINJA_RUN_H
#define RLHF_FORMATS_JINJA_JINJA_RUN_H

#include "jinja/jinja_eval.h"
#include "values/jinja_text.h"

#include <jansson.h>

// A template can read the members of `vars` as variables, and those of `row_vars`, which win. If
// `messages` is not NULL, it can also read `messages` and add_generation_prompt. If `tools` is not
// NULL, it can also read `tools`.
struct rlhf__jinja_input {
    const json_t *vars, *row_vars;        // objects; row_vars may be NULL
    const json_t *tools;                  // a list
    const struct rlhf__message *messages; // [n]; NULL = only vars
    size_t n;
    const char *date; // of strftime_now, as 2026-11-28; NULL or "" = undefined
    int32_t generate;
};

// The result: the rendered text and the positions of its {% generation %} blocks, or the reason why
// the template raised an error.
struct rlhf__jinja_result {
    struct rlhf__turns turns;
    char why[300];  // the text of raise_exception(), or the operation that Jinja refuses
    int32_t raised; // 1: an error was raised, so the text in `turns` is incomplete
    int32_t line;   // the line that raised it
};

// Run the template. Zero *out before the first run. Later runs may reuse *out. Release out->turns
// with rlhf__turns_finish. Errors: RLHF_E_UNSUPPORTED ("line 3: the filter 'map' of a list"),
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__jinja_run(const struct rlhf__jinja *, const struct rlhf__jinja_input *,
                            struct rlhf__jinja_result *out, struct rlhf__error *err);

// Call a macro with these arguments and return its text. Used by jinja_eval.c. [any]
rlhf__value rlhf__jinja_macro(struct rlhf__jinja_machine *, const struct rlhf__jinja_macro *macro,
                              const struct rlhf__jinja_args *args);

// Call a recursive loop from inside itself, with another list, and return its text. Used by
// jinja_eval.c. [any]
rlhf__value rlhf__jinja_recursion(struct rlhf__jinja_machine *, const struct rlhf__jinja_loop *loop,
                                  const struct rlhf__jinja_args *args);

#endif
