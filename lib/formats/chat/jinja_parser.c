// jinja_parser.c: see jinja_parser.h.
#include "chat/jinja_parser.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 48, NODES_MAX = 1 << 17 };

const struct rlhf__jinja_token *rlhf__jinja_look(const struct rlhf__jinja_parser *p) {
    return &p->tokens.item[p->at]; // the last one is END, which nobody steps over
}

const char *rlhf__jinja_word(const struct rlhf__jinja_token *t) {
    return t->kind == RLHF__JINJA_NAME ? json_string_value(t->value) : "";
}

int rlhf__jinja_is_op(const struct rlhf__jinja_parser *p, const char *op) {
    return rlhf__jinja_look(p)->kind == RLHF__JINJA_OP && strcmp(rlhf__jinja_look(p)->op, op) == 0;
}

int rlhf__jinja_is_word(const struct rlhf__jinja_parser *p, const char *name) {
    return strcmp(rlhf__jinja_word(rlhf__jinja_look(p)), name) == 0;
}

int rlhf__jinja_take_op(struct rlhf__jinja_parser *p, const char *op) {
    int yes = rlhf__jinja_is_op(p, op);
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

// A node with these operands; value is borrowed and kept.
rlhf_status rlhf__jinja_add(struct rlhf__jinja_parser *p, struct rlhf__jinja_node node,
                            json_t *value, int32_t *to) {
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
    node.value = json_incref(value);
    j->node[j->n] = node;
    *to = (int32_t)j->n++;
    return RLHF_OK;
}

// Put node at the end of the list that *first and *last are of.
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
