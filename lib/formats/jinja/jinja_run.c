// jinja_run.c: see jinja_run.h. This file runs the statements.
#include "jinja/jinja_run.h"

#include "jinja/jinja_function.h"
#include "values/jinja_dict.h"
#include "values/jinja_print.h"
#include "values/message_value.h"

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
    int32_t captured;
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
    rlhf__buf_finish(&c->own);
    return v;
}

// ---- macros ----

// The variables that are visible now, besides the global ones.
static const struct rlhf__jinja_local *visible(machine *m, size_t *n) {
    *n = m->n_local - m->frame;
    struct rlhf__jinja_local *seen = rlhf__jinja_alloc(&m->w, *n * sizeof *seen + 1);
    if (!seen || !rlhf__jinja_pay(&m->w, *n * sizeof *seen)) {
        *n = 0;
        return NULL;
    }
    if (*n) memcpy(seen, m->local + m->frame, *n * sizeof *seen);
    return seen;
}

// Opens a scope in which only `seen` and the global variables are visible.
static void open_frame(machine *m, struct rlhf__jinja_scope *scope,
                       const struct rlhf__jinja_local *seen, size_t n) {
    rlhf__jinja_open_scope(m, scope);
    m->frame = m->n_local;
    for (size_t i = 0; i < n && !m->w.state; i++)
        rlhf__jinja_push(m, seen[i]);
    m->scope = m->n_local;
    rlhf__jinja_pay(&m->w, n * sizeof *seen);
}

static void set_named(machine *m, const char *name, rlhf__value v) {
    const int32_t symbol = rlhf__jinja_symbol(m->j, name);
    if (symbol >= 0) rlhf__jinja_set(m, symbol, v);
}

// Takes argument k out of `args`.
static rlhf__value taken(struct rlhf__jinja_args *args, size_t k) {
    const rlhf__value v = args->value[k];
    for (args->n--; k < args->n; k++) {
        args->value[k] = args->value[k + 1];
        args->name[k] = args->name[k + 1];
    }
    return v;
}

// Sets caller, kwargs and varargs to the arguments that no parameter took. Raises an error if there
// are others.
static void bind_rest(machine *m, const node *macro, struct rlhf__jinja_args *args) {
    rlhf__value v = rlhf__jinja_undefined();
    rlhf__value named = rlhf__jinja_dict(&m->w, RLHF__JINJA_DICT, 0),
                others = rlhf__jinja_list(&m->w, RLHF__JINJA_TUPLE, 0);
    for (size_t k = 0; k < args->n && !m->w.state; k++) {
        const rlhf_str name = args->name[k];
        if ((macro->uses & RLHF__JINJA_USES_CALLER) && rlhf__jinja_is(name, "caller"))
            v = args->value[k];
        else if (name.len && (macro->uses & RLHF__JINJA_USES_KWARGS))
            rlhf__jinja_put(&m->w, named, name, args->value[k]);
        else if (!name.len && (macro->uses & RLHF__JINJA_USES_VARARGS))
            rlhf__jinja_add(&m->w, others, args->value[k]);
        else if (name.len)
            rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "the macro '%.*s' has no argument '%.*s'",
                             RLHF__JINJA_NAME(macro->text), RLHF__JINJA_NAME(name));
        else
            rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "the macro '%.*s' takes fewer arguments",
                             RLHF__JINJA_NAME(macro->text));
    }
    if (macro->uses & RLHF__JINJA_USES_CALLER) set_named(m, "caller", v);
    if (macro->uses & RLHF__JINJA_USES_KWARGS) set_named(m, "kwargs", named);
    if (macro->uses & RLHF__JINJA_USES_VARARGS) set_named(m, "varargs", others);
}

static void bind(machine *m, const node *macro, const struct rlhf__jinja_args *given) {
    struct rlhf__jinja_args args = *given;
    node rest = *macro;
    for (int32_t i = macro->e; i && !m->w.state; i = at(m, i)->next) {
        const node *param = at(m, i);
        rlhf__value v = rlhf__jinja_undefined();
        size_t k = 0;
        while (k < args.n && args.name[k].len)
            k++; // the first positional argument
        for (size_t named = 0; k == args.n && named < args.n; named++)
            if (rlhf__jinja_same(args.name[named], param->text)) k = named;
        if (k < args.n)
            v = taken(&args, k);
        else if (param->a)
            v = rlhf__jinja_eval(m, param->a);
        if (rlhf__jinja_is(param->text, "caller")) rest.uses &= ~RLHF__JINJA_USES_CALLER;
        rlhf__jinja_set(m, param->which, v);
    }
    if (!m->w.state) bind_rest(m, &rest, &args);
}

rlhf__value rlhf__jinja_macro(machine *m, const struct rlhf__jinja_macro *macro,
                              const struct rlhf__jinja_args *args) {
    struct rlhf__jinja_scope scope;
    struct capture c;
    const node *n = at(m, macro->node);
    open_frame(m, &scope, macro->seen, macro->n_seen);
    begin_capture(m, &c);
    bind(m, n, args);
    run(m, n->b);
    const rlhf__value v = end_capture(m, &c);
    m->leave = STAY;
    rlhf__jinja_close_scope(m, &scope);
    return v;
}

// Makes a macro, or the body of a call block or of a recursive loop. It can see the variables that
// are visible now; a macro with a name also sees itself.
static rlhf__value macro_of(machine *m, const node *n) {
    struct rlhf__jinja_macro *macro = rlhf__jinja_alloc(&m->w, sizeof *macro);
    if (!macro) return rlhf__jinja_undefined();
    const rlhf__value v = {.type = RLHF__JINJA_MACRO, .macro = macro};
    *macro = (struct rlhf__jinja_macro){.name = n->text, .node = (int32_t)(n - m->j->node)};
    if (n->kind == RLHF__JN_MACRO) rlhf__jinja_set(m, n->which, v);
    macro->seen = visible(m, &macro->n_seen);
    return v;
}

// Writes the value of a block, which jinja2 does not convert to text.
static void put_text_only(machine *m, rlhf__value v) {
    if (!m->w.state && v.type != RLHF__JINJA_STRING)
        rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "a block that becomes %s", rlhf__jinja_kind(v));
    if (!m->w.state) rlhf__jinja_print(&m->w, v, m->out);
}

static void call_block(machine *m, const node *n) {
    const rlhf__value caller = macro_of(m, n);
    if (m->w.state) return;
    put_text_only(m, rlhf__jinja_call(m, at(m, n->a), caller));
}

// ---- statements ----

// Assigns v to a name, or the items of v to several names.
static void assign(machine *m, int32_t target, rlhf__value v) {
    if (at(m, target)->kind != RLHF__JN_TUPLE) {
        rlhf__jinja_set(m, at(m, target)->which, v);
        return;
    }
    const rlhf__value all = rlhf__jinja_items(&m->w, v);
    int32_t name = at(m, target)->a;
    size_t n = 0;
    for (int32_t i = name; i; i = at(m, i)->next)
        n++;
    if (!m->w.state && all.list->n != n)
        rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "%zu names for %zu values", n, all.list->n);
    for (size_t k = 0; !m->w.state && k < n; k++, name = at(m, name)->next)
        assign(m, name, all.list->item[k]);
}

static void set_statement(machine *m, const node *n) {
    const rlhf__value v = rlhf__jinja_eval(m, n->a);
    if (m->w.state) return;
    if (n->kind == RLHF__JN_SET) {
        assign(m, n->e, v);
        return;
    }
    const rlhf__value of = rlhf__jinja_look_up(m, at(m, n->b)->which);
    if (of.type != RLHF__JINJA_NAMESPACE || (n->text.len && n->text.ptr[0] == '_'))
        rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "setting the attribute '%.*s' of %s",
                         RLHF__JINJA_NAME(n->text), rlhf__jinja_kind(of));
    else
        rlhf__jinja_put(&m->w, of, n->text, v);
}

// The text of a block's body, after the block's filters.
static rlhf__value block_text(machine *m, const node *n) {
    struct rlhf__jinja_scope scope;
    struct capture c;
    rlhf__jinja_open_scope(m, &scope);
    if (n->which) rlhf__jinja_set(m, at(m, n->e)->which, rlhf__jinja_undefined());
    begin_capture(m, &c);
    run(m, n->b);
    rlhf__value v = end_capture(m, &c);
    rlhf__jinja_close_scope(m, &scope);
    m->block_text = v;
    return n->a && !m->w.state ? rlhf__jinja_eval(m, n->a) : v;
}

static void filtered(machine *m, const node *n) { put_text_only(m, block_text(m, n)); }

static void set_block(machine *m, const node *n) {
    const rlhf__value v = block_text(m, n);
    if (!m->w.state) assign(m, n->e, v);
}

static void with(machine *m, const node *n) {
    struct rlhf__jinja_scope scope;
    rlhf__value values = rlhf__jinja_list(&m->w, RLHF__JINJA_LIST, 0);
    // No value sees the names that the block sets.
    for (int32_t i = n->e; i && !m->w.state; i = at(m, i)->next)
        rlhf__jinja_add(&m->w, values, rlhf__jinja_eval(m, at(m, i)->b));
    rlhf__jinja_open_scope(m, &scope);
    size_t k = 0;
    for (int32_t i = n->e; i && !m->w.state; i = at(m, i)->next)
        assign(m, at(m, i)->a, values.list->item[k++]);
    run(m, n->b);
    rlhf__jinja_close_scope(m, &scope);
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

// Runs the body of a loop for each item of a list.
static void loop_over(machine *m, const node *n, rlhf__value list, int64_t depth,
                      const struct rlhf__jinja_macro *frame) {
    struct rlhf__jinja_loop *loop = m->w.state ? NULL : rlhf__jinja_alloc(&m->w, sizeof *loop);
    if (!loop) return;
    *loop = (struct rlhf__jinja_loop){.list = list.list,
                                      .depth = depth,
                                      .frame = frame,
                                      .node = n->which ? (int32_t)(n - m->j->node) : 0};
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
    if (list.list->n == 0 && !m->w.state && n->c) {
        struct rlhf__jinja_scope scope;
        rlhf__jinja_open_scope(m, &scope);
        run(m, n->c);
        rlhf__jinja_close_scope(m, &scope);
    }
}

static void for_statement(machine *m, const node *n) {
    rlhf__value list = rlhf__jinja_eval(m, n->a);
    if (!m->w.state) list = rlhf__jinja_items(&m->w, list);
    list = chosen(m, n, list);
    const rlhf__value frame = n->which && !m->w.state ? macro_of(m, n) : rlhf__jinja_undefined();
    loop_over(m, n, list, 1, frame.type ? frame.macro : NULL);
}

rlhf__value rlhf__jinja_recursion(machine *m, const struct rlhf__jinja_loop *loop,
                                  const struct rlhf__jinja_args *args) {
    rlhf__value a[RLHF__JINJA_PARAMS_MAX];
    struct rlhf__jinja_scope scope;
    struct capture c;
    if (!loop->node)
        return rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED,
                                "a call of a loop that is not recursive");
    if (!rlhf__jinja_bind(&m->w, "the function", (rlhf_str){"loop", 4}, "iterable", args, a))
        return rlhf__jinja_undefined();
    const node *n = at(m, loop->node);
    open_frame(m, &scope, loop->frame->seen, loop->frame->n_seen);
    begin_capture(m, &c);
    loop_over(m, n, chosen(m, n, rlhf__jinja_items(&m->w, a[0])), loop->depth + 1, loop->frame);
    const rlhf__value v = end_capture(m, &c);
    rlhf__jinja_close_scope(m, &scope);
    return v;
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
        macro_of(m, n);
        break;
    case RLHF__JN_CALL_BLOCK:
        call_block(m, n);
        break;
    case RLHF__JN_FILTERED:
        filtered(m, n);
        break;
    case RLHF__JN_WITH:
        with(m, n);
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

static void set_functions(machine *m) {
    for (int32_t i = 0; i < m->j->n_symbols; i++) {
        const int32_t which = rlhf__jinja_function_find(m->j->symbol[i]);
        if (which) m->global[i] = (rlhf__value){.type = RLHF__JINJA_FUNCTION, .i = which};
    }
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
        set_functions(&m);
        set_inputs(&m, in);
        run(&m, j->body);
    }
    out->raised = m.w.state == RLHF__JINJA_RAISED;
    out->line = m.w.line;
    snprintf(out->why, sizeof out->why, "%s", m.w.why);
    free(m.local);
    rlhf__jinja_memory_finish(&m.w.memory);
    if (m.w.state != RLHF__JINJA_UNKNOWN) return RLHF_OK;
    if (strcmp(m.w.why, "out of memory") == 0)
        return RLHF__NOMEM(err, "out of memory for a chat template");
    return rlhf__fail(err, RLHF_E_UNSUPPORTED, "line %d: %s", m.w.line, m.w.why);
}
