// jinja_eval.c: see jinja_eval.h.
#include "jinja/jinja_eval.h"

#include "jinja/jinja_filter.h"
#include "jinja/jinja_function.h"
#include "jinja/jinja_method.h"
#include "jinja/jinja_run.h"
#include "jinja/jinja_test.h"
#include "values/date.h"
#include "values/jinja_dict.h"
#include "values/jinja_operator.h"

#include <stdlib.h>
#include <string.h>

typedef struct rlhf__jinja_machine machine;
typedef struct rlhf__jinja_node node;

static const node *at(const machine *m, int32_t i) { return &m->j->node[i]; }

int rlhf__jinja_spend(machine *m, const node *n) {
    if (!m->w.state) m->w.line = n->line;
    if (--m->w.steps < 0)
        rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN, "more steps than are allowed (%d)",
                         RLHF__JINJA_STEPS_MAX);
    if (m->levels > RLHF__JINJA_LEVELS_MAX)
        rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN, "too many levels (%d)",
                         RLHF__JINJA_LEVELS_MAX);
    return !m->w.state;
}

// ---- variables ----

void rlhf__jinja_open_scope(machine *m, struct rlhf__jinja_scope *s) {
    *s = (struct rlhf__jinja_scope){m->n_local, m->frame, m->scope};
    m->scope = m->n_local;
    m->blocks++;
}

void rlhf__jinja_close_scope(machine *m, const struct rlhf__jinja_scope *s) {
    m->n_local = s->n_local;
    m->frame = s->frame;
    m->scope = s->scope;
    m->blocks--;
}

void rlhf__jinja_push(machine *m, struct rlhf__jinja_local v) {
    if (m->n_local == m->cap_local) {
        const size_t cap = m->cap_local ? 2 * m->cap_local : 32;
        struct rlhf__jinja_local *grown = realloc(m->local, cap * sizeof *grown);
        if (!grown) {
            rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN, "out of memory");
            return;
        }
        m->local = grown;
        m->cap_local = cap;
    }
    m->local[m->n_local++] = v;
}

void rlhf__jinja_set(machine *m, int32_t symbol, rlhf__value v) {
    if (!m->blocks) {
        m->global[symbol] = v;
        return;
    }
    m->w.steps -= (int64_t)((m->n_local - m->scope) / 64);
    for (size_t i = m->scope; i < m->n_local; i++)
        if (m->local[i].symbol == symbol) {
            m->local[i].value = v;
            return;
        }
    rlhf__jinja_push(m, (struct rlhf__jinja_local){.value = v, .symbol = symbol});
}

rlhf__value rlhf__jinja_look_up(machine *m, int32_t symbol) {
    size_t i = m->n_local;
    while (i > m->frame && m->local[i - 1].symbol != symbol)
        i--;
    m->w.steps -= (int64_t)((m->n_local - i) / 64);
    return i > m->frame ? m->local[i - 1].value : m->global[symbol];
}

// ---- calls ----

static void add_argument(machine *m, struct rlhf__jinja_args *out, rlhf_str name, rlhf__value v) {
    if (out->n == RLHF__JINJA_ARGS_MAX) {
        rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN, "more than %d arguments",
                         RLHF__JINJA_ARGS_MAX);
        return;
    }
    out->name[out->n] = name;
    out->value[out->n++] = v;
}

// Adds the items of *list, or the members of **object.
static void spread(machine *m, struct rlhf__jinja_args *out, int keys, rlhf__value v) {
    if (keys && v.type != RLHF__JINJA_DICT)
        rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "** of %s", rlhf__jinja_kind(v));
    for (size_t i = 0; keys && !m->w.state && i < v.dict->n; i++) {
        const rlhf__value key = v.dict->pair[i].key;
        if (key.type != RLHF__JINJA_STRING || !key.s.len)
            rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "an argument without a name");
        else
            add_argument(m, out, key.s, v.dict->pair[i].value);
    }
    if (keys || m->w.state) return;
    const rlhf__value all = rlhf__jinja_items(&m->w, v);
    for (size_t i = 0; !m->w.state && i < all.list->n; i++)
        add_argument(m, out, (rlhf_str){NULL, 0}, all.list->item[i]);
}

static void arguments(machine *m, int32_t first, struct rlhf__jinja_args *out) {
    out->n = 0;
    for (int32_t i = first; i && !m->w.state; i = at(m, i)->next) {
        const node *n = at(m, i);
        const int spreads = n->kind == RLHF__JN_SPREAD || n->kind == RLHF__JN_SPREAD_KEYS;
        const int named = n->kind == RLHF__JN_KEY;
        const rlhf__value v = rlhf__jinja_eval(m, named || spreads ? n->a : i);
        if (m->w.state) return;
        if (spreads)
            spread(m, out, n->kind == RLHF__JN_SPREAD_KEYS, v);
        else
            add_argument(m, out, named ? n->text : (rlhf_str){NULL, 0}, v);
    }
}

// Calls strftime_now(format).
static rlhf__value date(machine *m, const struct rlhf__jinja_args *args) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (args->n != 1 || args->value[0].type != RLHF__JINJA_STRING)
        return rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED,
                                "strftime_now() of something else than "
                                "one text");
    const rlhf_str format = args->value[0].s;
    const int good = rlhf__date_put(m->date, format, &text) && !text.bad;
    const rlhf__value v =
        good ? rlhf__jinja_copied(&m->w, rlhf__buf_text(&text), text.len)
             : rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN, "the format '%.*s' of strftime_now",
                                RLHF__JINJA_NAME(format));
    rlhf__buf_finish(&text);
    return v;
}

// Calls a value. `name` is its name in the template, for messages.
static rlhf__value call_value(machine *m, rlhf__value of, rlhf_str name,
                              const struct rlhf__jinja_args *args) {
    switch (of.type) {
    case RLHF__JINJA_MACRO:
        return rlhf__jinja_macro(m, of.macro, args);
    case RLHF__JINJA_METHOD:
        return rlhf__jinja_method(&m->w, of.method->of, of.method->name, args);
    case RLHF__JINJA_FUNCTION:
        return rlhf__jinja_function(&m->w, (int32_t)of.i, args);
    case RLHF__JINJA_JOINER:
        return rlhf__jinja_joiner(&m->w, of, args);
    case RLHF__JINJA_LOOP:
        return rlhf__jinja_recursion(m, of.loop, args);
    case RLHF__JINJA_DATE:
        return date(m, args);
    default:
        break;
    }
    if (rlhf__jinja_is(name, "strftime_now"))
        return rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN,
                                "the function 'strftime_now' would write today's date, and a run "
                                "must be the same tomorrow: give the date, for example "
                                "prompts.date=2026-11-28 (--date 2026-11-28)");
    if (name.len && of.type == RLHF__JINJA_UNDEFINED)
        return rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "the function '%.*s'",
                                RLHF__JINJA_NAME(name));
    return rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "a call of %s", rlhf__jinja_kind(of));
}

rlhf__value rlhf__jinja_call(machine *m, const node *n, rlhf__value caller) {
    const node *f = at(m, n->a);
    const int member = f->kind == RLHF__JN_ATTR;
    struct rlhf__jinja_args args;
    rlhf__value of = rlhf__jinja_eval(m, member ? f->a : n->a);
    if (m->w.state) return rlhf__jinja_undefined();
    const int method = member && rlhf__jinja_has_method(of, f->text);
    if (member && !method) {
        const rlhf__value x = of;
        of = rlhf__jinja_attribute(&m->w, x, f->text);
        if (!m->w.state && of.type == RLHF__JINJA_UNDEFINED)
            return rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "the method '%.*s' of %s",
                                    RLHF__JINJA_NAME(f->text), rlhf__jinja_kind(x));
    }
    if (!m->w.state) arguments(m, n->b, &args);
    if (!m->w.state && caller.type) add_argument(m, &args, (rlhf_str){"caller", 6}, caller);
    if (m->w.state) return rlhf__jinja_undefined();
    if (method) return rlhf__jinja_method(&m->w, of, f->text, &args);
    return call_value(m, of, f->kind == RLHF__JN_NAME ? f->text : (rlhf_str){"", 0}, &args);
}

// The test `filter`: is there a filter of this name?
static rlhf__value is_filter(machine *m, const node *n, rlhf__value v,
                             const struct rlhf__jinja_args *args) {
    rlhf__value none[RLHF__JINJA_PARAMS_MAX];
    if (!rlhf__jinja_bind(&m->w, "the test", n->text, "", args, none))
        return rlhf__jinja_undefined();
    if (v.type == RLHF__JINJA_LIST || v.type == RLHF__JINJA_DICT)
        return rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "a filter called %s",
                                rlhf__jinja_kind(v));
    return rlhf__jinja_bool(v.type == RLHF__JINJA_STRING && rlhf__jinja_filter_find(v.s));
}

static rlhf__value filter_or_test(machine *m, const node *n) {
    struct rlhf__jinja_args args;
    const rlhf__value of = rlhf__jinja_eval(m, n->a);
    if (m->w.state) return rlhf__jinja_undefined();
    arguments(m, n->b, &args);
    if (m->w.state) return rlhf__jinja_undefined();
    if (n->kind == RLHF__JN_FILTER)
        return rlhf__jinja_filter(&m->w, n->which, n->text, of, &args, 0);
    if (rlhf__jinja_is(n->text, "filter")) return is_filter(m, n, of, &args);
    return rlhf__jinja_bool(rlhf__jinja_test(&m->w, n->which, n->text, of, &args));
}

// ---- expressions ----

static rlhf__value attribute(machine *m, const node *n) {
    const rlhf__value of = rlhf__jinja_eval(m, n->a);
    return m->w.state ? rlhf__jinja_undefined() : rlhf__jinja_attribute(&m->w, of, n->text);
}

// A comparison can be a chain: 1 < x < 3 compares x twice, and stops at the first that is false.
static rlhf__value binary(machine *m, const node *n) {
    rlhf__value a = rlhf__jinja_eval(m, n->a), out;
    for (;; n = at(m, n->c)) {
        if (m->w.state) return rlhf__jinja_undefined();
        const rlhf__value b = rlhf__jinja_eval(m, n->b);
        if (m->w.state) return rlhf__jinja_undefined();
        out = rlhf__jinja_binary(&m->w, n->which, a, b);
        if (!n->c || !rlhf__jinja_true(out)) return out;
        a = b;
    }
}

static rlhf__value item_or_slice(machine *m, const node *n) {
    const rlhf__value of = rlhf__jinja_eval(m, n->a);
    const int32_t place[] = {n->b, n->c, n->d};
    rlhf__value part[3] = {{0}};
    for (int i = 0; i < 3 && !m->w.state; i++)
        if (place[i]) part[i] = rlhf__jinja_eval(m, place[i]);
    if (m->w.state) return rlhf__jinja_undefined();
    if (n->kind == RLHF__JN_SLICE) return rlhf__jinja_slice(&m->w, of, part[0], part[1], part[2]);
    return rlhf__jinja_member(&m->w, of, part[0]);
}

// "a and b" and "a or b" return one of the two operands. "b if a else c" returns b or c.
static rlhf__value choice(machine *m, const node *n) {
    const rlhf__value a = rlhf__jinja_eval(m, n->a);
    const int yes = rlhf__jinja_true(a);
    if (m->w.state) return rlhf__jinja_undefined();
    if (n->kind == RLHF__JN_COND)
        return yes    ? rlhf__jinja_eval(m, n->b)
               : n->c ? rlhf__jinja_eval(m, n->c)
                      : rlhf__jinja_undefined();
    return yes == (n->kind == RLHF__JN_AND) ? rlhf__jinja_eval(m, n->b) : a;
}

static rlhf__value collection(machine *m, const node *n) {
    const int32_t type = n->kind == RLHF__JN_LIST    ? RLHF__JINJA_LIST
                         : n->kind == RLHF__JN_TUPLE ? RLHF__JINJA_TUPLE
                                                     : RLHF__JINJA_DICT;
    rlhf__value out = type == RLHF__JINJA_DICT ? rlhf__jinja_dict(&m->w, type, 0)
                                               : rlhf__jinja_list(&m->w, type, 0);
    for (int32_t i = n->a; i && !m->w.state; i = at(m, i)->next) {
        const rlhf__value v = rlhf__jinja_eval(m, type == RLHF__JINJA_DICT ? at(m, i)->a : i);
        if (type != RLHF__JINJA_DICT) {
            rlhf__jinja_add(&m->w, out, v);
            continue;
        }
        if (!m->w.state) rlhf__jinja_put_key(&m->w, out, v, rlhf__jinja_eval(m, at(m, i)->b));
    }
    return out;
}

static rlhf__value value_of(machine *m, const node *n) {
    rlhf__value v;
    switch (n->kind) {
    case RLHF__JN_CONST:
        return n->value;
    case RLHF__JN_NAME:
        return rlhf__jinja_look_up(m, n->which);
    case RLHF__JN_ATTR:
        return attribute(m, n);
    case RLHF__JN_ITEM:
    case RLHF__JN_SLICE:
        return item_or_slice(m, n);
    case RLHF__JN_CALL:
        return rlhf__jinja_call(m, n, rlhf__jinja_undefined());
    case RLHF__JN_FILTER:
    case RLHF__JN_TEST:
        return filter_or_test(m, n);
    case RLHF__JN_NOT:
        return rlhf__jinja_bool(!rlhf__jinja_true(rlhf__jinja_eval(m, n->a)));
    case RLHF__JN_MINUS:
    case RLHF__JN_PLUS:
        v = rlhf__jinja_eval(m, n->a);
        if (m->w.state) return rlhf__jinja_undefined();
        return rlhf__jinja_signed(&m->w, v, n->kind == RLHF__JN_MINUS);
    case RLHF__JN_BLOCK_TEXT:
        return m->block_text;
    case RLHF__JN_BINARY:
        return binary(m, n);
    case RLHF__JN_LIST:
    case RLHF__JN_TUPLE:
    case RLHF__JN_DICT:
        return collection(m, n);
    default:
        return choice(m, n);
    }
}

rlhf__value rlhf__jinja_eval(machine *m, int32_t place) {
    const node *n = at(m, place);
    m->levels++;
    const rlhf__value v = rlhf__jinja_spend(m, n) ? value_of(m, n) : rlhf__jinja_undefined();
    m->levels--;
    return m->w.state ? rlhf__jinja_undefined() : v;
}
