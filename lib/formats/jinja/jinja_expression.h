// jinja_expression.h: parses the expressions of a chat template into nodes. It also declares the
// parser that expressions and statements share. The parser has the tokens, the position of the next
// token, and the nodes made so far.
//
// It does not parse statements (jinja_parse.c does).
#ifndef RLHF_FORMATS_JINJA_JINJA_EXPRESSION_H
#define RLHF_FORMATS_JINJA_JINJA_EXPRESSION_H

#include "jinja/jinja_lex.h"
#include "jinja/jinja_parse.h"

struct rlhf__jinja_parser {
    struct rlhf__jinja *out;
    struct rlhf__jinja_tokens tokens;
    size_t at;
    int32_t depth;
    int32_t uses;  // enum rlhf__jinja_uses: the names read so far in the innermost macro
    int32_t loops; // number of loops around the next statement
    struct rlhf__error *err;
};

// Fail with the parser's current line in the message. This macro needs at least one argument after
// `fmt`.
#define RLHF__JINJA_UNKNOWN_HERE(p, fmt, ...)                                                      \
    (rlhf__fail((p)->err, RLHF_E_UNSUPPORTED, "line %d: " fmt, rlhf__jinja_look(p)->line,          \
                __VA_ARGS__),                                                                      \
     RLHF_E_UNSUPPORTED)

// The functions below are all [any].
const struct rlhf__jinja_token *rlhf__jinja_look(const struct rlhf__jinja_parser *p);
// The text of a NAME token; empty for other tokens.
rlhf_str rlhf__jinja_word(const struct rlhf__jinja_token *t);
// rlhf__jinja_is_word returns 1 if the next token is the word `name`. If the next token is the
// given operator or word, rlhf__jinja_take_op and _take_word consume it and return 1. Otherwise all
// three return 0.
int rlhf__jinja_is_word(const struct rlhf__jinja_parser *p, const char *name);
int rlhf__jinja_take_op(struct rlhf__jinja_parser *p, const char *op);
int rlhf__jinja_take_word(struct rlhf__jinja_parser *p, const char *name);
// Add a node and set *to to its index.
rlhf_status rlhf__jinja_node(struct rlhf__jinja_parser *p, struct rlhf__jinja_node node,
                             int32_t *to);
// Consume a name, and add a node of this kind with the name's symbol. Fails if the next token is
// not a name.
rlhf_status rlhf__jinja_name(struct rlhf__jinja_parser *p, int32_t kind, int32_t *to);
// Append `node` to the list whose first node is *first and whose last node is *last.
void rlhf__jinja_chain(const struct rlhf__jinja_parser *p, int32_t *first, int32_t *last,
                       int32_t node);
// Count one more level of nesting. Fails if there are too many levels. The caller decrements
// p->depth afterwards.
rlhf_status rlhf__jinja_deeper(struct rlhf__jinja_parser *p);

// Consume this operator; fails on any other token.
rlhf_status rlhf__jinja_want_op(struct rlhf__jinja_parser *p, const char *op);

// ---- expressions ----

// Parse an expression and set *out to its node. Errors: RLHF_E_UNSUPPORTED, RLHF_E_NOMEM. [any]
rlhf_status rlhf__jinja_expression(struct rlhf__jinja_parser *p, int32_t *out);
// Like rlhf__jinja_expression, but several expressions separated by commas become a tuple. If
// `conditions` is 0, stop before the "if" of "a if b".
rlhf_status rlhf__jinja_tuple(struct rlhf__jinja_parser *p, int conditions, int32_t *out);
// Parse the arguments of a call after its "(".
rlhf_status rlhf__jinja_arguments(struct rlhf__jinja_parser *p, int32_t *first);
// After "|" or "is": parse the name of a filter (kind RLHF__JN_FILTER) or a test, and its
// arguments. The node takes *out as its operand, and becomes *out.
rlhf_status rlhf__jinja_named(struct rlhf__jinja_parser *p, int32_t kind, int32_t *out);

#endif
