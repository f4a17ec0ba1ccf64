// jinja_parse.h: parses a chat template into a tree of nodes. It knows the statements and
// expressions of Jinja that chat templates use. Unknown tags are errors here. Unknown filters,
// tests and functions are errors only if the template evaluates them (jinja_run.h), because most
// templates contain branches for tools that are never executed.
//
// It computes nothing.
#ifndef RLHF_FORMATS_JINJA_JINJA_PARSE_H
#define RLHF_FORMATS_JINJA_JINJA_PARSE_H

#include "values/jinja_value.h"

// The operands a, b, c and d of a node are indices of other nodes. Index 0 means that the operand
// is missing. The member `next` links the nodes of a list.
enum rlhf__jinja_node_kind {
    RLHF__JN_NONE = 0,
    // statements
    RLHF__JN_TEXT,  // text
    RLHF__JN_PRINT, // a
    RLHF__JN_IF,    // a: condition, b: body, c: else
    RLHF__JN_FOR,   // e: target, a: iterable, b: body, c: else, d: condition; which: 1 = recursive
    RLHF__JN_SET,   // e: target, a
    RLHF__JN_SET_BLOCK,  // e: target, b: body, a: a filter of the block's text; which: 1 = new name
    RLHF__JN_SET_ATTR,   // b: the name as a NAME, text: attribute, a
    RLHF__JN_MACRO,      // which: symbol, list e of PARAM, b: body; uses: enum rlhf__jinja_uses
    RLHF__JN_CALL_BLOCK, // a: a CALL, list e of PARAM, b: body; uses
    RLHF__JN_FILTERED,   // a: a filter of the block's text, b: body
    RLHF__JN_WITH,       // list e of KEY: target a = b; b: body
    RLHF__JN_GENERATION, // b: body
    RLHF__JN_BREAK,
    RLHF__JN_CONTINUE,
    // expressions
    RLHF__JN_CONST,       // value
    RLHF__JN_NAME,        // which: symbol, text
    RLHF__JN_ATTR,        // a . text
    RLHF__JN_ITEM,        // a [ b ]
    RLHF__JN_SLICE,       // a [ b : c : d ]
    RLHF__JN_CALL,        // a ( list b )
    RLHF__JN_FILTER,      // a | text ( list b ); which: 0 = unknown
    RLHF__JN_TEST,        // a is text ( list b ); which: 0 = unknown
    RLHF__JN_KEY,         // text = a, in a list of arguments; a : b in a dict
    RLHF__JN_SPREAD,      // *a, in a list of arguments
    RLHF__JN_SPREAD_KEYS, // **a, in a list of arguments
    RLHF__JN_BLOCK_TEXT,  // the text of the block to which a filter belongs
    RLHF__JN_PARAM,       // which: symbol, text, a: default
    RLHF__JN_NOT,
    RLHF__JN_MINUS,
    RLHF__JN_PLUS,
    RLHF__JN_AND,
    RLHF__JN_OR,
    RLHF__JN_COND,   // b if a else c
    RLHF__JN_BINARY, // a which b: enum rlhf__jinja_op; c: the next BINARY of a chain, as in 1 < 2 <
                     // 3
    RLHF__JN_LIST,   // list a
    RLHF__JN_TUPLE,  // list a; of NAME and TUPLE if it is a target
    RLHF__JN_DICT    // list a of KEY
};

// The variables that a macro has if its body reads them.
enum rlhf__jinja_uses {
    RLHF__JINJA_USES_VARARGS = 1,
    RLHF__JINJA_USES_KWARGS = 2,
    RLHF__JINJA_USES_CALLER = 4
};

struct rlhf__jinja_node {
    int32_t kind, line, a, b, c, d, e, next, which, uses;
    rlhf_str text;
    rlhf__value value;
};

struct rlhf__jinja {
    struct rlhf__jinja_node *node; // [n]; node 0 is unused
    size_t n, cap;
    rlhf_str *symbol; // [n_symbols]: names of variables
    int32_t n_symbols, cap_symbols;
    int32_t body;                   // list of statements
    int32_t marks;                  // 1: the template has {% generation %} blocks
    int32_t loop;                   // symbol of `loop`; -1 = `loop` is not used
    struct rlhf__jinja_work memory; // owns the template's texts
};

void rlhf__jinja_finish(struct rlhf__jinja *); // [any]

// Parse a template. *out must be zero-initialized; release it with rlhf__jinja_finish, even after a
// failure. Errors: RLHF_E_UNSUPPORTED ("line 3: the tag 'include' is not known"), RLHF_E_NOMEM.
// [any]
rlhf_status rlhf__jinja_parse(const char *text, size_t n, struct rlhf__jinja *out,
                              struct rlhf__error *err);

// The symbol of a name; -1 if the template does not contain the name. [any]
int32_t rlhf__jinja_symbol(const struct rlhf__jinja *, const char *name);

#endif
