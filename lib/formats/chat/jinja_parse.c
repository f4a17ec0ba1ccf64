// jinja_parse.c: see jinja_parse.h. This file parses the statements.
#include "chat/jinja_parse.h"

#include "chat/jinja_expression.h"

#include <stdlib.h>
#include <string.h>

void rlhf__jinja_finish(struct rlhf__jinja *j) {
    rlhf__jinja_memory_free(&j->memory.memory);
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
    RLHF_TRY(rlhf__jinja_tuple(p, &n.a));
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

// Parses names separated by commas.
static rlhf_status names(struct rlhf__jinja_parser *p, int32_t *first) {
    int32_t last = 0, name;
    *first = 0;
    do {
        RLHF_TRY(rlhf__jinja_name(p, RLHF__JN_NAME, &name));
        rlhf__jinja_chain(p, first, &last, name);
    } while (rlhf__jinja_take_op(p, ","));
    return RLHF_OK;
}

static rlhf_status for_statement(struct rlhf__jinja_parser *p, int32_t *out) {
    static const char *const ends[] = {"else", "endfor", NULL};
    struct rlhf__jinja_node n = {.kind = RLHF__JN_FOR};
    RLHF_TRY(rlhf__jinja_deeper(p));
    RLHF_TRY(names(p, &n.e));
    if (!rlhf__jinja_take_word(p, "in"))
        return RLHF__JINJA_UNKNOWN_HERE(p, "a loop without '%s'", "in");
    RLHF_TRY(rlhf__jinja_logic(p, 1, &n.a)); // an "if" after this belongs to the loop
    if (rlhf__jinja_take_word(p, "if")) RLHF_TRY(rlhf__jinja_expression(p, &n.d));
    if (rlhf__jinja_is_word(p, "recursive"))
        return RLHF__JINJA_UNKNOWN_HERE(p, "a loop that is '%s'", "recursive");
    RLHF_TRY(end_tag(p));
    RLHF_TRY(body(p, ends, &n.b));
    if (rlhf__jinja_take_word(p, "else")) {
        RLHF_TRY(block(p, "endfor", &n.c));
    } else {
        p->at++;
        RLHF_TRY(end_tag(p));
    }
    p->depth--;
    return rlhf__jinja_node(p, n, out);
}

static rlhf_status set_statement(struct rlhf__jinja_parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_SET};
    RLHF_TRY(names(p, &n.e));
    const struct rlhf__jinja_node *name = &p->out->node[n.e];
    if (rlhf__jinja_take_op(p, ".")) {
        n.kind = RLHF__JN_SET_ATTR;
        n.b = n.e;
        n.e = 0;
        if (rlhf__jinja_look(p)->kind != RLHF__JINJA_NAME)
            return RLHF__JINJA_UNKNOWN_HERE(p, "a name is %s", "missing");
        n.text = rlhf__jinja_look(p)->value.s;
        p->at++;
    } else if (rlhf__jinja_look(p)->kind == RLHF__JINJA_TAG_END && !name->next) {
        n = (struct rlhf__jinja_node){.kind = RLHF__JN_SET_BLOCK, .which = name->which};
        RLHF_TRY(rlhf__jinja_deeper(p));
        RLHF_TRY(block(p, "endset", &n.b));
        p->depth--;
        return rlhf__jinja_node(p, n, out);
    }
    if (!rlhf__jinja_take_op(p, "="))
        return RLHF__JINJA_UNKNOWN_HERE(p, "a 'set' without '%s'", "=");
    RLHF_TRY(rlhf__jinja_tuple(p, &n.a));
    RLHF_TRY(end_tag(p));
    return rlhf__jinja_node(p, n, out);
}

static rlhf_status macro(struct rlhf__jinja_parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_MACRO};
    int32_t name, param, last = 0;
    RLHF_TRY(rlhf__jinja_deeper(p));
    RLHF_TRY(rlhf__jinja_name(p, RLHF__JN_NAME, &name));
    n.which = p->out->node[name].which;
    n.text = p->out->node[name].text;
    RLHF_TRY(rlhf__jinja_want_op(p, "("));
    while (!rlhf__jinja_take_op(p, ")")) {
        RLHF_TRY(rlhf__jinja_name(p, RLHF__JN_PARAM, &param));
        if (rlhf__jinja_take_op(p, "=")) {
            int32_t value;
            RLHF_TRY(rlhf__jinja_expression(p, &value));
            p->out->node[param].a = value;
        }
        rlhf__jinja_chain(p, &n.e, &last, param);
        if (!rlhf__jinja_take_op(p, ",")) {
            RLHF_TRY(rlhf__jinja_want_op(p, ")"));
            break;
        }
    }
    RLHF_TRY(block(p, "endmacro", &n.b));
    p->depth--;
    return rlhf__jinja_node(p, n, out);
}

static rlhf_status generation(struct rlhf__jinja_parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_GENERATION};
    RLHF_TRY(rlhf__jinja_deeper(p));
    RLHF_TRY(block(p, "endgeneration", &n.b));
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
    if (rlhf__jinja_is_word(p, "continue")) n.kind = RLHF__JN_CONTINUE;
    if (!rlhf__jinja_is_word(p, "continue") && !rlhf__jinja_is_word(p, "break")) {
        const rlhf_str word = rlhf__jinja_word(rlhf__jinja_look(p));
        return RLHF__JINJA_UNKNOWN_HERE(p, "the tag '%.*s' is not known",
                                        (int)(word.len < 40 ? word.len : 40), word.ptr);
    }
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
            RLHF_TRY(rlhf__jinja_tuple(p, &n.a));
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
