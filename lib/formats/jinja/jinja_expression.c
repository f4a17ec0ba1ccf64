// jinja_expression.c: see jinja_expression.h. This is a recursive-descent parser. The precedences
// are Jinja's own, from the weakest to the strongest: conditional, or, and, not, comparisons, + and
// -, ~, * / // and %, **, filters and tests, signs, postfix operators.
#include "jinja/jinja_expression.h"

#include "jinja/jinja_filter.h"
#include "jinja/jinja_test.h"
#include "values/jinja_args.h"
#include "values/jinja_operator.h"

#include <stdlib.h>
#include <string.h>

// ---- the parser ----

enum { DEPTH_MAX = 48, NODES_MAX = 1 << 17, SYMBOLS_MAX = 1024 };

const struct rlhf__jinja_token *rlhf__jinja_look(const struct rlhf__jinja_parser *p) {
    return &p->tokens.item[p->at]; // the last one is END, which is never consumed
}

rlhf_str rlhf__jinja_word(const struct rlhf__jinja_token *t) {
    return t->kind == RLHF__JINJA_NAME ? t->value.s : (rlhf_str){"", 0};
}

// 1 when the next token is this operator.
static int is_op(const struct rlhf__jinja_parser *p, const char *op) {
    return rlhf__jinja_look(p)->kind == RLHF__JINJA_OP && strcmp(rlhf__jinja_look(p)->op, op) == 0;
}

int rlhf__jinja_is_word(const struct rlhf__jinja_parser *p, const char *name) {
    return rlhf__jinja_is(rlhf__jinja_word(rlhf__jinja_look(p)), name);
}

int rlhf__jinja_take_op(struct rlhf__jinja_parser *p, const char *op) {
    int yes = is_op(p, op);
    p->at += (size_t)yes;
    return yes;
}

int rlhf__jinja_take_word(struct rlhf__jinja_parser *p, const char *name) {
    int yes = rlhf__jinja_is_word(p, name);
    p->at += (size_t)yes;
    return yes;
}

rlhf_status rlhf__jinja_want_op(struct rlhf__jinja_parser *p, const char *op) {
    return rlhf__jinja_take_op(p, op) ? RLHF_OK
                                      : RLHF__JINJA_UNKNOWN_HERE(p, "'%s' is missing", op);
}

rlhf_status rlhf__jinja_node(struct rlhf__jinja_parser *p, struct rlhf__jinja_node node,
                             int32_t *to) {
    struct rlhf__jinja *j = p->out;
    if (j->n >= NODES_MAX) return RLHF__JINJA_UNKNOWN_HERE(p, "more than %d parts", NODES_MAX);
    if (j->n == j->cap) {
        size_t cap = j->cap ? 2 * j->cap : 256;
        struct rlhf__jinja_node *grown = realloc(j->node, cap * sizeof *grown);
        if (!grown) return RLHF__NOMEM(p->err, "out of memory for a chat template");
        j->node = grown;
        j->cap = cap;
    }
    node.line = rlhf__jinja_look(p)->line;
    j->node[j->n] = node;
    *to = (int32_t)j->n++;
    return RLHF_OK;
}

// Find or add the symbol of a name.
static rlhf_status symbol(struct rlhf__jinja_parser *p, rlhf_str name, int32_t *to) {
    struct rlhf__jinja *j = p->out;
    for (*to = 0; *to < j->n_symbols; ++*to)
        if (rlhf__jinja_same(j->symbol[*to], name)) return RLHF_OK;
    if (j->n_symbols == SYMBOLS_MAX)
        return RLHF__JINJA_UNKNOWN_HERE(p, "more than %d names", SYMBOLS_MAX);
    if (j->n_symbols == j->cap_symbols) {
        const int32_t cap = j->cap_symbols ? 2 * j->cap_symbols : 32;
        rlhf_str *grown = realloc(j->symbol, (size_t)cap * sizeof *grown);
        if (!grown) return RLHF__NOMEM(p->err, "out of memory for a chat template");
        j->symbol = grown;
        j->cap_symbols = cap;
    }
    j->symbol[j->n_symbols++] = name;
    return RLHF_OK;
}

rlhf_status rlhf__jinja_name(struct rlhf__jinja_parser *p, int32_t kind, int32_t *to) {
    struct rlhf__jinja_node n = {.kind = kind};
    if (rlhf__jinja_look(p)->kind != RLHF__JINJA_NAME)
        return RLHF__JINJA_UNKNOWN_HERE(p, "a name is %s", "missing");
    n.text = rlhf__jinja_look(p)->value.s;
    RLHF_TRY(symbol(p, n.text, &n.which));
    p->at++;
    return rlhf__jinja_node(p, n, to);
}

// Append `node` to the list whose first node is *first and whose last node is *last.
void rlhf__jinja_chain(const struct rlhf__jinja_parser *p, int32_t *first, int32_t *last,
                       int32_t node) {
    if (*last)
        p->out->node[*last].next = node;
    else
        *first = node;
    *last = node;
}

rlhf_status rlhf__jinja_deeper(struct rlhf__jinja_parser *p) {
    if (++p->depth > DEPTH_MAX)
        return RLHF__JINJA_UNKNOWN_HERE(p, "more than %d levels", DEPTH_MAX);
    return RLHF_OK;
}

// ---- expressions ----

// Parses expressions up to and including the token `end`. If `pairs` is 1, each item is "key:
// value".
static rlhf_status items(struct rlhf__jinja_parser *p, const char *end, int pairs, int32_t *first) {
    int32_t last = 0;
    *first = 0;
    while (!rlhf__jinja_take_op(p, end)) {
        int32_t item, value;
        RLHF_TRY(rlhf__jinja_expression(p, &item));
        if (pairs) {
            RLHF_TRY(rlhf__jinja_want_op(p, ":"));
            RLHF_TRY(rlhf__jinja_expression(p, &value));
            RLHF_TRY(rlhf__jinja_node(
                p, (struct rlhf__jinja_node){.kind = RLHF__JN_KEY, .a = item, .b = value}, &item));
        }
        rlhf__jinja_chain(p, first, &last, item);
        if (!is_op(p, end)) RLHF_TRY(rlhf__jinja_want_op(p, ","));
    }
    return RLHF_OK;
}

// Parses one argument. *stage is 0 after positional arguments, 1 after name=value, 2 after *list,
// and 3 after **object.
static rlhf_status argument(struct rlhf__jinja_parser *p, int *stage, int32_t *out) {
    const struct rlhf__jinja_token *name = rlhf__jinja_look(p);
    struct rlhf__jinja_node n = {.kind = RLHF__JN_NONE};
    int now = 0;
    if (name->kind == RLHF__JINJA_NAME && name[1].kind == RLHF__JINJA_OP &&
        strcmp(name[1].op, "=") == 0) {
        n = (struct rlhf__jinja_node){.kind = RLHF__JN_KEY, .text = name->value.s};
        p->at += 2;
        now = 1;
    } else if (rlhf__jinja_take_op(p, "**")) {
        n.kind = RLHF__JN_SPREAD_KEYS;
        now = 3;
    } else if (rlhf__jinja_take_op(p, "*")) {
        n.kind = RLHF__JN_SPREAD;
        now = 2;
    }
    if (now == 0 ? *stage > 0 : now == 1 ? *stage > 2 : *stage >= now)
        return RLHF__JINJA_UNKNOWN_HERE(p, "an argument after %s",
                                        *stage == 1   ? "name=value"
                                        : *stage == 2 ? "*list"
                                                      : "**object");
    if (now > *stage) *stage = now;
    RLHF_TRY(rlhf__jinja_expression(p, n.kind ? &n.a : out));
    return n.kind ? rlhf__jinja_node(p, n, out) : RLHF_OK;
}

rlhf_status rlhf__jinja_arguments(struct rlhf__jinja_parser *p, int32_t *first) {
    int32_t last = 0;
    int stage = 0;
    *first = 0;
    while (!rlhf__jinja_take_op(p, ")")) {
        int32_t item = 0;
        RLHF_TRY(argument(p, &stage, &item));
        rlhf__jinja_chain(p, first, &last, item);
        if (!is_op(p, ")")) RLHF_TRY(rlhf__jinja_want_op(p, ","));
    }
    return RLHF_OK;
}

static rlhf_status constant(struct rlhf__jinja_parser *p, rlhf__value value, int32_t *out) {
    p->at++;
    return rlhf__jinja_node(p, (struct rlhf__jinja_node){.kind = RLHF__JN_CONST, .value = value},
                            out);
}

// Parses a literal. Adjacent strings are joined.
static rlhf_status literal(struct rlhf__jinja_parser *p, int32_t *out) {
    rlhf__value v = rlhf__jinja_look(p)->value;
    for (const struct rlhf__jinja_token *next = rlhf__jinja_look(p) + 1;
         v.type == RLHF__JINJA_STRING && next->kind == RLHF__JINJA_LITERAL &&
         next->value.type == RLHF__JINJA_STRING;
         next++) {
        v = rlhf__jinja_joined(&p->out->memory, v.s, next->value.s);
        if (p->out->memory.state) return RLHF__NOMEM(p->err, "out of memory for a chat template");
        p->at++;
    }
    return constant(p, v, out);
}

static rlhf_status primary(struct rlhf__jinja_parser *p, int32_t *out) {
    const struct rlhf__jinja_token *t = rlhf__jinja_look(p);
    struct rlhf__jinja_node list = {.kind = RLHF__JN_LIST};
    if (t->kind == RLHF__JINJA_LITERAL) return literal(p, out);
    if (rlhf__jinja_is_word(p, "true") || rlhf__jinja_is_word(p, "True"))
        return constant(p, rlhf__jinja_bool(1), out);
    if (rlhf__jinja_is_word(p, "false") || rlhf__jinja_is_word(p, "False"))
        return constant(p, rlhf__jinja_bool(0), out);
    if (rlhf__jinja_is_word(p, "none") || rlhf__jinja_is_word(p, "None"))
        return constant(p, rlhf__jinja_none(), out);
    if (t->kind == RLHF__JINJA_NAME) {
        if (rlhf__jinja_is_word(p, "varargs")) p->uses |= RLHF__JINJA_USES_VARARGS;
        if (rlhf__jinja_is_word(p, "kwargs")) p->uses |= RLHF__JINJA_USES_KWARGS;
        if (rlhf__jinja_is_word(p, "caller")) p->uses |= RLHF__JINJA_USES_CALLER;
        return rlhf__jinja_name(p, RLHF__JN_NAME, out);
    }
    if (rlhf__jinja_take_op(p, "(")) {
        if (is_op(p, ")")) {
            list.kind = RLHF__JN_TUPLE;
            RLHF_TRY(rlhf__jinja_node(p, list, out));
        } else {
            RLHF_TRY(rlhf__jinja_tuple(p, 1, out));
        }
        return rlhf__jinja_want_op(p, ")");
    }
    if (rlhf__jinja_take_op(p, "[")) {
        RLHF_TRY(items(p, "]", 0, &list.a));
        return rlhf__jinja_node(p, list, out);
    }
    if (!rlhf__jinja_take_op(p, "{"))
        return RLHF__JINJA_UNKNOWN_HERE(p, "a value is %s here", "expected");
    list.kind = RLHF__JN_DICT;
    RLHF_TRY(items(p, "}", 1, &list.a));
    return rlhf__jinja_node(p, list, out);
}

// After "[": parses an item or a slice of *out.
static rlhf_status subscript(struct rlhf__jinja_parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_ITEM, .a = *out};
    int32_t *part[] = {&n.b, &n.c, &n.d};
    for (int i = 0; i < 3; i++) {
        if (!is_op(p, ":") && !is_op(p, "]")) RLHF_TRY(rlhf__jinja_expression(p, part[i]));
        if (!rlhf__jinja_take_op(p, ":")) break;
        n.kind = RLHF__JN_SLICE;
    }
    if (n.kind == RLHF__JN_ITEM && !n.b)
        return RLHF__JINJA_UNKNOWN_HERE(p, "'%s' is missing", "index");
    RLHF_TRY(rlhf__jinja_want_op(p, "]"));
    return rlhf__jinja_node(p, n, out);
}

// Returns 1 if the next token begins an argument that follows a test without parentheses, as in "x
// is divisibleby 3".
static int has_argument(const struct rlhf__jinja_parser *p) {
    static const char *const ends[] = {"and", "or", "not", "if", "else", "is", "in", "recursive"};
    const struct rlhf__jinja_token *t = rlhf__jinja_look(p);
    if (t->kind == RLHF__JINJA_LITERAL || is_op(p, "[") || is_op(p, "{")) return 1;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (rlhf__jinja_is_word(p, ends[i])) return 0;
    return t->kind == RLHF__JINJA_NAME;
}

static rlhf_status postfix(struct rlhf__jinja_parser *p, int32_t *out);

rlhf_status rlhf__jinja_named(struct rlhf__jinja_parser *p, int32_t kind, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = kind, .a = *out};
    int negated = kind == RLHF__JN_TEST && rlhf__jinja_take_word(p, "not");
    if (rlhf__jinja_look(p)->kind != RLHF__JINJA_NAME)
        return RLHF__JINJA_UNKNOWN_HERE(p, "a name is %s", "missing");
    n.text = rlhf__jinja_look(p)->value.s;
    n.which =
        kind == RLHF__JN_TEST ? rlhf__jinja_test_find(n.text) : rlhf__jinja_filter_find(n.text);
    p->at++;
    if (rlhf__jinja_take_op(p, "("))
        RLHF_TRY(rlhf__jinja_arguments(p, &n.b));
    else if (kind == RLHF__JN_TEST && rlhf__jinja_is_word(p, "is"))
        return RLHF__JINJA_UNKNOWN_HERE(p, "a test of the test '%.*s'", RLHF__JINJA_NAME(n.text));
    else if (kind == RLHF__JN_TEST && has_argument(p))
        RLHF_TRY(postfix(p, &n.b));
    RLHF_TRY(rlhf__jinja_node(p, n, out));
    if (!negated) return RLHF_OK;
    return rlhf__jinja_node(p, (struct rlhf__jinja_node){.kind = RLHF__JN_NOT, .a = *out}, out);
}

static rlhf_status postfix(struct rlhf__jinja_parser *p, int32_t *out) {
    RLHF_TRY(primary(p, out));
    for (;;) {
        if (rlhf__jinja_take_op(p, ".")) {
            struct rlhf__jinja_node n = {.kind = RLHF__JN_ATTR, .a = *out};
            const struct rlhf__jinja_token *t = rlhf__jinja_look(p);
            const int index = t->kind == RLHF__JINJA_LITERAL && rlhf__jinja_is_whole(t->value);
            if (t->kind != RLHF__JINJA_NAME && !index)
                return RLHF__JINJA_UNKNOWN_HERE(p, "a name or an index is %s after '.'", "missing");
            if (index) { // x.0 is x[0]
                n.kind = RLHF__JN_ITEM;
                RLHF_TRY(constant(p, t->value, &n.b));
            } else {
                n.text = t->value.s;
                p->at++;
            }
            RLHF_TRY(rlhf__jinja_node(p, n, out));
        } else if (rlhf__jinja_take_op(p, "[")) {
            RLHF_TRY(subscript(p, out));
        } else if (rlhf__jinja_take_op(p, "(")) {
            struct rlhf__jinja_node n = {.kind = RLHF__JN_CALL, .a = *out};
            RLHF_TRY(rlhf__jinja_arguments(p, &n.b));
            RLHF_TRY(rlhf__jinja_node(p, n, out));
        } else {
            return RLHF_OK;
        }
    }
}

// A sign binds more tightly than a filter or a test, as in Jinja: -x|abs is (-x)|abs.
static rlhf_status unary(struct rlhf__jinja_parser *p, int with_filters, int32_t *out) {
    rlhf_status st = rlhf__jinja_deeper(p);
    const int minus = st == RLHF_OK && rlhf__jinja_take_op(p, "-");
    if (minus || (st == RLHF_OK && rlhf__jinja_take_op(p, "+"))) {
        st = unary(p, 0, out);
        if (st == RLHF_OK)
            st = rlhf__jinja_node(p,
                                  (struct rlhf__jinja_node){
                                      .kind = minus ? RLHF__JN_MINUS : RLHF__JN_PLUS, .a = *out},
                                  out);
    } else if (st == RLHF_OK) {
        st = postfix(p, out);
    }
    while (st == RLHF_OK && with_filters) {
        if (rlhf__jinja_take_op(p, "|"))
            st = rlhf__jinja_named(p, RLHF__JN_FILTER, out);
        else if (rlhf__jinja_take_word(p, "is"))
            st = rlhf__jinja_named(p, RLHF__JN_TEST, out);
        else if (rlhf__jinja_take_op(p, "(")) {
            struct rlhf__jinja_node n = {.kind = RLHF__JN_CALL, .a = *out};
            st = rlhf__jinja_arguments(p, &n.b);
            if (st == RLHF_OK) st = rlhf__jinja_node(p, n, out);
        } else
            break;
    }
    p->depth--;
    return st;
}

// Parses x ** y, which is left-associative, as in Jinja.
static rlhf_status powers(struct rlhf__jinja_parser *p, int32_t *out) {
    RLHF_TRY(unary(p, 1, out));
    while (rlhf__jinja_take_op(p, "**")) {
        struct rlhf__jinja_node n = {
            .kind = RLHF__JN_BINARY, .a = *out, .which = RLHF__JINJA_OP_POW};
        RLHF_TRY(unary(p, 1, &n.b));
        RLHF_TRY(rlhf__jinja_node(p, n, out));
    }
    return RLHF_OK;
}

// Parses the operators of one precedence level: 0 for * / // and %, 1 for ~, 2 for + and -.
static rlhf_status arithmetic(struct rlhf__jinja_parser *p, int level, int32_t *out) {
    static const char *const ops[3][5] = {
        {"*", "/", "//", "%", NULL}, {"~", NULL}, {"+", "-", NULL}};
    RLHF_TRY(level ? arithmetic(p, level - 1, out) : powers(p, out));
    for (int i = 0; ops[level][i];) {
        if (!rlhf__jinja_take_op(p, ops[level][i])) {
            i++;
            continue;
        }
        struct rlhf__jinja_node n = {.kind = RLHF__JN_BINARY, .a = *out};
        n.which = rlhf__jinja_op_find(ops[level][i]);
        RLHF_TRY(level ? arithmetic(p, level - 1, &n.b) : powers(p, &n.b));
        RLHF_TRY(rlhf__jinja_node(p, n, out));
        i = 0;
    }
    return RLHF_OK;
}

// Takes an operator that compares; 0 = the next token is something else.
static int32_t take_comparison(struct rlhf__jinja_parser *p) {
    static const char *const ops[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (rlhf__jinja_take_op(p, ops[i])) return rlhf__jinja_op_find(ops[i]);
    if (rlhf__jinja_take_word(p, "in")) return RLHF__JINJA_OP_IN;
    if (!rlhf__jinja_is_word(p, "not") ||
        !rlhf__jinja_is(rlhf__jinja_word(rlhf__jinja_look(p) + 1), "in"))
        return 0;
    p->at += 2;
    return RLHF__JINJA_OP_NOT_IN;
}

// Parses a comparison, or a chain of them.
static rlhf_status comparison(struct rlhf__jinja_parser *p, int32_t *out) {
    int32_t link = 0, which;
    RLHF_TRY(arithmetic(p, 2, out));
    while ((which = take_comparison(p)) != 0) {
        struct rlhf__jinja_node n = {.kind = RLHF__JN_BINARY, .which = which, .a = *out};
        int32_t node;
        RLHF_TRY(arithmetic(p, 2, &n.b));
        if (link) n.a = 0; // the right operand of the link before
        RLHF_TRY(rlhf__jinja_node(p, n, &node));
        if (link)
            p->out->node[link].c = node;
        else
            *out = node;
        link = node;
    }
    return RLHF_OK;
}

static rlhf_status negation(struct rlhf__jinja_parser *p, int32_t *out) {
    int times = 0;
    while (rlhf__jinja_take_word(p, "not"))
        times++;
    RLHF_TRY(comparison(p, out));
    for (int i = 0; i < 2 - times % 2 && times; i++) // two NOTs make bool(x)
        RLHF_TRY(
            rlhf__jinja_node(p, (struct rlhf__jinja_node){.kind = RLHF__JN_NOT, .a = *out}, out));
    return RLHF_OK;
}

// Parses an expression that is not a conditional. If is_or is 0, stops before an "or".
static rlhf_status logic(struct rlhf__jinja_parser *p, int is_or, int32_t *out) {
    RLHF_TRY(is_or ? logic(p, 0, out) : negation(p, out));
    while (rlhf__jinja_take_word(p, is_or ? "or" : "and")) {
        struct rlhf__jinja_node n = {.kind = is_or ? RLHF__JN_OR : RLHF__JN_AND, .a = *out};
        RLHF_TRY(is_or ? logic(p, 0, &n.b) : negation(p, &n.b));
        RLHF_TRY(rlhf__jinja_node(p, n, out));
    }
    return RLHF_OK;
}

rlhf_status rlhf__jinja_expression(struct rlhf__jinja_parser *p, int32_t *out) {
    RLHF_TRY(rlhf__jinja_deeper(p));
    RLHF_TRY(logic(p, 1, out));
    while (rlhf__jinja_take_word(p, "if")) {
        struct rlhf__jinja_node n = {.kind = RLHF__JN_COND, .b = *out};
        RLHF_TRY(logic(p, 1, &n.a));
        if (rlhf__jinja_take_word(p, "else")) RLHF_TRY(rlhf__jinja_expression(p, &n.c));
        RLHF_TRY(rlhf__jinja_node(p, n, out));
    }
    p->depth--;
    return RLHF_OK;
}

// The words that end a tuple after a comma.
static int ends_tuple(const struct rlhf__jinja_parser *p) {
    const int kind = rlhf__jinja_look(p)->kind;
    return is_op(p, ")") || kind == RLHF__JINJA_TAG_END || kind == RLHF__JINJA_OUT_END ||
           rlhf__jinja_is_word(p, "recursive");
}

rlhf_status rlhf__jinja_tuple(struct rlhf__jinja_parser *p, int conditions, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_TUPLE};
    int32_t last = 0, item;
    RLHF_TRY(rlhf__jinja_deeper(p));
    RLHF_TRY(conditions ? rlhf__jinja_expression(p, out) : logic(p, 1, out));
    p->depth--;
    if (!is_op(p, ",")) return RLHF_OK;
    rlhf__jinja_chain(p, &n.a, &last, *out);
    while (rlhf__jinja_take_op(p, ",") && !ends_tuple(p)) {
        RLHF_TRY(conditions ? rlhf__jinja_expression(p, &item) : logic(p, 1, &item));
        rlhf__jinja_chain(p, &n.a, &last, item);
    }
    return rlhf__jinja_node(p, n, out);
}
