// jinja_eval.c: see jinja_eval.h.
#include "chat/jinja_eval.h"

#include <string.h>

enum { DEPTH_MAX = 200, RANGE_MAX = 4096 };

const struct rlhf__jinja_node *rlhf__jinja_node_at(const struct rlhf__jinja_evaluator *e,
                                                   int32_t i) {
    return &e->j->node[i];
}

const char *rlhf__jinja_name_of(const struct rlhf__jinja_node *n) {
    return json_string_value(n->value);
}

// ---- variables ----

json_t *rlhf__jinja_look_up(const struct rlhf__jinja_evaluator *e, const char *name) {
    for (size_t i = json_array_size(e->scopes); i-- > 0;) {
        json_t *v = json_object_get(json_array_get(e->scopes, i), name);
        if (v) return json_incref(v);
    }
    return NULL;
}

json_t *rlhf__jinja_inner(const struct rlhf__jinja_evaluator *e) {
    return json_array_get(e->scopes, json_array_size(e->scopes) - 1);
}

// Takes v over; an undefined one hides what is outside no more than Jinja's does: it is left out.
void rlhf__jinja_set(json_t *scope, const char *name, json_t *v) {
    if (v)
        json_object_set_new_nocheck(scope, name, v);
    else
        json_object_del(scope, name);
}

void rlhf__jinja_open_scope(struct rlhf__jinja_evaluator *e) {
    json_array_append_new(e->scopes, json_object());
}

void rlhf__jinja_close_scope(struct rlhf__jinja_evaluator *e) {
    json_array_remove(e->scopes, json_array_size(e->scopes) - 1);
}

// ---- calls ----

// The arguments without names as a list, those with names as *named (may be NULL where none may
// be). NULL after a failure.
static json_t *arguments(struct rlhf__jinja_evaluator *e, int32_t first, json_t *named) {
    json_t *list = json_array();
    for (int32_t i = first; i && !e->w.state; i = rlhf__jinja_node_at(e, i)->next) {
        const struct rlhf__jinja_node *n = rlhf__jinja_node_at(e, i);
        json_t *v = rlhf__jinja_eval(e, n->kind == RLHF__JN_KEY ? n->a : i);
        if (!v) v = json_null();
        if (n->kind != RLHF__JN_KEY)
            json_array_append_new(list, v);
        else if (named)
            json_object_set_new_nocheck(named, rlhf__jinja_name_of(n), v);
        else
            json_decref(v);
        if (n->kind == RLHF__JN_KEY && !named)
            rlhf__jinja_stop(&e->w, RLHF__JINJA_UNKNOWN, "the argument '%.40s'",
                             rlhf__jinja_name_of(n));
    }
    if (!e->w.state) return list;
    json_decref(list);
    return NULL;
}

static json_t *range(struct rlhf__jinja_evaluator *e, const json_t *args) {
    int64_t v[3] = {0, 0, 1};
    size_t n = json_array_size(args);
    for (size_t i = 0; i < n && i < 3; i++)
        v[n == 1 ? 1 : i] = json_integer_value(json_array_get(args, i));
    if (n < 1 || n > 3 || v[2] < 1 || v[1] - v[0] > RANGE_MAX)
        return rlhf__jinja_stop(&e->w, RLHF__JINJA_UNKNOWN, "such a range()");
    json_t *list = json_array();
    e->w.steps -= (v[1] - v[0]) / v[2];
    for (int64_t i = v[0]; i < v[1]; i += v[2])
        json_array_append_new(list, json_integer(i));
    return list;
}

static json_t *function(struct rlhf__jinja_evaluator *e, const char *name, int32_t first) {
    json_t *named = json_object(), *v = NULL;
    json_t *args = arguments(e, first, named);
    if (args && strcmp(name, "raise_exception") == 0) {
        const char *said = json_string_value(json_array_get(args, 0));
        rlhf__jinja_stop(&e->w, RLHF__JINJA_RAISED, "%.100s", said ? said : "");
    } else if (args && strcmp(name, "namespace") == 0 && json_array_size(args) == 0) {
        rlhf__jinja_set(named, RLHF__JINJA_NAMESPACE, json_true());
        v = json_incref(named);
    } else if (args && strcmp(name, "range") == 0 && json_object_size(named) == 0) {
        v = range(e, args);
    } else if (args) {
        rlhf__jinja_stop(&e->w, RLHF__JINJA_UNKNOWN, "the function '%.40s'", name);
    }
    json_decref(args);
    json_decref(named);
    return v;
}

static json_t *call(struct rlhf__jinja_evaluator *e, const struct rlhf__jinja_node *n) {
    const struct rlhf__jinja_node *f = rlhf__jinja_node_at(e, n->a);
    if (f->kind == RLHF__JN_NAME) return function(e, rlhf__jinja_name_of(f), n->b);
    if (f->kind != RLHF__JN_ATTR)
        return rlhf__jinja_stop(&e->w, RLHF__JINJA_UNKNOWN, "a call of what is no name");
    json_t *of = rlhf__jinja_eval(e, f->a), *args = e->w.state ? NULL : arguments(e, n->b, NULL),
           *v = NULL;
    if (args) v = rlhf__jinja_method(&e->w, rlhf__jinja_name_of(f), of, args);
    json_decref(args);
    json_decref(of);
    return v;
}

static json_t *filter_or_test(struct rlhf__jinja_evaluator *e, const struct rlhf__jinja_node *n) {
    json_t *of = rlhf__jinja_eval(e, n->a), *args = e->w.state ? NULL : arguments(e, n->b, NULL),
           *v = NULL;
    if (args)
        v = n->kind == RLHF__JN_FILTER ? rlhf__jinja_filter(&e->w, rlhf__jinja_name_of(n), of, args)
                                       : rlhf__jinja_test(&e->w, rlhf__jinja_name_of(n), of, args);
    json_decref(args);
    json_decref(of);
    return v;
}

// ---- expressions ----

static json_t *attribute(struct rlhf__jinja_evaluator *e, const struct rlhf__jinja_node *n) {
    json_t *of = rlhf__jinja_eval(e, n->a), *v = NULL;
    if (!of && !e->w.state)
        rlhf__jinja_stop(&e->w, RLHF__JINJA_RAISED, "'%.40s' of what is undefined",
                         rlhf__jinja_name_of(n));
    else if (json_is_object(of))
        v = json_incref(json_object_get(of, rlhf__jinja_name_of(n)));
    json_decref(of);
    return v;
}

static json_t *binary(struct rlhf__jinja_evaluator *e, const struct rlhf__jinja_node *n) {
    json_t *a = rlhf__jinja_eval(e, n->a), *b = e->w.state ? NULL : rlhf__jinja_eval(e, n->b);
    json_t *v = e->w.state ? NULL : rlhf__jinja_binary(&e->w, n->op, a, b);
    json_decref(a);
    json_decref(b);
    return v;
}

static json_t *item_or_slice(struct rlhf__jinja_evaluator *e, const struct rlhf__jinja_node *n) {
    json_t *of = rlhf__jinja_eval(e, n->a), *part[3] = {NULL}, *v = NULL;
    const int32_t place[] = {n->b, n->c, n->d};
    for (int i = 0; i < 3 && !e->w.state; i++)
        if (place[i]) part[i] = rlhf__jinja_eval(e, place[i]);
    if (!e->w.state)
        v = n->kind == RLHF__JN_ITEM ? rlhf__jinja_item(&e->w, of, part[0])
                                     : rlhf__jinja_slice(&e->w, of, part[0], part[1], part[2]);
    for (int i = 0; i < 3; i++)
        json_decref(part[i]);
    json_decref(of);
    return v;
}

static json_t *minus(struct rlhf__jinja_evaluator *e, const struct rlhf__jinja_node *n) {
    json_t *v = rlhf__jinja_eval(e, n->a), *zero = json_integer(0);
    json_t *out = e->w.state ? NULL : rlhf__jinja_binary(&e->w, "-", zero, v);
    json_decref(zero);
    json_decref(v);
    return out;
}

// a and b, a or b: one of the two; b if a else c.
static json_t *choice(struct rlhf__jinja_evaluator *e, const struct rlhf__jinja_node *n) {
    json_t *a = rlhf__jinja_eval(e, n->a);
    int yes = rlhf__jinja_true(a);
    if (e->w.state || n->kind == RLHF__JN_COND || yes == (n->kind == RLHF__JN_AND)) {
        json_decref(a);
        if (e->w.state) return NULL;
        if (n->kind != RLHF__JN_COND || yes) return rlhf__jinja_eval(e, n->b);
        return n->c ? rlhf__jinja_eval(e, n->c) : NULL;
    }
    return a;
}

static json_t *collection(struct rlhf__jinja_evaluator *e, const struct rlhf__jinja_node *n) {
    if (n->kind == RLHF__JN_LIST) return arguments(e, n->a, NULL);
    json_t *v = json_object();
    for (int32_t i = n->a; i && !e->w.state; i = rlhf__jinja_node_at(e, i)->next) {
        json_t *key = rlhf__jinja_eval(e, rlhf__jinja_node_at(e, i)->a),
               *value = e->w.state ? NULL : rlhf__jinja_eval(e, rlhf__jinja_node_at(e, i)->b);
        if (!json_is_string(key))
            rlhf__jinja_stop(&e->w, RLHF__JINJA_UNKNOWN, "a key that is no string");
        else
            rlhf__jinja_set(v, json_string_value(key), json_incref(value));
        json_decref(key);
        json_decref(value);
    }
    return v;
}

static json_t *value_of(struct rlhf__jinja_evaluator *e, const struct rlhf__jinja_node *n) {
    json_t *v;
    int yes;
    switch (n->kind) {
    case RLHF__JN_CONST:
        return json_incref(n->value);
    case RLHF__JN_NAME:
        return rlhf__jinja_look_up(e, rlhf__jinja_name_of(n));
    case RLHF__JN_ATTR:
        return attribute(e, n);
    case RLHF__JN_ITEM:
    case RLHF__JN_SLICE:
        return item_or_slice(e, n);
    case RLHF__JN_CALL:
        return call(e, n);
    case RLHF__JN_FILTER:
    case RLHF__JN_TEST:
        return filter_or_test(e, n);
    case RLHF__JN_NOT:
        v = rlhf__jinja_eval(e, n->a);
        yes = rlhf__jinja_true(v);
        json_decref(v);
        return json_boolean(!yes);
    case RLHF__JN_MINUS:
        return minus(e, n);
    case RLHF__JN_BINARY:
        return binary(e, n);
    case RLHF__JN_LIST:
    case RLHF__JN_DICT:
        return collection(e, n);
    default:
        return choice(e, n);
    }
}

int rlhf__jinja_spend(struct rlhf__jinja_evaluator *e, const struct rlhf__jinja_node *n) {
    if (!e->w.state) e->w.line = n->line;
    if (--e->w.steps < 0)
        rlhf__jinja_stop(&e->w, RLHF__JINJA_UNKNOWN, "more steps than are allowed");
    if (e->depth > DEPTH_MAX) rlhf__jinja_stop(&e->w, RLHF__JINJA_UNKNOWN, "too many levels");
    return !e->w.state;
}

json_t *rlhf__jinja_eval(struct rlhf__jinja_evaluator *e, int32_t node) {
    const struct rlhf__jinja_node *n = rlhf__jinja_node_at(e, node);
    e->depth++;
    json_t *v = rlhf__jinja_spend(e, n) ? value_of(e, n) : NULL;
    e->depth--;
    if (!e->w.state) return v;
    json_decref(v);
    return NULL;
}
