// jinja_run.c: see jinja_run.h. This file runs the statements.
#include "chat/jinja_run.h"

#include "chat/jinja_print.h"
#include "chat/message_value.h"

#include <stdlib.h>
#include <string.h>

typedef struct rlhf__jinja_machine machine;
typedef struct rlhf__jinja_node node;

enum rlhf__jinja_leave { STAY = 0, BREAK, CONTINUE };

static const node *at(const machine *m, int32_t i) { return &m->j->node[i]; }

static void run(machine *m, int32_t first);

// ---- text that becomes a value ----

struct capture {
    struct rlhf__buf own, *out;
    int32_t captured, reserved;
};

static void begin_capture(machine *m, struct capture *c) {
    *c = (struct capture){.out = m->out, .captured = m->captured};
    m->held += m->out->len;
    m->out = &c->own;
    m->captured = 1;
}

static rlhf__value end_capture(machine *m, struct capture *c) {
    rlhf__value v = rlhf__jinja_undefined();
    m->out = c->out;
    m->held -= m->out->len;
    m->captured = c->captured;
    if (c->own.bad) rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN, "out of memory");
    if (!m->w.state) v = rlhf__jinja_copied(&m->w, rlhf__buf_text(&c->own), c->own.len);
    rlhf__buf_free(&c->own);
    return v;
}

static void bind(machine *m, const node *macro, const struct rlhf__jinja_args *args) {
    size_t place = 0, used = 0;
    for (int32_t i = macro->e; i && !m->w.state; i = at(m, i)->next, place++) {
        const node *param = at(m, i);
        rlhf__value v = rlhf__jinja_undefined();
        size_t k = 0;
        for (size_t nth = 0; k < args->n; k++) {
            if (args->name[k].len ? rlhf__jinja_same(args->name[k], param->text) : nth == place)
                break;
            nth += args->name[k].len == 0;
        }
        used += k < args->n;
        if (k < args->n)
            v = args->value[k];
        else if (param->a)
            v = rlhf__jinja_eval(m, param->a);
        rlhf__jinja_set(m, param->which, v);
    }
    if (used < args->n)
        rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "the macro '%.*s' takes fewer arguments",
                         (int)(macro->text.len < 40 ? macro->text.len : 40), macro->text.ptr);
}

rlhf__value rlhf__jinja_macro(machine *m, const node *macro, const struct rlhf__jinja_args *args) {
    struct rlhf__jinja_scope scope;
    struct capture c;
    const int32_t loops = m->loops;
    rlhf__jinja_open_scope(m, &scope);
    m->frame = m->n_local; // a macro can read only its arguments and the global variables
    m->loops = 0;
    begin_capture(m, &c);
    bind(m, macro, args);
    run(m, macro->b);
    const rlhf__value v = end_capture(m, &c);
    m->leave = STAY;
    m->loops = loops;
    rlhf__jinja_close_scope(m, &scope);
    return v;
}

// ---- statements ----

// Assigns v to a single name, or the items of v to several names.
static void assign(machine *m, int32_t names, rlhf__value v) {
    if (!at(m, names)->next) {
        rlhf__jinja_set(m, at(m, names)->which, v);
        return;
    }
    const rlhf__value all = rlhf__jinja_items(&m->w, v);
    size_t n = 0;
    for (int32_t i = names; i; i = at(m, i)->next)
        n++;
    if (!m->w.state && all.list->n != n)
        rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "%zu names for %zu values", n, all.list->n);
    for (size_t k = 0; !m->w.state && k < n; k++, names = at(m, names)->next)
        rlhf__jinja_set(m, at(m, names)->which, all.list->item[k]);
}

static void set_statement(machine *m, const node *n) {
    const rlhf__value v = rlhf__jinja_eval(m, n->a);
    if (m->w.state) return;
    if (n->kind == RLHF__JN_SET) {
        assign(m, n->e, v);
        return;
    }
    const rlhf__value of = rlhf__jinja_look_up(m, at(m, n->b)->which);
    if (of.type != RLHF__JINJA_NAMESPACE)
        rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "setting the attribute '%.*s' of %s",
                         (int)(n->text.len < 40 ? n->text.len : 40), n->text.ptr,
                         rlhf__jinja_kind(of));
    else
        rlhf__jinja_put(&m->w, of, n->text, v);
}

static void set_block(machine *m, const node *n) {
    struct rlhf__jinja_scope scope;
    struct capture c;
    rlhf__jinja_open_scope(m, &scope);
    begin_capture(m, &c);
    run(m, n->b);
    const rlhf__value v = end_capture(m, &c);
    rlhf__jinja_close_scope(m, &scope);
    if (!m->w.state) rlhf__jinja_set(m, n->which, v);
}

// The items of `all` for which the loop's condition holds.
static rlhf__value chosen(machine *m, const node *n, rlhf__value all) {
    if (!n->d || m->w.state) return all;
    rlhf__value list = rlhf__jinja_list(&m->w, RLHF__JINJA_LIST, 0);
    for (size_t i = 0; !m->w.state && i < all.list->n; i++) {
        struct rlhf__jinja_scope scope;
        rlhf__jinja_open_scope(m, &scope);
        assign(m, n->e, all.list->item[i]);
        const rlhf__value v = rlhf__jinja_eval(m, n->d);
        if (rlhf__jinja_true(v)) rlhf__jinja_add(&m->w, list, all.list->item[i]);
        rlhf__jinja_close_scope(m, &scope);
    }
    return list;
}

static void for_statement(machine *m, const node *n) {
    rlhf__value list = rlhf__jinja_eval(m, n->a);
    if (!m->w.state) list = rlhf__jinja_items(&m->w, list);
    list = chosen(m, n, list);
    struct rlhf__jinja_loop *loop = m->w.state ? NULL : rlhf__jinja_alloc(&m->w, sizeof *loop);
    if (!loop) return;
    *loop = (struct rlhf__jinja_loop){.list = list.list, .depth = ++m->loops};
    for (; loop->at < list.list->n && m->leave != BREAK && rlhf__jinja_spend(m, n); loop->at++) {
        struct rlhf__jinja_scope scope;
        rlhf__jinja_open_scope(m, &scope);
        if (m->j->loop >= 0)
            rlhf__jinja_set(m, m->j->loop, (rlhf__value){.type = RLHF__JINJA_LOOP, .loop = loop});
        assign(m, n->e, list.list->item[loop->at]);
        m->leave = STAY;
        run(m, n->b);
        rlhf__jinja_close_scope(m, &scope);
    }
    m->leave = STAY;
    m->loops--;
    if (list.list->n == 0 && !m->w.state && n->c) run(m, n->c);
}

static void generation(machine *m, const node *n) {
    struct rlhf__jinja_scope scope;
    const size_t from = m->out->len;
    if (m->captured)
        rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN,
                         "a generation block in a macro or a set block");
    rlhf__jinja_open_scope(m, &scope);
    run(m, n->b);
    rlhf__jinja_close_scope(m, &scope);
    if (!m->w.state && rlhf__turns_add(m->turns, from, m->out->len, NULL) != RLHF_OK)
        rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN, "out of memory");
}

static void statement(machine *m, const node *n) {
    rlhf__value v;
    switch (n->kind) {
    case RLHF__JN_TEXT:
        rlhf__buf_put(m->out, n->text.ptr, (size_t)n->text.len);
        break;
    case RLHF__JN_PRINT:
        v = rlhf__jinja_eval(m, n->a);
        if (!m->w.state) rlhf__jinja_print(&m->w, v, m->out);
        break;
    case RLHF__JN_IF:
        v = rlhf__jinja_eval(m, n->a);
        if (!m->w.state) run(m, rlhf__jinja_true(v) ? n->b : n->c);
        break;
    case RLHF__JN_FOR:
        for_statement(m, n);
        break;
    case RLHF__JN_GENERATION:
        generation(m, n);
        break;
    case RLHF__JN_MACRO:
        rlhf__jinja_set(m, n->which, (rlhf__value){.type = RLHF__JINJA_MACRO, .i = n - m->j->node});
        break;
    case RLHF__JN_SET_BLOCK:
        set_block(m, n);
        break;
    case RLHF__JN_BREAK:
    case RLHF__JN_CONTINUE:
        m->leave = n->kind == RLHF__JN_BREAK ? BREAK : CONTINUE;
        break;
    default:
        set_statement(m, n);
    }
}

static void run(machine *m, int32_t first) {
    m->levels++;
    for (int32_t i = first; i && !m->w.state && !m->leave; i = at(m, i)->next) {
        if (rlhf__jinja_spend(m, at(m, i))) statement(m, at(m, i));
        if (m->out->bad) rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN, "out of memory");
        if (m->held + m->out->len > RLHF__JINJA_TEXT_MAX)
            rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN, "more text than is allowed (%d MiB)",
                             RLHF__JINJA_TEXT_MAX >> 20);
    }
    m->levels--;
}

// ---- the whole template ----

static void set_global(machine *m, const char *name, rlhf__value v) {
    const int32_t symbol = rlhf__jinja_symbol(m->j, name);
    if (symbol >= 0) m->global[symbol] = v;
}

static rlhf__value messages(machine *m, const struct rlhf__jinja_input *in) {
    rlhf__value list = rlhf__jinja_list(&m->w, RLHF__JINJA_LIST, in->n);
    for (size_t i = 0; i < in->n; i++)
        rlhf__jinja_add(&m->w, list, rlhf__message_value(&m->w, &in->messages[i]));
    return list;
}

static void set_globals(machine *m, const json_t *vars) {
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)vars, key, v)
        set_global(m, key, rlhf__jinja_from_json(&m->w, v));
}

static void set_inputs(machine *m, const struct rlhf__jinja_input *in) {
    if (m->date) set_global(m, "strftime_now", (rlhf__value){.type = RLHF__JINJA_DATE});
    set_globals(m, in->vars);
    set_globals(m, in->row_vars);
    if (!in->messages) return;
    set_global(m, "messages", messages(m, in));
    if (in->tools) set_global(m, "tools", rlhf__jinja_from_json(&m->w, in->tools));
    set_global(m, "add_generation_prompt", rlhf__jinja_bool(in->generate));
}

rlhf_status rlhf__jinja_run(const struct rlhf__jinja *j, const struct rlhf__jinja_input *in,
                            struct rlhf__jinja_result *out, struct rlhf__error *err) {
    rlhf__turns_clear(&out->turns);
    machine m = {.j = j,
                 .w = {.steps = RLHF__JINJA_STEPS_MAX, .memory.left = RLHF__JINJA_MEMORY_MAX},
                 .out = &out->turns.text,
                 .turns = &out->turns,
                 .date = in->date && *in->date ? in->date : NULL};
    const size_t bytes = ((size_t)j->n_symbols + 1) * sizeof *m.global;
    m.global = rlhf__jinja_alloc(&m.w, bytes);
    if (m.global) {
        memset(m.global, 0, bytes);
        set_inputs(&m, in);
        run(&m, j->body);
    }
    out->raised = m.w.state == RLHF__JINJA_RAISED;
    out->line = m.w.line;
    snprintf(out->why, sizeof out->why, "%s", m.w.why);
    free(m.local);
    rlhf__jinja_memory_free(&m.w.memory);
    if (m.w.state != RLHF__JINJA_UNKNOWN) return RLHF_OK;
    if (strcmp(m.w.why, "out of memory") == 0)
        return RLHF__NOMEM(err, "out of memory for a chat template");
    return rlhf__fail(err, RLHF_E_UNSUPPORTED, "line %d: %s", m.w.line, m.w.why);
}
