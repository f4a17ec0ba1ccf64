// jinja_run.c: see jinja_run.h. Expressions and their variables, then the statements.
#include "chat/jinja_run.h"

#include "chat/jinja_parse.h"
#include "chat/jinja_value.h"

#include <string.h>

// A member that only the objects of namespace() have: only their members can be set.
#define NAMESPACE " namespace"

struct evaluator {
    const struct rlhf__jinja *j;
    struct rlhf__jinja_work w;
    json_t *scopes; // objects, the innermost last
    int32_t depth, reserved;
};

enum { DEPTH_MAX = 200, RANGE_MAX = 4096 };

static const struct rlhf__jinja_node *node_at(const struct evaluator *e, int32_t i) {
    return &e->j->node[i];
}

static const char *name_of(const struct rlhf__jinja_node *n) { return json_string_value(n->value); }

static json_t *eval(struct evaluator *e, int32_t node);

// ---- variables ----

// The variable of the innermost scope that has it: a new reference, NULL = undefined.
static json_t *look_up(const struct evaluator *e, const char *name) {
    for (size_t i = json_array_size(e->scopes); i-- > 0;) {
        json_t *v = json_object_get(json_array_get(e->scopes, i), name);
        if (v) return json_incref(v);
    }
    return NULL;
}

static json_t *inner_scope(const struct evaluator *e) {
    return json_array_get(e->scopes, json_array_size(e->scopes) - 1);
}

// Takes v over. An undefined value is left out, so that it hides no outer variable, as in Jinja.
static void set_in(json_t *scope, const char *name, json_t *v) {
    if (v)
        json_object_set_new_nocheck(scope, name, v);
    else
        json_object_del(scope, name);
}

static void open_scope(struct evaluator *e) { json_array_append_new(e->scopes, json_object()); }

static void close_scope(struct evaluator *e) {
    json_array_remove(e->scopes, json_array_size(e->scopes) - 1);
}

// ---- calls ----

// The arguments without names as a list, those with names as *named (may be NULL where none may
// be). NULL after a failure.
static json_t *arguments(struct evaluator *e, int32_t first, json_t *named) {
    json_t *list = json_array();
    for (int32_t i = first; i && !e->w.state; i = node_at(e, i)->next) {
        const struct rlhf__jinja_node *n = node_at(e, i);
        json_t *v = eval(e, n->kind == RLHF__JN_KEY ? n->a : i);
        if (!v) v = json_null();
        if (n->kind != RLHF__JN_KEY)
            json_array_append_new(list, v);
        else if (named)
            json_object_set_new_nocheck(named, name_of(n), v);
        else
            json_decref(v);
        if (n->kind == RLHF__JN_KEY && !named)
            rlhf__jinja_stop(&e->w, RLHF__JINJA_UNKNOWN, "the argument '%.40s'", name_of(n));
    }
    if (!e->w.state) return list;
    json_decref(list);
    return NULL;
}

static json_t *range(struct evaluator *e, const json_t *args) {
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

static json_t *function(struct evaluator *e, const char *name, int32_t first) {
    json_t *named = json_object(), *v = NULL;
    json_t *args = arguments(e, first, named);
    if (args && strcmp(name, "raise_exception") == 0) {
        const char *said = json_string_value(json_array_get(args, 0));
        rlhf__jinja_stop(&e->w, RLHF__JINJA_RAISED, "%.100s", said ? said : "");
    } else if (args && strcmp(name, "namespace") == 0 && json_array_size(args) == 0) {
        set_in(named, NAMESPACE, json_true());
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

static json_t *call(struct evaluator *e, const struct rlhf__jinja_node *n) {
    const struct rlhf__jinja_node *f = node_at(e, n->a);
    if (f->kind == RLHF__JN_NAME) return function(e, name_of(f), n->b);
    if (f->kind != RLHF__JN_ATTR)
        return rlhf__jinja_stop(&e->w, RLHF__JINJA_UNKNOWN, "a call of what is no name");
    json_t *of = eval(e, f->a), *args = e->w.state ? NULL : arguments(e, n->b, NULL), *v = NULL;
    if (args) v = rlhf__jinja_method(&e->w, name_of(f), of, args);
    json_decref(args);
    json_decref(of);
    return v;
}

static json_t *filter_or_test(struct evaluator *e, const struct rlhf__jinja_node *n) {
    json_t *of = eval(e, n->a), *args = e->w.state ? NULL : arguments(e, n->b, NULL), *v = NULL;
    if (args)
        v = n->kind == RLHF__JN_FILTER ? rlhf__jinja_filter(&e->w, name_of(n), of, args)
                                       : rlhf__jinja_test(&e->w, name_of(n), of, args);
    json_decref(args);
    json_decref(of);
    return v;
}

// ---- expressions ----

static json_t *attribute(struct evaluator *e, const struct rlhf__jinja_node *n) {
    json_t *of = eval(e, n->a), *v = NULL;
    if (!of && !e->w.state)
        rlhf__jinja_stop(&e->w, RLHF__JINJA_RAISED, "'%.40s' of what is undefined", name_of(n));
    else if (json_is_object(of))
        v = json_incref(json_object_get(of, name_of(n)));
    json_decref(of);
    return v;
}

static json_t *binary(struct evaluator *e, const struct rlhf__jinja_node *n) {
    json_t *a = eval(e, n->a), *b = e->w.state ? NULL : eval(e, n->b);
    json_t *v = e->w.state ? NULL : rlhf__jinja_binary(&e->w, n->op, a, b);
    json_decref(a);
    json_decref(b);
    return v;
}

static json_t *item_or_slice(struct evaluator *e, const struct rlhf__jinja_node *n) {
    json_t *of = eval(e, n->a), *part[3] = {NULL}, *v = NULL;
    const int32_t place[] = {n->b, n->c, n->d};
    for (int i = 0; i < 3 && !e->w.state; i++)
        if (place[i]) part[i] = eval(e, place[i]);
    if (!e->w.state)
        v = n->kind == RLHF__JN_ITEM ? rlhf__jinja_item(&e->w, of, part[0])
                                     : rlhf__jinja_slice(&e->w, of, part[0], part[1], part[2]);
    for (int i = 0; i < 3; i++)
        json_decref(part[i]);
    json_decref(of);
    return v;
}

static json_t *minus(struct evaluator *e, const struct rlhf__jinja_node *n) {
    json_t *v = eval(e, n->a), *zero = json_integer(0);
    json_t *out = e->w.state ? NULL : rlhf__jinja_binary(&e->w, "-", zero, v);
    json_decref(zero);
    json_decref(v);
    return out;
}

// a and b, a or b: one of the two; b if a else c.
static json_t *choice(struct evaluator *e, const struct rlhf__jinja_node *n) {
    json_t *a = eval(e, n->a);
    int yes = rlhf__jinja_true(a);
    if (e->w.state || n->kind == RLHF__JN_COND || yes == (n->kind == RLHF__JN_AND)) {
        json_decref(a);
        if (e->w.state) return NULL;
        if (n->kind != RLHF__JN_COND || yes) return eval(e, n->b);
        return n->c ? eval(e, n->c) : NULL;
    }
    return a;
}

static json_t *collection(struct evaluator *e, const struct rlhf__jinja_node *n) {
    if (n->kind == RLHF__JN_LIST) return arguments(e, n->a, NULL);
    json_t *v = json_object();
    for (int32_t i = n->a; i && !e->w.state; i = node_at(e, i)->next) {
        json_t *key = eval(e, node_at(e, i)->a),
               *value = e->w.state ? NULL : eval(e, node_at(e, i)->b);
        if (!json_is_string(key))
            rlhf__jinja_stop(&e->w, RLHF__JINJA_UNKNOWN, "a key that is no string");
        else
            set_in(v, json_string_value(key), json_incref(value));
        json_decref(key);
        json_decref(value);
    }
    return v;
}

static json_t *value_of(struct evaluator *e, const struct rlhf__jinja_node *n) {
    json_t *v;
    int yes;
    switch (n->kind) {
    case RLHF__JN_CONST:
        return json_incref(n->value);
    case RLHF__JN_NAME:
        return look_up(e, name_of(n));
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
        v = eval(e, n->a);
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

// Counts a step of node n; 0 when nothing more may be done.
static int spend(struct evaluator *e, const struct rlhf__jinja_node *n) {
    if (!e->w.state) e->w.line = n->line;
    if (--e->w.steps < 0)
        rlhf__jinja_stop(&e->w, RLHF__JINJA_UNKNOWN, "more steps than are allowed");
    if (e->depth > DEPTH_MAX) rlhf__jinja_stop(&e->w, RLHF__JINJA_UNKNOWN, "too many levels");
    return !e->w.state;
}

// The value of a node, a new reference. NULL: undefined, or w.state says why not.
static json_t *eval(struct evaluator *e, int32_t node) {
    const struct rlhf__jinja_node *n = node_at(e, node);
    e->depth++;
    json_t *v = spend(e, n) ? value_of(e, n) : NULL;
    e->depth--;
    if (!e->w.state) return v;
    json_decref(v);
    return NULL;
}

// ---- statements ----

enum { STEPS_MAX = 20000, BYTES_MAX = 4 << 20, TEXT_MAX = 1 << 20 };

enum leave { STAY = 0, BREAK, CONTINUE };

struct runner {
    struct evaluator e;
    struct rlhf__turns *out;
    int32_t leave, reserved; // enum leave
    struct rlhf__error *err;
};

static const struct rlhf__jinja_node *at(const struct runner *r, int32_t i) {
    return node_at(&r->e, i);
}

static void run(struct runner *r, int32_t first);

static void set_statement(struct runner *r, const struct rlhf__jinja_node *n) {
    json_t *v = eval(&r->e, n->a), *of = NULL;
    if (n->kind == RLHF__JN_SET_ATTR) of = look_up(&r->e, name_of(at(r, n->b)));
    if (!r->e.w.state && n->kind == RLHF__JN_SET)
        set_in(inner_scope(&r->e), name_of(n), json_incref(v));
    else if (!r->e.w.state &&
             (!json_object_get(of, NAMESPACE) || json_is_object(v) || json_is_array(v)))
        // one that holds itself would be no tree
        rlhf__jinja_stop(&r->e.w, RLHF__JINJA_UNKNOWN, "setting the attribute '%.40s'", name_of(n));
    else if (!r->e.w.state)
        set_in(of, name_of(n), json_incref(v));
    json_decref(of);
    json_decref(v);
}

static void print_statement(struct runner *r, const struct rlhf__jinja_node *n) {
    json_t *v = eval(&r->e, n->a);
    if (!r->e.w.state) rlhf__jinja_print(&r->e.w, v, &r->out->text);
    json_decref(v);
}

static void if_statement(struct runner *r, const struct rlhf__jinja_node *n) {
    json_t *v = eval(&r->e, n->a);
    int yes = rlhf__jinja_true(v);
    json_decref(v);
    if (!r->e.w.state) run(r, yes ? n->b : n->c);
}

static json_t *loop_of(const json_t *list, size_t i) {
    json_int_t n = (json_int_t)json_array_size(list), k = (json_int_t)i;
    json_t *loop =
        json_pack("{s:I, s:I, s:I, s:I, s:b, s:b, s:I}", "index", k + 1, "index0", k, "revindex",
                  n - k, "revindex0", n - k - 1, "first", k == 0, "last", k == n - 1, "length", n);
    if (k) json_object_set(loop, "previtem", json_array_get(list, i - 1));
    if (k + 1 < n) json_object_set(loop, "nextitem", json_array_get(list, i + 1));
    return loop;
}

// The items of `all` for which the loop's condition holds. New reference.
static json_t *chosen(struct runner *r, const struct rlhf__jinja_node *n, json_t *all) {
    if (!n->d) return json_incref(all);
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(all) && !r->e.w.state; i++) {
        open_scope(&r->e);
        set_in(inner_scope(&r->e), name_of(n), json_incref(json_array_get(all, i)));
        json_t *v = eval(&r->e, n->d);
        if (rlhf__jinja_true(v)) json_array_append(list, json_array_get(all, i));
        json_decref(v);
        close_scope(&r->e);
    }
    return list;
}

static void for_statement(struct runner *r, const struct rlhf__jinja_node *n) {
    json_t *all = eval(&r->e, n->a);
    if (!n->value) rlhf__jinja_stop(&r->e.w, RLHF__JINJA_UNKNOWN, "a loop over several names");
    if (!r->e.w.state && all && !json_is_array(all))
        rlhf__jinja_stop(&r->e.w, RLHF__JINJA_UNKNOWN, "a loop over what is no list");
    json_t *list = r->e.w.state || !all ? NULL : chosen(r, n, all);
    size_t size = json_array_size(list);
    for (size_t i = 0; i < size && r->leave != BREAK && spend(&r->e, n); i++) {
        open_scope(&r->e);
        set_in(inner_scope(&r->e), "loop", loop_of(list, i));
        set_in(inner_scope(&r->e), name_of(n), json_incref(json_array_get(list, i)));
        r->leave = STAY;
        run(r, n->b);
        close_scope(&r->e);
    }
    r->leave = STAY;
    json_decref(list);
    json_decref(all);
    if (size == 0 && !r->e.w.state && n->c) run(r, n->c);
}

static void generation(struct runner *r, const struct rlhf__jinja_node *n) {
    size_t from = r->out->text.len;
    open_scope(&r->e);
    run(r, n->b);
    close_scope(&r->e);
    if (rlhf__turns_add(r->out, from, r->out->text.len, r->err) != RLHF_OK)
        rlhf__jinja_stop(&r->e.w, RLHF__JINJA_UNKNOWN, "out of memory");
}

static void statement(struct runner *r, const struct rlhf__jinja_node *n) {
    switch (n->kind) {
    case RLHF__JN_TEXT:
        rlhf__buf_put(&r->out->text, json_string_value(n->value), json_string_length(n->value));
        break;
    case RLHF__JN_PRINT:
        print_statement(r, n);
        break;
    case RLHF__JN_IF:
        if_statement(r, n);
        break;
    case RLHF__JN_FOR:
        for_statement(r, n);
        break;
    case RLHF__JN_GENERATION:
        generation(r, n);
        break;
    case RLHF__JN_BREAK:
    case RLHF__JN_CONTINUE:
        r->leave = n->kind == RLHF__JN_BREAK ? BREAK : CONTINUE;
        break;
    default:
        set_statement(r, n);
    }
}

static void run(struct runner *r, int32_t first) {
    r->e.depth++;
    for (int32_t i = first; i && !r->e.w.state && !r->leave; i = at(r, i)->next) {
        if (spend(&r->e, at(r, i))) statement(r, at(r, i));
        if (r->out->text.bad || r->out->text.len > TEXT_MAX)
            rlhf__jinja_stop(&r->e.w, RLHF__JINJA_UNKNOWN, "more text than is allowed");
    }
    r->e.depth--;
}

rlhf_status rlhf__jinja_run(const struct rlhf__jinja *j, const json_t *vars,
                            struct rlhf__jinja_result *out, struct rlhf__error *err) {
    rlhf__turns_clear(&out->turns);
    out->raised = 0;
    struct runner r = {.e = {.j = j, .w = {.steps = STEPS_MAX, .bytes = BYTES_MAX}},
                       .out = &out->turns,
                       .err = err};
    r.e.scopes = json_array();
    json_array_append(r.e.scopes, (json_t *)(uintptr_t)vars);
    open_scope(&r.e);
    run(&r, j->body);
    json_decref(r.e.scopes);
    out->raised = r.e.w.state == RLHF__JINJA_RAISED;
    if (r.e.w.state != RLHF__JINJA_UNKNOWN) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED, "line %d: %s", r.e.w.line, r.e.w.why);
}
