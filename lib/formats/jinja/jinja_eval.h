// jinja_eval.h: evaluates the expressions of a chat template, its variables and its calls.
//
// It does not run statements (jinja_run.c does).
#ifndef RLHF_FORMATS_JINJA_JINJA_EVAL_H
#define RLHF_FORMATS_JINJA_JINJA_EVAL_H

#include "jinja/jinja_parse.h"
#include "values/jinja_args.h"
#include "values/message.h"

// A variable of an open block. The variables of inner blocks come after those of outer blocks.
struct rlhf__jinja_local {
    rlhf__value value;
    int32_t symbol;
};

// The state of a running template.
struct rlhf__jinja_machine {
    const struct rlhf__jinja *j;
    struct rlhf__jinja_work w;
    rlhf__value *global;             // [j->n_symbols]
    struct rlhf__jinja_local *local; // [n_local]
    size_t n_local, cap_local;
    size_t frame; // the first visible local; earlier locals belong to the code that called a macro
    size_t scope; // the first local of the innermost block
    int32_t blocks; // number of open blocks; 0: variables are global
    int32_t levels;
    int32_t leave;          // enum rlhf__jinja_leave
    int32_t captured;       // 1: the text becomes a value instead of output
    rlhf__value block_text; // the text that the filters of a block read
    struct rlhf__buf *out;  // the text is appended here
    size_t held;            // total size of the texts that were set aside while `out` is written
    struct rlhf__turns *turns;
    const char *date; // of strftime_now; NULL = undefined
};

// The state that is restored when a block closes.
struct rlhf__jinja_scope {
    size_t n_local, frame, scope;
};

// The functions below are all [any].
void rlhf__jinja_open_scope(struct rlhf__jinja_machine *, struct rlhf__jinja_scope *);
void rlhf__jinja_close_scope(struct rlhf__jinja_machine *, const struct rlhf__jinja_scope *);
void rlhf__jinja_set(struct rlhf__jinja_machine *, int32_t symbol, rlhf__value v);
// Add a variable to the innermost block, even if the block has one of the same name.
void rlhf__jinja_push(struct rlhf__jinja_machine *, struct rlhf__jinja_local);
rlhf__value rlhf__jinja_look_up(struct rlhf__jinja_machine *, int32_t symbol);

// Evaluate a call with one more argument, caller=..., unless `caller` is undefined. [any]
rlhf__value rlhf__jinja_call(struct rlhf__jinja_machine *, const struct rlhf__jinja_node *call,
                             rlhf__value caller);

// Returns the value of a node, or undefined after a failure. [any]
rlhf__value rlhf__jinja_eval(struct rlhf__jinja_machine *, int32_t node);

// Count the evaluation of node n. Returns 0 if rendering must stop. [any]
int rlhf__jinja_spend(struct rlhf__jinja_machine *, const struct rlhf__jinja_node *n);

#endif
