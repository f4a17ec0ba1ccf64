// jinja_eval.h: the expressions of a chat template computed, and the variables that they read.
//
// What it is not: statements, which are jinja_run.c's; internal to chat/.
#ifndef RLHF_HOST_CHAT_JINJA_EVAL_H
#define RLHF_HOST_CHAT_JINJA_EVAL_H

#include "chat/jinja_tree.h"
#include "chat/jinja_value.h"

// A member of the objects that namespace() gives and nobody else has: only theirs can be set.
#define RLHF__JINJA_NAMESPACE " namespace"

struct rlhf__jinja_evaluator {
    const struct rlhf__jinja *j;
    struct rlhf__jinja_work w;
    json_t *scopes; // objects, the innermost last
    int32_t depth, reserved;
};

// All of them [any].
const struct rlhf__jinja_node *rlhf__jinja_node_at(const struct rlhf__jinja_evaluator *, int32_t i);
const char *rlhf__jinja_name_of(const struct rlhf__jinja_node *n);

// The variable of the innermost scope that has it: a new reference, NULL = undefined.
json_t *rlhf__jinja_look_up(const struct rlhf__jinja_evaluator *, const char *name);
json_t *rlhf__jinja_inner(const struct rlhf__jinja_evaluator *); // the innermost scope, borrowed
// Takes v over; an undefined one hides what is outside no more than Jinja's does: it is left out.
void rlhf__jinja_set(json_t *scope, const char *name, json_t *v);
void rlhf__jinja_open_scope(struct rlhf__jinja_evaluator *);
void rlhf__jinja_close_scope(struct rlhf__jinja_evaluator *);

// Counts a step of node n; 0 when nothing more may be done.
int rlhf__jinja_spend(struct rlhf__jinja_evaluator *, const struct rlhf__jinja_node *n);
// The value of a node, a new reference. NULL: undefined, or w.state says why not.
json_t *rlhf__jinja_eval(struct rlhf__jinja_evaluator *, int32_t node);

#endif
