// jinja_parse.c: see jinja_parse.h. The statements.
#include "chat/jinja_parse.h"

#include "chat/jinja_expression.h"

#include <stdlib.h>
#include <string.h>

void rlhf__jinja_finish(struct rlhf__jinja *j) {
    for (size_t i = 0; i < j->n; i++)
        json_decref(j->node[i].value);
    free(j->node);
    *j = (struct rlhf__jinja){0};
}

static rlhf_status body(struct rlhf__jinja_parser *p, const char *const *ends, int32_t *first);

static rlhf_status end_tag(struct rlhf__jinja_parser *p) {
    if (rlhf__jinja_look(p)->kind != RLHF__JINJA_TAG_END)
        return RLHF__JINJA_UNKNOWN_HERE(p, "'%s' is missing", "%}");
    p->at++;
    return RLHF_OK;
}

// Behind "if" or "elif", up to and with its end.
static rlhf_status if_statement(struct rlhf__jinja_parser *p, int32_t *out) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    static const char *const end[] = {"endif", NULL};
    struct rlhf__jinja_node n = {.kind = RLHF__JN_IF};
    RLHF_TRY(rlhf__jinja_deeper(p));
    RLHF_TRY(rlhf__jinja_expression(p, &n.a));
    RLHF_TRY(end_tag(p));
    RLHF_TRY(body(p, ends, &n.b));
    if (rlhf__jinja_take_word(p, "elif")) {
        RLHF_TRY(if_statement(p, &n.c));
    } else {
        if (rlhf__jinja_take_word(p, "else")) {
            RLHF_TRY(end_tag(p));
            RLHF_TRY(body(p, end, &n.c));
        }
        rlhf__jinja_take_word(p, "endif");
        RLHF_TRY(end_tag(p));
    }
    p->depth--;
    return rlhf__jinja_add(p, n, NULL, out);
}

static rlhf_status for_statement(struct rlhf__jinja_parser *p, int32_t *out) {
    static const char *const ends[] = {"else", "endfor", NULL};
    static const char *const end[] = {"endfor", NULL};
    struct rlhf__jinja_node n = {.kind = RLHF__JN_FOR};
    json_t *name = rlhf__jinja_look(p)->value;
    RLHF_TRY(rlhf__jinja_deeper(p));
    if (rlhf__jinja_look(p)->kind != RLHF__JINJA_NAME)
        return RLHF__JINJA_UNKNOWN_HERE(p, "a name is %s", "missing");
    p->at++;
    for (; rlhf__jinja_take_op(p, ",");
         p->at++) { // several names: known as a loop, refused where it is run
        name = NULL;
        if (rlhf__jinja_look(p)->kind != RLHF__JINJA_NAME)
            return RLHF__JINJA_UNKNOWN_HERE(p, "a name is %s", "missing");
    }
    if (!rlhf__jinja_take_word(p, "in"))
        return RLHF__JINJA_UNKNOWN_HERE(p, "a loop without '%s'", "in");
    RLHF_TRY(rlhf__jinja_logic(p, 1, &n.a)); // an "if" here is the loop's
    if (rlhf__jinja_take_word(p, "if")) RLHF_TRY(rlhf__jinja_expression(p, &n.d));
    if (rlhf__jinja_is_word(p, "recursive"))
        return RLHF__JINJA_UNKNOWN_HERE(p, "a loop that is '%s'", "recursive");
    RLHF_TRY(end_tag(p));
    RLHF_TRY(body(p, ends, &n.b));
    if (rlhf__jinja_take_word(p, "else")) {
        RLHF_TRY(end_tag(p));
        RLHF_TRY(body(p, end, &n.c));
    }
    rlhf__jinja_take_word(p, "endfor");
    RLHF_TRY(end_tag(p));
    p->depth--;
    return rlhf__jinja_add(p, n, name, out);
}

static rlhf_status set_statement(struct rlhf__jinja_parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_SET};
    const struct rlhf__jinja_token *name = rlhf__jinja_look(p);
    json_t *value = name->value;
    if (name->kind != RLHF__JINJA_NAME)
        return RLHF__JINJA_UNKNOWN_HERE(p, "a name is %s", "missing");
    p->at++;
    if (rlhf__jinja_take_op(p, ".")) {
        n.kind = RLHF__JN_SET_ATTR;
        RLHF_TRY(rlhf__jinja_add(p, (struct rlhf__jinja_node){.kind = RLHF__JN_NAME}, name->value,
                                 &n.b));
        value = rlhf__jinja_look(p)->value;
        if (rlhf__jinja_look(p)->kind != RLHF__JINJA_NAME)
            return RLHF__JINJA_UNKNOWN_HERE(p, "a name is %s", "missing");
        p->at++;
    }
    if (!rlhf__jinja_take_op(p, "="))
        return RLHF__JINJA_UNKNOWN_HERE(p, "a 'set' without '%s'", "=");
    RLHF_TRY(rlhf__jinja_expression(p, &n.a));
    RLHF_TRY(end_tag(p));
    return rlhf__jinja_add(p, n, value, out);
}

static rlhf_status generation(struct rlhf__jinja_parser *p, int32_t *out) {
    static const char *const end[] = {"endgeneration", NULL};
    struct rlhf__jinja_node n = {.kind = RLHF__JN_GENERATION};
    RLHF_TRY(rlhf__jinja_deeper(p));
    RLHF_TRY(end_tag(p));
    RLHF_TRY(body(p, end, &n.b));
    p->at++;
    RLHF_TRY(end_tag(p));
    p->depth--;
    return rlhf__jinja_add(p, n, NULL, out);
}

static rlhf_status statement(struct rlhf__jinja_parser *p, int32_t *out) {
    struct rlhf__jinja_node n = {.kind = RLHF__JN_BREAK};
    if (rlhf__jinja_take_word(p, "if")) return if_statement(p, out);
    if (rlhf__jinja_take_word(p, "for")) return for_statement(p, out);
    if (rlhf__jinja_take_word(p, "set")) return set_statement(p, out);
    if (rlhf__jinja_take_word(p, "generation")) return generation(p, out);
    if (rlhf__jinja_is_word(p, "continue")) n.kind = RLHF__JN_CONTINUE;
    if (!rlhf__jinja_is_word(p, "continue") && !rlhf__jinja_is_word(p, "break"))
        return RLHF__JINJA_UNKNOWN_HERE(p, "the tag '%.40s' is not known",
                                        rlhf__jinja_word(rlhf__jinja_look(p)));
    p->at++;
    RLHF_TRY(end_tag(p));
    return rlhf__jinja_add(p, n, NULL, out);
}

// Statements up to a tag of `ends` (NULL: the end of the text), whose name is then looked at.
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
            RLHF_TRY(rlhf__jinja_add(p, n, t->value, &node));
            continue;
        }
        if (t->kind == RLHF__JINJA_OUT) {
            n.kind = RLHF__JN_PRINT;
            RLHF_TRY(rlhf__jinja_expression(p, &n.a));
            if (rlhf__jinja_look(p)->kind != RLHF__JINJA_OUT_END)
                return RLHF__JINJA_UNKNOWN_HERE(p, "'%s' is missing", "}}");
            p->at++;
            RLHF_TRY(rlhf__jinja_add(p, n, NULL, &node));
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
    rlhf_status st = rlhf__jinja_lex(text, n, &p.tokens, err);
    if (st == RLHF_OK)
        st = rlhf__jinja_add(&p, (struct rlhf__jinja_node){.kind = RLHF__JN_NONE}, NULL, &none);
    if (st == RLHF_OK) st = body(&p, NULL, &out->body);
    rlhf__jinja_tokens_finish(&p.tokens);
    return st;
}
