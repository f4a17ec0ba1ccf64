// jinja_run.c: see jinja_run.h. The statements.
#include "chat/jinja_run.h"

#include "chat/jinja_eval.h"

enum { STEPS_MAX = 20000, BYTES_MAX = 4 << 20, TEXT_MAX = 1 << 20 };

enum leave { STAY = 0, BREAK, CONTINUE };

struct runner {
    struct rlhf__jinja_evaluator e;
    struct rlhf__turns *out;
    int32_t leave, reserved; // enum leave
    struct rlhf__error *err;
};

static const struct rlhf__jinja_node *at(const struct runner *r, int32_t i) {
    return rlhf__jinja_node_at(&r->e, i);
}

static void run(struct runner *r, int32_t first);

static void set_statement(struct runner *r, const struct rlhf__jinja_node *n) {
    json_t *v = rlhf__jinja_eval(&r->e, n->a), *of = NULL;
    if (n->kind == RLHF__JN_SET_ATTR)
        of = rlhf__jinja_look_up(&r->e, rlhf__jinja_name_of(at(r, n->b)));
    if (!r->e.w.state && n->kind == RLHF__JN_SET)
        rlhf__jinja_set(rlhf__jinja_inner(&r->e), rlhf__jinja_name_of(n), json_incref(v));
    else if (!r->e.w.state &&
             (!json_object_get(of, RLHF__JINJA_NAMESPACE) || json_is_object(v) || json_is_array(v)))
        // one that holds itself would be no tree
        rlhf__jinja_stop(&r->e.w, RLHF__JINJA_UNKNOWN, "setting the attribute '%.40s'",
                         rlhf__jinja_name_of(n));
    else if (!r->e.w.state)
        rlhf__jinja_set(of, rlhf__jinja_name_of(n), json_incref(v));
    json_decref(of);
    json_decref(v);
}

static void print_statement(struct runner *r, const struct rlhf__jinja_node *n) {
    json_t *v = rlhf__jinja_eval(&r->e, n->a);
    if (!r->e.w.state) rlhf__jinja_print(&r->e.w, v, &r->out->text);
    json_decref(v);
}

static void if_statement(struct runner *r, const struct rlhf__jinja_node *n) {
    json_t *v = rlhf__jinja_eval(&r->e, n->a);
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
        rlhf__jinja_open_scope(&r->e);
        rlhf__jinja_set(rlhf__jinja_inner(&r->e), rlhf__jinja_name_of(n),
                        json_incref(json_array_get(all, i)));
        json_t *v = rlhf__jinja_eval(&r->e, n->d);
        if (rlhf__jinja_true(v)) json_array_append(list, json_array_get(all, i));
        json_decref(v);
        rlhf__jinja_close_scope(&r->e);
    }
    return list;
}

static void for_statement(struct runner *r, const struct rlhf__jinja_node *n) {
    json_t *all = rlhf__jinja_eval(&r->e, n->a);
    if (!n->value) rlhf__jinja_stop(&r->e.w, RLHF__JINJA_UNKNOWN, "a loop over several names");
    if (!r->e.w.state && all && !json_is_array(all))
        rlhf__jinja_stop(&r->e.w, RLHF__JINJA_UNKNOWN, "a loop over what is no list");
    json_t *list = r->e.w.state || !all ? NULL : chosen(r, n, all);
    size_t size = json_array_size(list);
    for (size_t i = 0; i < size && r->leave != BREAK && rlhf__jinja_spend(&r->e, n); i++) {
        rlhf__jinja_open_scope(&r->e);
        rlhf__jinja_set(rlhf__jinja_inner(&r->e), "loop", loop_of(list, i));
        rlhf__jinja_set(rlhf__jinja_inner(&r->e), rlhf__jinja_name_of(n),
                        json_incref(json_array_get(list, i)));
        r->leave = STAY;
        run(r, n->b);
        rlhf__jinja_close_scope(&r->e);
    }
    r->leave = STAY;
    json_decref(list);
    json_decref(all);
    if (size == 0 && !r->e.w.state && n->c) run(r, n->c);
}

static void generation(struct runner *r, const struct rlhf__jinja_node *n) {
    size_t from = r->out->text.len;
    rlhf__jinja_open_scope(&r->e);
    run(r, n->b);
    rlhf__jinja_close_scope(&r->e);
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
        if (rlhf__jinja_spend(&r->e, at(r, i))) statement(r, at(r, i));
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
    rlhf__jinja_open_scope(&r.e);
    run(&r, j->body);
    json_decref(r.e.scopes);
    out->raised = r.e.w.state == RLHF__JINJA_RAISED;
    if (r.e.w.state != RLHF__JINJA_UNKNOWN) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_UNSUPPORTED, "line %d: %s", r.e.w.line, r.e.w.why);
}
