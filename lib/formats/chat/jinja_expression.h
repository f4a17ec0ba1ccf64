// jinja_expression.h: the expressions of a chat template as nodes, and the parser that they share
// with the statements: a place in the tokens, and the nodes that are made on the way.
//
// What it is not: statements, which jinja_parse.c reads; internal to chat/.
#ifndef RLHF_HOST_CHAT_JINJA_EXPRESSION_H
#define RLHF_HOST_CHAT_JINJA_EXPRESSION_H

#include "chat/jinja_lex.h"
#include "chat/jinja_parse.h"

struct rlhf__jinja_parser {
    struct rlhf__jinja *out;
    struct rlhf__jinja_tokens tokens;
    size_t at;
    int32_t depth, reserved;
    struct rlhf__error *err;
};

// Fails with the line that the parser is at; fmt takes one argument or more.
#define RLHF__JINJA_UNKNOWN_HERE(p, fmt, ...)                                                      \
    (rlhf__fail((p)->err, RLHF_E_UNSUPPORTED, "line %d: " fmt, rlhf__jinja_look(p)->line,          \
                __VA_ARGS__),                                                                      \
     RLHF_E_UNSUPPORTED)

// All of them [any].
const struct rlhf__jinja_token *rlhf__jinja_look(const struct rlhf__jinja_parser *p);
// The text of a NAME token, empty for others.
rlhf_str rlhf__jinja_word(const struct rlhf__jinja_token *t);
// 1 when this word comes; take: when this operator or word comes, and step over it.
int rlhf__jinja_is_word(const struct rlhf__jinja_parser *p, const char *name);
int rlhf__jinja_take_op(struct rlhf__jinja_parser *p, const char *op);
int rlhf__jinja_take_word(struct rlhf__jinja_parser *p, const char *name);
// A node with these operands; *to = its place.
rlhf_status rlhf__jinja_node(struct rlhf__jinja_parser *p, struct rlhf__jinja_node node,
                             int32_t *to);
// The name that comes, as a node of this kind with its symbol; fails when none comes.
rlhf_status rlhf__jinja_name(struct rlhf__jinja_parser *p, int32_t kind, int32_t *to);
// Put node at the end of the list that *first and *last are of.
void rlhf__jinja_chain(const struct rlhf__jinja_parser *p, int32_t *first, int32_t *last,
                       int32_t node);
// One level down; the caller counts p->depth back.
rlhf_status rlhf__jinja_deeper(struct rlhf__jinja_parser *p);

// Step over this operator; fail when another token comes.
rlhf_status rlhf__jinja_want_op(struct rlhf__jinja_parser *p, const char *op);

// ---- expressions ----

// The expression that comes, *out = its node. Errors: RLHF_E_UNSUPPORTED, RLHF_E_NOMEM. [any]
rlhf_status rlhf__jinja_expression(struct rlhf__jinja_parser *p, int32_t *out);
// The same, or several with commas between as a tuple.
rlhf_status rlhf__jinja_tuple(struct rlhf__jinja_parser *p, int32_t *out);
// An expression without a condition: "a if b" ends in front of the "if"; is_or 0: in front of an
// "or".
rlhf_status rlhf__jinja_logic(struct rlhf__jinja_parser *p, int is_or, int32_t *out);

#endif
