// jinja_parse.c: see jinja_parse.h. This file parses the statements.
#include "jinja/jinja_parse.h"

#include "jinja/jinja_expression.h"

#include <stdlib.h>
#include <string.h>

void rlhf__jinja_finish(struct rlhf__jinja *j) {
    rlhf__jinja_memory_finish(&j->memory.memory);
    free(j->node);
    free(j->symbol);
    *j = (struct rlhf__jinja){0};
}

int32_t rlhf__jinja_symbol(const struct rlhf__jinja *j, const char *name) {
    for (int32_t i = 0; i < j->n_symbols; i++)
        if (rlhf__jinja_is(j->symbol[i], name)) return i;
    return -1;
}

static rlhf_status body(struct rlhf__jinja_parser *p, const char *const *ends, int32_t *first);

static rlhf_status end_tag(struct rlhf__jinja_parser *p) {
    if (rlhf__jinja_look(p)->kind != RLHF__JINJA_TAG_END)
        return RLHF__JINJA_UNKNOWN_HERE(p, "'%s' is missing", "%}");
    p->at++;
    return RLHF_OK;
}

// Parses the end of the current tag, then statements up to the tag `end`, then the tag `end`
// itself.
static rlhf_status block(struct rlhf__jinja_parser *p, const char *end, int32_t *first) {
    const char *const ends[] = {end, NULL};
    RLHF_TRY(end_tag(p));
    RLHF_TRY(body(p, ends, first));
    p->at++;
    return end_tag(p);
}

// Parses the rest of an "if" or "elif", including its end tag.
static rlhf_status if_statement(struct rlhf__jinja_parser *p, int32_t *out) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    struct rlhf__jinja_node n = {.kind = RLHF__JN_IF};
    RLHF_TRY(rlhf__jinja_deeper(p));
    RLHF_TRY(rlhf__jinja_tuple(p, 0, &n.a));
    RLHF_TRY(end_tag(p));
    RLHF_TRY(body(p, ends, &n.b));
    if (rlhf__jinja_take_word(p, "elif")) {
        RLHF_TRY(if_statement(p, &n.c));
    } else if (rlhf__jinja_take_word(p, "else")) {
        RLHF_TRY(block(p, "endif", &n.c));
    } else {
        rlhf__jinja_take_word(p, "endif");
        RLHF_TRY(end_tag(p));
    }
    p->depth--;
    return rlhf__jinja_node(p, n, out);
}

// Parses one name, or several in parentheses.
static rlhf_status targets(struct rlhf__jinja_parser *p, int32_t *out);
static rlhf_status one_target(struct rlhf__jinja_parser *p, int32_t *out) {
    static const char *const constants[] = {"true", "True", "false", "False", "none", "None"};
    if (rlhf__jinja_take_op(p, "(")) {
        RLHF_TRY(targets(p, out));
        return rlhf__jinja_want_op(p, ")");
    }
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (rlhf__jinja_is_word(p, constants[i]))
            return RLHF__JINJA_UNKNOWN_HERE(p, "a value for '%s'", constants[i]);
    return rlhf__jinja_name(p, RLHF__JN_NAME, out);
}

// Parses the names to which a statement assigns: one name, or several with commas and parentheses.
static rlhf_status targets(struct rlhf__jinja_parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_TUPLE};
    int32_t last = 0, item;
    RLHF_TRY(rlhf__jinja_deeper(p));
    RLHF_TRY(one_target(p, &item));
    p->depth--;
    *out = item;
    while (rlhf__jinja_take_op(p, ",")) {
        if (!n.a) rlhf__jinja_chain(p, &n.a, &last, *out);
        const int kind = rlhf__jinja_look(p)->kind;
        if (rlhf__jinja_is_word(p, "in") || (kind != RLHF__JINJA_NAME && kind != RLHF__JINJA_OP))
            break;
        if (kind == RLHF__JINJA_OP && strcmp(rlhf__jinja_look(p)->op, "(") != 0) break;
        RLHF_TRY(one_target(p, &item));
        rlhf__jinja_chain(p, &n.a, &last, item);
    }
    return n.a ? rlhf__jinja_node(p, n, out) : RLHF_OK;
}

static rlhf_status for_statement(struct rlhf__jinja_parser *p, int32_t *out) {
    static const char *const ends[] = {"else", "endfor", NULL};
    struct rlhf__jinja_node n = {.kind = RLHF__JN_FOR};
    RLHF_TRY(rlhf__jinja_deeper(p));
    RLHF_TRY(targets(p, &n.e));
    if (!rlhf__jinja_take_word(p, "in"))
        return RLHF__JINJA_UNKNOWN_HERE(p, "a loop without '%s'", "in");
    RLHF_TRY(rlhf__jinja_tuple(p, 0, &n.a)); // an "if" after this belongs to the loop
    if (rlhf__jinja_take_word(p, "if")) RLHF_TRY(rlhf__jinja_expression(p, &n.d));
    n.which = rlhf__jinja_take_word(p, "recursive");
    RLHF_TRY(end_tag(p));
    p->loops++;
    RLHF_TRY(body(p, ends, &n.b));
    p->loops--;
    if (rlhf__jinja_take_word(p, "else")) {
        RLHF_TRY(block(p, "endfor", &n.c));
    } else {
        p->at++;
        RLHF_TRY(end_tag(p));
    }
    p->depth--;
    return rlhf__jinja_node(p, n, out);
}

// Parses filters of a block's text: "upper | trim". If `bar` is 1, each of them, also
// the first, follows a "|".
static rlhf_status filters(struct rlhf__jinja_parser *p, int bar, int32_t *out) {
    if (bar && rlhf__jinja_look(p)->kind == RLHF__JINJA_TAG_END) return RLHF_OK;
    RLHF_TRY(rlhf__jinja_node(p, (struct rlhf__jinja_node){.kind = RLHF__JN_BLOCK_TEXT}, out));
    if (bar) RLHF_TRY(rlhf__jinja_want_op(p, "|"));
    do
        RLHF_TRY(rlhf__jinja_named(p, RLHF__JN_FILTER, out));
    while (rlhf__jinja_take_op(p, "|"));
    return RLHF_OK;
}

// Parses a body that becomes a value, up to the tag `end`, and the filters before it.
static rlhf_status captured(struct rlhf__jinja_parser *p, int bar, const char *end,
                            struct rlhf__jinja_node n, int32_t *out) {
    RLHF_TRY(rlhf__jinja_deeper(p));
    RLHF_TRY(filters(p, bar, &n.a));
    RLHF_TRY(block(p, end, &n.b));
    p->depth--;
    return rlhf__jinja_node(p, n, out);
}

static rlhf_status set_statement(struct rlhf__jinja_parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_SET};
    const struct rlhf__jinja_token *t = rlhf__jinja_look(p);
    const int32_t symbols = p->out->n_symbols;
    if (t->kind == RLHF__JINJA_NAME && t[1].kind == RLHF__JINJA_OP && t[1].op[0] == '.') {
        n.kind = RLHF__JN_SET_ATTR;
        RLHF_TRY(rlhf__jinja_name(p, RLHF__JN_NAME, &n.b));
        p->at++;
        if (rlhf__jinja_look(p)->kind != RLHF__JINJA_NAME)
            return RLHF__JINJA_UNKNOWN_HERE(p, "a name is %s", "missing");
        n.text = rlhf__jinja_look(p)->value.s;
        p->at++;
    } else {
        RLHF_TRY(targets(p, &n.e));
        t = rlhf__jinja_look(p);
        if (t->kind == RLHF__JINJA_TAG_END || (t->kind == RLHF__JINJA_OP && t->op[0] == '|')) {
            // In jinja2, a name that first occurs here is undefined in the block.
            const struct rlhf__jinja_node *name = &p->out->node[n.e];
            n.which = name->kind == RLHF__JN_NAME && name->which >= symbols;
            n.kind = RLHF__JN_SET_BLOCK;
            return captured(p, 1, "endset", n, out);
        }
    }
    if (!rlhf__jinja_take_op(p, "="))
        return RLHF__JINJA_UNKNOWN_HERE(p, "a 'set' without '%s'", "=");
    RLHF_TRY(rlhf__jinja_tuple(p, 1, &n.a));
    RLHF_TRY(end_tag(p));
    return rlhf__jinja_node(p, n, out);
}

// After "(": parses the parameters of a macro or of a call block.
static rlhf_status parameters(struct rlhf__jinja_parser *p, int32_t *first) {
    int32_t param, last = 0;
    int defaults = 0;
    while (!rlhf__jinja_take_op(p, ")")) {
        RLHF_TRY(rlhf__jinja_name(p, RLHF__JN_PARAM, &param));
        if (rlhf__jinja_take_op(p, "=")) {
            int32_t value;
            RLHF_TRY(rlhf__jinja_expression(p, &value));
            p->out->node[param].a = value;
            defaults = 1;
        } else if (defaults) {
            return RLHF__JINJA_UNKNOWN_HERE(p, "a parameter without a default after one with %s",
                                            "a default");
        }
        rlhf__jinja_chain(p, first, &last, param);
        if (!rlhf__jinja_take_op(p, ",")) return rlhf__jinja_want_op(p, ")");
    }
    return RLHF_OK;
}

// Parses the end of a tag and a body that becomes a function.
static rlhf_status function(struct rlhf__jinja_parser *p, const char *end,
                            struct rlhf__jinja_node *n) {
    const int32_t loops = p->loops, uses = p->uses;
    p->loops = 0;
    p->uses = 0;
    RLHF_TRY(block(p, end, &n->b));
    n->uses = p->uses;
    p->uses |= uses;
    p->loops = loops;
    return RLHF_OK;
}

static rlhf_status macro(struct rlhf__jinja_parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_MACRO};
    int32_t name;
    RLHF_TRY(rlhf__jinja_deeper(p));
    RLHF_TRY(rlhf__jinja_name(p, RLHF__JN_NAME, &name));
    n.which = p->out->node[name].which;
    n.text = p->out->node[name].text;
    RLHF_TRY(rlhf__jinja_want_op(p, "("));
    RLHF_TRY(parameters(p, &n.e));
    RLHF_TRY(function(p, "endmacro", &n));
    p->depth--;
    return rlhf__jinja_node(p, n, out);
}

static rlhf_status call_block(struct rlhf__jinja_parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_CALL_BLOCK, .text = {"caller", 6}};
    RLHF_TRY(rlhf__jinja_deeper(p));
    if (rlhf__jinja_take_op(p, "(")) RLHF_TRY(parameters(p, &n.e));
    RLHF_TRY(rlhf__jinja_expression(p, &n.a));
    if (p->out->node[n.a].kind != RLHF__JN_CALL)
        return RLHF__JINJA_UNKNOWN_HERE(p, "a 'call' without '%s'", "(");
    RLHF_TRY(function(p, "endcall", &n));
    p->depth--;
    return rlhf__jinja_node(p, n, out);
}

static rlhf_status with(struct rlhf__jinja_parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_WITH};
    int32_t item, last = 0;
    RLHF_TRY(rlhf__jinja_deeper(p));
    while (rlhf__jinja_look(p)->kind != RLHF__JINJA_TAG_END) {
        struct rlhf__jinja_node key = {.kind = RLHF__JN_KEY};
        if (n.e) RLHF_TRY(rlhf__jinja_want_op(p, ","));
        RLHF_TRY(one_target(p, &key.a));
        RLHF_TRY(rlhf__jinja_want_op(p, "="));
        RLHF_TRY(rlhf__jinja_expression(p, &key.b));
        RLHF_TRY(rlhf__jinja_node(p, key, &item));
        rlhf__jinja_chain(p, &n.e, &last, item);
    }
    RLHF_TRY(block(p, "endwith", &n.b));
    p->depth--;
    return rlhf__jinja_node(p, n, out);
}

static rlhf_status generation(struct rlhf__jinja_parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_GENERATION};
    RLHF_TRY(rlhf__jinja_deeper(p));
    RLHF_TRY(function(p, "endgeneration", &n));
    p->depth--;
    p->out->marks = 1;
    return rlhf__jinja_node(p, n, out);
}

static rlhf_status statement(struct rlhf__jinja_parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_BREAK};
    if (rlhf__jinja_take_word(p, "if")) return if_statement(p, out);
    if (rlhf__jinja_take_word(p, "for")) return for_statement(p, out);
    if (rlhf__jinja_take_word(p, "set")) return set_statement(p, out);
    if (rlhf__jinja_take_word(p, "macro")) return macro(p, out);
    if (rlhf__jinja_take_word(p, "generation")) return generation(p, out);
    if (rlhf__jinja_take_word(p, "call")) return call_block(p, out);
    if (rlhf__jinja_take_word(p, "with")) return with(p, out);
    if (rlhf__jinja_take_word(p, "filter"))
        return captured(p, 0, "endfilter", (struct rlhf__jinja_node){.kind = RLHF__JN_FILTERED},
                        out);
    if (rlhf__jinja_is_word(p, "continue")) n.kind = RLHF__JN_CONTINUE;
    if (!rlhf__jinja_is_word(p, "continue") && !rlhf__jinja_is_word(p, "break")) {
        const rlhf_str word = rlhf__jinja_word(rlhf__jinja_look(p));
        return RLHF__JINJA_UNKNOWN_HERE(p, "the tag '%.*s' is not known",
                                        (int)(word.len < 40 ? word.len : 40), word.ptr);
    }
    if (!p->loops)
        return RLHF__JINJA_UNKNOWN_HERE(p, "a '%s' outside of a loop",
                                        n.kind == RLHF__JN_BREAK ? "break" : "continue");
    p->at++;
    RLHF_TRY(end_tag(p));
    return rlhf__jinja_node(p, n, out);
}

// Parse statements up to one of the tags in `ends`, or to the end of the text if `ends` is NULL. If
// such a tag is found, its name becomes the next token.
static rlhf_status body(struct rlhf__jinja_parser *p, const char *const *ends, int32_t *first) {
    int32_t last = 0, node = 0;
    *first = 0;
    for (;; rlhf__jinja_chain(p, first, &last, node)) {
        struct rlhf__jinja_node n = {.kind = RLHF__JN_TEXT};
        const struct rlhf__jinja_token *t = rlhf__jinja_look(p);
        if (t->kind == RLHF__JINJA_END)
            return ends ? RLHF__JINJA_UNKNOWN_HERE(p, "'%s' is missing", *ends) : RLHF_OK;
        p->at++;
        if (t->kind == RLHF__JINJA_TEXT) {
            n.text = t->value.s;
            RLHF_TRY(rlhf__jinja_node(p, n, &node));
            continue;
        }
        if (t->kind == RLHF__JINJA_OUT) {
            n.kind = RLHF__JN_PRINT;
            RLHF_TRY(rlhf__jinja_tuple(p, 1, &n.a));
            if (rlhf__jinja_look(p)->kind != RLHF__JINJA_OUT_END)
                return RLHF__JINJA_UNKNOWN_HERE(p, "'%s' is missing", "}}");
            p->at++;
            RLHF_TRY(rlhf__jinja_node(p, n, &node));
            continue;
        }
        for (const char *const *e = ends; e && *e; e++)
            if (rlhf__jinja_is_word(p, *e)) return RLHF_OK;
        RLHF_TRY(statement(p, &node));
    }
}

rlhf_status rlhf__jinja_parse(const char *text, size_t n, struct rlhf__jinja *out,
                              struct rlhf__error *err) {
    struct rlhf__jinja_parser p = {.out = out, .err = err};
    int32_t none;
    out->memory.memory.left = RLHF__JINJA_MEMORY_MAX;
    out->memory.steps = RLHF__JINJA_STEPS_MAX;
    rlhf_status st = rlhf__jinja_lex(text, n, &out->memory, &p.tokens, err);
    if (st == RLHF_OK)
        st = rlhf__jinja_node(&p, (struct rlhf__jinja_node){.kind = RLHF__JN_NONE}, &none);
    if (st == RLHF_OK) st = body(&p, NULL, &out->body);
    out->loop = rlhf__jinja_symbol(out, "loop");
    rlhf__jinja_tokens_finish(&p.tokens);
    return st;
}
