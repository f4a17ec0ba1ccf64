// error.h: how host functions report failure: a status code and one finished sentence.
//
// A function that can fail has `struct rlhf__error *err` as its last parameter and returns an
// rlhf_status. The first failure sets the text. Callers may only put context in front of it, with
// rlhf__error_context.
#ifndef RLHF_CORE_BASE_ERROR_H
#define RLHF_CORE_BASE_ERROR_H

#include <rlhf/base.h>

struct rlhf__error {
    int32_t code;    // 0 = none, else an rlhf_status
    char text[2044]; // NUL-ended; longer text is cut
};

// Set `err`, which may be NULL, and return `code`, so that a caller can write `return
// rlhf__fail(err, RLHF_E_INVALID, ...)`. [any]
__attribute__((format(printf, 3, 4))) rlhf_status
rlhf__fail(struct rlhf__error *err, rlhf_status code, const char *fmt, ...);

// Like rlhf__fail, for a failed allocation. The value of the macro is a constant, so that static
// analyzers recognize a failure.
#define RLHF__NOMEM(err, ...) (rlhf__fail(err, RLHF_E_NOMEM, __VA_ARGS__), RLHF_E_NOMEM)

// Put "context: " in front of the text of `err`. Returns the code of `err`. [any]
__attribute__((format(printf, 2, 3))) rlhf_status rlhf__error_context(struct rlhf__error *err,
                                                                      const char *fmt, ...);

// Text of a status code, e.g. "out of memory". [any]
const char *rlhf__status_text(rlhf_status code);

// Exit status of the program for a failure: 2 for bad input, 1 for run-time failures. [any]
int rlhf__exit_status(rlhf_status code);

#endif
