// jinja_parse.h: a chat template as a tree of nodes, for the statements and expressions of Jinja
// that chat templates use. An unknown tag is refused here; an unknown filter, test or function is
// refused when the template runs into it (jinja_run.h), since most templates have branches for
// tools that are never entered.
//
// What it is not: it computes nothing; internal to chat/.
#ifndef RLHF_HOST_CHAT_JINJA_PARSE_H
#define RLHF_HOST_CHAT_JINJA_PARSE_H

#include "base/error.h"

#include <jansson.h>

// What the operands a, b, c, d of a node are: places of nodes, 0 = none. A list of nodes goes on by
// `next`.
enum rlhf__jinja_node_kind {
    RLHF__JN_NONE = 0,
    // statements
    RLHF__JN_TEXT,       // value
    RLHF__JN_PRINT,      // a
    RLHF__JN_IF,         // a: condition, b: body, c: else
    RLHF__JN_FOR,        // value: name (NULL: several), a: of what, b: body, c: else, d: only if
    RLHF__JN_SET,        // value: name, a
    RLHF__JN_SET_ATTR,   // b: the name as a NAME, value: attribute, a
    RLHF__JN_GENERATION, // b: body
    RLHF__JN_BREAK,
    RLHF__JN_CONTINUE,
    // expressions
    RLHF__JN_CONST,  // value
    RLHF__JN_NAME,   // value
    RLHF__JN_ATTR,   // a . value
    RLHF__JN_ITEM,   // a [ b ]
    RLHF__JN_SLICE,  // a [ b : c : d ]
    RLHF__JN_CALL,   // a ( list b )
    RLHF__JN_FILTER, // a | value ( list b )
    RLHF__JN_TEST,   // a is value ( list b )
    RLHF__JN_KEY,    // value = a, in a list of arguments; a : b in a dict
    RLHF__JN_NOT,
    RLHF__JN_MINUS,
    RLHF__JN_AND,
    RLHF__JN_OR,
    RLHF__JN_COND,   // b if a else c
    RLHF__JN_BINARY, // a op b
    RLHF__JN_LIST,   // list a
    RLHF__JN_DICT    // list a of KEY
};

struct rlhf__jinja_node {
    int32_t kind, line, a, b, c, d, next;
    char op[4];
    json_t *value; // owned
};

struct rlhf__jinja {
    struct rlhf__jinja_node *node; // [n]; 0 is none
    size_t n, cap;
    int32_t body, reserved; // list of statements
};

void rlhf__jinja_finish(struct rlhf__jinja *); // [any]

// Zero-initialise; release with rlhf__jinja_finish. Errors: RLHF_E_UNSUPPORTED ("line 3: the tag
// 'macro' is not known"), RLHF_E_NOMEM. [any]
rlhf_status rlhf__jinja_parse(const char *text, size_t n, struct rlhf__jinja *out,
                              struct rlhf__error *err);

#endif
