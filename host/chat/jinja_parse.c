// jinja_parse.c: see jinja_parse.h. Recursive descent; precedences are Jinja's own: conditional,
// or, and, not, comparisons, + and -, ~, * and /, signs, then what stands behind a value.
#include "chat/jinja_parse.h"

#include "chat/jinja_lex.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 48, NODES_MAX = 1 << 17 };

struct parser {
    struct rlhf__jinja *out;
    struct rlhf__jinja_tokens tokens;
    size_t at;
    int32_t depth, reserved;
    struct rlhf__error *err;
};

static const struct rlhf__jinja_token *look(const struct parser *p) {
    return &p->tokens.item[p->at]; // the last one is END, which nobody steps over
}

#define UNKNOWN(p, fmt, ...)                                                                       \
    (rlhf__fail((p)->err, RLHF_E_UNSUPPORTED, "line %d: " fmt, look(p)->line, __VA_ARGS__),        \
     RLHF_E_UNSUPPORTED)

static const char *word(const struct rlhf__jinja_token *t) {
    return t->kind == RLHF__JINJA_NAME ? json_string_value(t->value) : "";
}

static int is_op(const struct parser *p, const char *op) {
    return look(p)->kind == RLHF__JINJA_OP && strcmp(look(p)->op, op) == 0;
}

static int is_word(const struct parser *p, const char *name) {
    return strcmp(word(look(p)), name) == 0;
}

static int take_op(struct parser *p, const char *op) {
    int yes = is_op(p, op);
    p->at += (size_t)yes;
    return yes;
}

static int take_word(struct parser *p, const char *name) {
    int yes = is_word(p, name);
    p->at += (size_t)yes;
    return yes;
}

static rlhf_status want_op(struct parser *p, const char *op) {
    return take_op(p, op) ? RLHF_OK : UNKNOWN(p, "'%s' is missing", op);
}

// A node with these operands; value is borrowed and kept.
static rlhf_status add(struct parser *p, struct rlhf__jinja_node node, json_t *value, int32_t *to) {
    struct rlhf__jinja *j = p->out;
    if (j->n >= NODES_MAX) return UNKNOWN(p, "more than %d parts", NODES_MAX);
    if (j->n == j->cap) {
        size_t cap = j->cap ? 2 * j->cap : 256;
        struct rlhf__jinja_node *grown = realloc(j->node, cap * sizeof *grown);
        if (!grown) return RLHF__NOMEM(p->err, "out of memory for a chat template");
        j->node = grown;
        j->cap = cap;
    }
    node.line = look(p)->line;
    node.value = json_incref(value);
    j->node[j->n] = node;
    *to = (int32_t)j->n++;
    return RLHF_OK;
}

// Put node at the end of the list that *first and *last are of.
static void chain(const struct parser *p, int32_t *first, int32_t *last, int32_t node) {
    if (*last)
        p->out->node[*last].next = node;
    else
        *first = node;
    *last = node;
}

static rlhf_status deeper(struct parser *p) {
    if (++p->depth > DEPTH_MAX) return UNKNOWN(p, "more than %d levels", DEPTH_MAX);
    return RLHF_OK;
}

// ---- expressions ----

static rlhf_status expression(struct parser *p, int32_t *out);

// Expressions up to `end`, which is taken; pairs: "key: value".
static rlhf_status items(struct parser *p, const char *end, int pairs, int32_t *first) {
    int32_t last = 0;
    *first = 0;
    while (!take_op(p, end)) {
        int32_t item, value;
        RLHF_TRY(expression(p, &item));
        if (pairs) {
            RLHF_TRY(want_op(p, ":"));
            RLHF_TRY(expression(p, &value));
            RLHF_TRY(add(p, (struct rlhf__jinja_node){.kind = RLHF__JN_KEY, .a = item, .b = value},
                         NULL, &item));
        }
        chain(p, first, &last, item);
        if (!is_op(p, end)) RLHF_TRY(want_op(p, ","));
    }
    return RLHF_OK;
}

// Behind "(": arguments, some of them name=value.
static rlhf_status arguments(struct parser *p, int32_t *first) {
    int32_t last = 0;
    *first = 0;
    while (!take_op(p, ")")) {
        const struct rlhf__jinja_token *name = look(p);
        int named = name->kind == RLHF__JINJA_NAME && name[1].kind == RLHF__JINJA_OP &&
                    strcmp(name[1].op, "=") == 0;
        int32_t item;
        p->at += named ? 2 : 0;
        RLHF_TRY(expression(p, &item));
        if (named)
            RLHF_TRY(add(p, (struct rlhf__jinja_node){.kind = RLHF__JN_KEY, .a = item}, name->value,
                         &item));
        chain(p, first, &last, item);
        if (!is_op(p, ")")) RLHF_TRY(want_op(p, ","));
    }
    return RLHF_OK;
}

static rlhf_status named_const(struct parser *p, json_t *value, int32_t *out) {
    rlhf_status st = add(p, (struct rlhf__jinja_node){.kind = RLHF__JN_CONST}, value, out);
    p->at++;
    return st;
}

static rlhf_status strings(struct parser *p, int32_t *out) {
    struct rlhf__buf all = RLHF__BUF_INIT; // neighbours are one
    for (; look(p)->kind == RLHF__JINJA_STRING; p->at++)
        rlhf__buf_put(&all, json_string_value(look(p)->value), json_string_length(look(p)->value));
    json_t *value = json_stringn(rlhf__buf_text(&all), all.len);
    rlhf_status st = rlhf__buf_ok(&all, p->err);
    if (st == RLHF_OK) st = add(p, (struct rlhf__jinja_node){.kind = RLHF__JN_CONST}, value, out);
    json_decref(value);
    rlhf__buf_free(&all);
    return st;
}

static rlhf_status primary(struct parser *p, int32_t *out) {
    const struct rlhf__jinja_token *t = look(p);
    if (t->kind == RLHF__JINJA_STRING) return strings(p, out);
    if (t->kind == RLHF__JINJA_INT) return named_const(p, t->value, out);
    if (is_word(p, "true") || is_word(p, "True")) return named_const(p, json_true(), out);
    if (is_word(p, "false") || is_word(p, "False")) return named_const(p, json_false(), out);
    if (is_word(p, "none") || is_word(p, "None")) return named_const(p, json_null(), out);
    struct rlhf__jinja_node list = {.kind = RLHF__JN_LIST};
    if (t->kind == RLHF__JINJA_NAME) {
        RLHF_TRY(add(p, (struct rlhf__jinja_node){.kind = RLHF__JN_NAME}, t->value, out));
        p->at++;
        return RLHF_OK;
    }
    if (take_op(p, "(")) {
        RLHF_TRY(expression(p, out));
        return want_op(p, ")");
    }
    if (take_op(p, "[")) {
        RLHF_TRY(items(p, "]", 0, &list.a));
        return add(p, list, NULL, out);
    }
    if (!take_op(p, "{")) return UNKNOWN(p, "no value stands where one is %s", "expected");
    list.kind = RLHF__JN_DICT;
    RLHF_TRY(items(p, "}", 1, &list.a));
    return add(p, list, NULL, out);
}

// Behind "[": an item or a slice of what *out is.
static rlhf_status subscript(struct parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_ITEM, .a = *out};
    int32_t *part[] = {&n.b, &n.c, &n.d};
    for (int i = 0; i < 3; i++) {
        if (!is_op(p, ":") && !is_op(p, "]")) RLHF_TRY(expression(p, part[i]));
        if (!take_op(p, ":")) break;
        n.kind = RLHF__JN_SLICE;
    }
    if (n.kind == RLHF__JN_ITEM && !n.b) return UNKNOWN(p, "'%s' is missing", "index");
    RLHF_TRY(want_op(p, "]"));
    return add(p, n, NULL, out);
}

// 1 when what comes is the argument of a test that has no parentheses.
static int has_argument(const struct parser *p) {
    static const char *const ends[] = {"and", "or", "not", "if", "else", "is", "in", "recursive"};
    const struct rlhf__jinja_token *t = look(p);
    if (t->kind == RLHF__JINJA_STRING || t->kind == RLHF__JINJA_INT) return 1;
    if (is_op(p, "[") || is_op(p, "{")) return 1;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (is_word(p, ends[i])) return 0;
    return t->kind == RLHF__JINJA_NAME;
}

// Behind "|" or "is": the name and its arguments.
static rlhf_status named(struct parser *p, int32_t kind, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = kind, .a = *out};
    int negated = kind == RLHF__JN_TEST && take_word(p, "not");
    json_t *name = look(p)->value;
    if (look(p)->kind != RLHF__JINJA_NAME) return UNKNOWN(p, "a name is %s", "missing");
    p->at++;
    if (take_op(p, "("))
        RLHF_TRY(arguments(p, &n.b));
    else if (kind == RLHF__JN_TEST && has_argument(p))
        RLHF_TRY(primary(p, &n.b));
    RLHF_TRY(add(p, n, name, out));
    if (!negated) return RLHF_OK;
    return add(p, (struct rlhf__jinja_node){.kind = RLHF__JN_NOT, .a = *out}, NULL, out);
}

static rlhf_status postfix(struct parser *p, int32_t *out) {
    RLHF_TRY(primary(p, out));
    for (;;) {
        if (take_op(p, ".")) {
            struct rlhf__jinja_node n = {.kind = RLHF__JN_ATTR, .a = *out};
            if (look(p)->kind != RLHF__JINJA_NAME) return UNKNOWN(p, "a name is %s", "missing");
            RLHF_TRY(add(p, n, look(p)->value, out));
            p->at++;
        } else if (take_op(p, "[")) {
            RLHF_TRY(subscript(p, out));
        } else if (take_op(p, "(")) {
            struct rlhf__jinja_node n = {.kind = RLHF__JN_CALL, .a = *out};
            RLHF_TRY(arguments(p, &n.b));
            RLHF_TRY(add(p, n, NULL, out));
        } else {
            return RLHF_OK;
        }
    }
}

// Filters and tests belong to what is behind a sign: -x|abs is -(x|abs).
static rlhf_status unary(struct parser *p, int with_filters, int32_t *out) {
    rlhf_status st = deeper(p);
    if (st == RLHF_OK && take_op(p, "-")) {
        st = unary(p, 0, out);
        if (st == RLHF_OK)
            st = add(p, (struct rlhf__jinja_node){.kind = RLHF__JN_MINUS, .a = *out}, NULL, out);
    } else if (st == RLHF_OK) {
        st = postfix(p, out);
    }
    while (st == RLHF_OK && with_filters) {
        if (take_op(p, "|"))
            st = named(p, RLHF__JN_FILTER, out);
        else if (take_word(p, "is"))
            st = named(p, RLHF__JN_TEST, out);
        else if (take_op(p, "(")) {
            struct rlhf__jinja_node n = {.kind = RLHF__JN_CALL, .a = *out};
            st = arguments(p, &n.b);
            if (st == RLHF_OK) st = add(p, n, NULL, out);
        } else
            break;
    }
    p->depth--;
    return st;
}

// level 0: * / // %, 1: ~, 2: + and -.
static rlhf_status arithmetic(struct parser *p, int level, int32_t *out) {
    static const char *const ops[3][5] = {
        {"*", "/", "//", "%", NULL}, {"~", NULL}, {"+", "-", NULL}};
    RLHF_TRY(level ? arithmetic(p, level - 1, out) : unary(p, 1, out));
    for (int i = 0; ops[level][i];) {
        if (!take_op(p, ops[level][i])) {
            i++;
            continue;
        }
        struct rlhf__jinja_node n = {.kind = RLHF__JN_BINARY, .a = *out};
        snprintf(n.op, sizeof n.op, "%s", ops[level][i]);
        RLHF_TRY(level ? arithmetic(p, level - 1, &n.b) : unary(p, 1, &n.b));
        RLHF_TRY(add(p, n, NULL, out));
        i = 0;
    }
    return RLHF_OK;
}

// One comparison; "in" and "not in" are written "in" and "!in".
static rlhf_status comparison(struct parser *p, int32_t *out) {
    static const char *const ops[] = {"==", "!=", "<=", ">=", "<", ">"};
    struct rlhf__jinja_node n = {.kind = RLHF__JN_BINARY};
    RLHF_TRY(arithmetic(p, 2, out));
    for (size_t i = 0; i < sizeof ops / sizeof *ops && !n.op[0]; i++)
        if (take_op(p, ops[i])) snprintf(n.op, sizeof n.op, "%s", ops[i]);
    if (!n.op[0] && is_word(p, "not") && strcmp(word(look(p) + 1), "in") == 0) {
        p->at += 2;
        strcpy(n.op, "!in");
    }
    if (!n.op[0] && take_word(p, "in")) strcpy(n.op, "in");
    if (!n.op[0]) return RLHF_OK;
    n.a = *out;
    RLHF_TRY(arithmetic(p, 2, &n.b));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (is_op(p, ops[i])) return UNKNOWN(p, "a chain of '%s'", ops[i]);
    return add(p, n, NULL, out);
}

static rlhf_status negation(struct parser *p, int32_t *out) {
    int times = 0;
    while (take_word(p, "not"))
        times++;
    RLHF_TRY(comparison(p, out));
    for (int i = 0; i < 2 - times % 2 && times; i++) // two are bool(x)
        RLHF_TRY(add(p, (struct rlhf__jinja_node){.kind = RLHF__JN_NOT, .a = *out}, NULL, out));
    return RLHF_OK;
}

static rlhf_status logic(struct parser *p, int is_or, int32_t *out) {
    RLHF_TRY(is_or ? logic(p, 0, out) : negation(p, out));
    while (take_word(p, is_or ? "or" : "and")) {
        struct rlhf__jinja_node n = {.kind = is_or ? RLHF__JN_OR : RLHF__JN_AND, .a = *out};
        RLHF_TRY(is_or ? logic(p, 0, &n.b) : negation(p, &n.b));
        RLHF_TRY(add(p, n, NULL, out));
    }
    return RLHF_OK;
}

static rlhf_status expression(struct parser *p, int32_t *out) {
    RLHF_TRY(deeper(p));
    RLHF_TRY(logic(p, 1, out));
    while (take_word(p, "if")) {
        struct rlhf__jinja_node n = {.kind = RLHF__JN_COND, .b = *out};
        RLHF_TRY(logic(p, 1, &n.a));
        if (take_word(p, "else")) RLHF_TRY(expression(p, &n.c));
        RLHF_TRY(add(p, n, NULL, out));
    }
    p->depth--;
    return RLHF_OK;
}

// ---- statements ----

static rlhf_status body(struct parser *p, const char *const *ends, int32_t *first);

static rlhf_status end_tag(struct parser *p) {
    if (look(p)->kind != RLHF__JINJA_TAG_END) return UNKNOWN(p, "'%s' is missing", "%}");
    p->at++;
    return RLHF_OK;
}

// Behind "if" or "elif", up to and with its end.
static rlhf_status if_statement(struct parser *p, int32_t *out) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    static const char *const end[] = {"endif", NULL};
    struct rlhf__jinja_node n = {.kind = RLHF__JN_IF};
    RLHF_TRY(deeper(p));
    RLHF_TRY(expression(p, &n.a));
    RLHF_TRY(end_tag(p));
    RLHF_TRY(body(p, ends, &n.b));
    if (take_word(p, "elif")) {
        RLHF_TRY(if_statement(p, &n.c));
    } else {
        if (take_word(p, "else")) {
            RLHF_TRY(end_tag(p));
            RLHF_TRY(body(p, end, &n.c));
        }
        take_word(p, "endif");
        RLHF_TRY(end_tag(p));
    }
    p->depth--;
    return add(p, n, NULL, out);
}

static rlhf_status for_statement(struct parser *p, int32_t *out) {
    static const char *const ends[] = {"else", "endfor", NULL};
    static const char *const end[] = {"endfor", NULL};
    struct rlhf__jinja_node n = {.kind = RLHF__JN_FOR};
    json_t *name = look(p)->value;
    RLHF_TRY(deeper(p));
    if (look(p)->kind != RLHF__JINJA_NAME) return UNKNOWN(p, "a name is %s", "missing");
    p->at++;
    for (; take_op(p, ","); p->at++) { // several names: known as a loop, refused where it is run
        name = NULL;
        if (look(p)->kind != RLHF__JINJA_NAME) return UNKNOWN(p, "a name is %s", "missing");
    }
    if (!take_word(p, "in")) return UNKNOWN(p, "a loop without '%s'", "in");
    RLHF_TRY(logic(p, 1, &n.a)); // an "if" here is the loop's
    if (take_word(p, "if")) RLHF_TRY(expression(p, &n.d));
    if (is_word(p, "recursive")) return UNKNOWN(p, "a loop that is '%s'", "recursive");
    RLHF_TRY(end_tag(p));
    RLHF_TRY(body(p, ends, &n.b));
    if (take_word(p, "else")) {
        RLHF_TRY(end_tag(p));
        RLHF_TRY(body(p, end, &n.c));
    }
    take_word(p, "endfor");
    RLHF_TRY(end_tag(p));
    p->depth--;
    return add(p, n, name, out);
}

static rlhf_status set_statement(struct parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_SET};
    const struct rlhf__jinja_token *name = look(p);
    json_t *value = name->value;
    if (name->kind != RLHF__JINJA_NAME) return UNKNOWN(p, "a name is %s", "missing");
    p->at++;
    if (take_op(p, ".")) {
        n.kind = RLHF__JN_SET_ATTR;
        RLHF_TRY(add(p, (struct rlhf__jinja_node){.kind = RLHF__JN_NAME}, name->value, &n.b));
        value = look(p)->value;
        if (look(p)->kind != RLHF__JINJA_NAME) return UNKNOWN(p, "a name is %s", "missing");
        p->at++;
    }
    if (!take_op(p, "=")) return UNKNOWN(p, "a 'set' without '%s'", "=");
    RLHF_TRY(expression(p, &n.a));
    RLHF_TRY(end_tag(p));
    return add(p, n, value, out);
}

static rlhf_status generation(struct parser *p, int32_t *out) {
    static const char *const end[] = {"endgeneration", NULL};
    struct rlhf__jinja_node n = {.kind = RLHF__JN_GENERATION};
    RLHF_TRY(deeper(p));
    RLHF_TRY(end_tag(p));
    RLHF_TRY(body(p, end, &n.b));
    p->at++;
    RLHF_TRY(end_tag(p));
    p->depth--;
    return add(p, n, NULL, out);
}

static rlhf_status statement(struct parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_BREAK};
    if (take_word(p, "if")) return if_statement(p, out);
    if (take_word(p, "for")) return for_statement(p, out);
    if (take_word(p, "set")) return set_statement(p, out);
    if (take_word(p, "generation")) return generation(p, out);
    if (is_word(p, "continue")) n.kind = RLHF__JN_CONTINUE;
    if (!is_word(p, "continue") && !is_word(p, "break"))
        return UNKNOWN(p, "the tag '%.40s' is not known", word(look(p)));
    p->at++;
    RLHF_TRY(end_tag(p));
    return add(p, n, NULL, out);
}

// Statements up to a tag of `ends` (NULL: the end of the text), whose name is then looked at.
static rlhf_status body(struct parser *p, const char *const *ends, int32_t *first) {
    int32_t last = 0, node = 0;
    *first = 0;
    for (;; chain(p, first, &last, node)) {
        struct rlhf__jinja_node n = {.kind = RLHF__JN_TEXT};
        const struct rlhf__jinja_token *t = look(p);
        if (t->kind == RLHF__JINJA_END)
            return ends ? UNKNOWN(p, "'%s' is missing", *ends) : RLHF_OK;
        p->at++;
        if (t->kind == RLHF__JINJA_TEXT) {
            RLHF_TRY(add(p, n, t->value, &node));
            continue;
        }
        if (t->kind == RLHF__JINJA_OUT) {
            n.kind = RLHF__JN_PRINT;
            RLHF_TRY(expression(p, &n.a));
            if (look(p)->kind != RLHF__JINJA_OUT_END) return UNKNOWN(p, "'%s' is missing", "}}");
            p->at++;
            RLHF_TRY(add(p, n, NULL, &node));
            continue;
        }
        for (const char *const *e = ends; e && *e; e++)
            if (is_word(p, *e)) return RLHF_OK;
        RLHF_TRY(statement(p, &node));
    }
}

void rlhf__jinja_finish(struct rlhf__jinja *j) {
    for (size_t i = 0; i < j->n; i++)
        json_decref(j->node[i].value);
    free(j->node);
    *j = (struct rlhf__jinja){0};
}

rlhf_status rlhf__jinja_parse(const char *text, size_t n, struct rlhf__jinja *out,
                              struct rlhf__error *err) {
    struct parser p = {.out = out, .err = err};
    int32_t none;
    rlhf_status st = rlhf__jinja_lex(text, n, &p.tokens, err);
    if (st == RLHF_OK) st = add(&p, (struct rlhf__jinja_node){.kind = RLHF__JN_NONE}, NULL, &none);
    if (st == RLHF_OK) st = body(&p, NULL, &out->body);
    rlhf__jinja_tokens_finish(&p.tokens);
    return st;
}
