// jinja_eval.c: see jinja_eval.h.
#include "chat/jinja_eval.h"

#include "chat/date.h"
#include "chat/jinja_filter.h"
#include "chat/jinja_operator.h"
#include "chat/jinja_run.h"
#include "chat/jinja_test.h"

#include <stdlib.h>
#include <string.h>

typedef struct rlhf__jinja_machine machine;
typedef struct rlhf__jinja_node node;

static const node *at(const machine *m, int32_t i) { return &m->j->node[i]; }

// The two arguments that "%.*s" needs to print a name, cut to 40 bytes.
#define NAME(s) (int)((s).len < 40 ? (s).len : 40), (s).ptr

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
    m->local[m->n_local++] = (struct rlhf__jinja_local){.value = v, .symbol = symbol};
}

rlhf__value rlhf__jinja_look_up(machine *m, int32_t symbol) {
    size_t i = m->n_local;
    while (i > m->frame && m->local[i - 1].symbol != symbol)
        i--;
    m->w.steps -= (int64_t)((m->n_local - i) / 64);
    return i > m->frame ? m->local[i - 1].value : m->global[symbol];
}

// ---- calls ----

static void arguments(machine *m, int32_t first, struct rlhf__jinja_args *out) {
    out->n = 0;
    for (int32_t i = first; i && !m->w.state; i = at(m, i)->next) {
        const node *n = at(m, i);
        if (out->n == RLHF__JINJA_ARGS_MAX) {
            rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN, "more than %d arguments",
                             RLHF__JINJA_ARGS_MAX);
            return;
        }
        const int named = n->kind == RLHF__JN_KEY;
        const rlhf__value v = rlhf__jinja_eval(m, named ? n->a : i);
        out->name[out->n] = named ? n->text : (rlhf_str){NULL, 0};
        out->value[out->n++] = v;
    }
}

static rlhf__value range(machine *m, const struct rlhf__jinja_args *args) {
    int64_t v[3] = {0, 0, 1};
    for (size_t i = 0; i < args->n && i < 3; i++) {
        if (args->value[i].type != RLHF__JINJA_INT && args->value[i].type != RLHF__JINJA_BOOL)
            return rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "a range() of %s",
                                    rlhf__jinja_kind(args->value[i]));
        v[args->n == 1 ? 1 : i] = args->value[i].i;
    }
    if (args->n < 1 || args->n > 3 || v[2] == 0)
        return rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "such a range()");
    const double n = ((double)v[1] - (double)v[0]) / (double)v[2];
    if (n > RLHF__JINJA_RANGE_MAX)
        return rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN, "a range() of more than %d numbers",
                                RLHF__JINJA_RANGE_MAX);
    rlhf__value list = rlhf__jinja_list(&m->w, RLHF__JINJA_LIST, n > 0 ? (size_t)n + 1 : 0);
    int over = 0;
    for (int64_t i = v[0];
         !over && (v[2] > 0 ? i < v[1] : i > v[1]) && rlhf__jinja_pay(&m->w, 1);) {
        rlhf__jinja_add(&m->w, list, rlhf__jinja_int(i));
        over = __builtin_add_overflow(i, v[2], &i);
    }
    return list;
}

// Makes the object that namespace(...) or dict(...) returns. Positional arguments must be objects;
// their members are copied to the result. Each named argument becomes a member.
static rlhf__value object(machine *m, int32_t type, const struct rlhf__jinja_args *args) {
    rlhf__value out = rlhf__jinja_dict(&m->w, type, args->n);
    for (size_t i = 0; i < args->n; i++) {
        const rlhf__value v = args->value[i];
        if (args->name[i].len)
            rlhf__jinja_put(&m->w, out, args->name[i], v);
        else if (v.type != RLHF__JINJA_DICT)
            return rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN, "an object made of %s",
                                    rlhf__jinja_kind(v));
        else
            for (size_t k = 0; k < v.dict->n; k++)
                rlhf__jinja_put(&m->w, out, v.dict->pair[k].key, v.dict->pair[k].value);
    }
    return out;
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
    const rlhf__value v = good
                              ? rlhf__jinja_copied(&m->w, rlhf__buf_text(&text), text.len)
                              : rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN,
                                                 "the format '%.*s' of strftime_now", NAME(format));
    rlhf__buf_free(&text);
    return v;
}

static rlhf__value function(machine *m, const node *f, const struct rlhf__jinja_args *args) {
    if (rlhf__jinja_is(f->text, "raise_exception")) {
        const rlhf__value said = args->n ? args->value[0] : rlhf__jinja_undefined();
        const rlhf_str s = said.type == RLHF__JINJA_STRING ? said.s : (rlhf_str){"", 0};
        return rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "%.*s", (int)(s.len < 250 ? s.len : 250),
                                s.ptr);
    }
    if (rlhf__jinja_is(f->text, "namespace")) return object(m, RLHF__JINJA_NAMESPACE, args);
    if (rlhf__jinja_is(f->text, "dict")) return object(m, RLHF__JINJA_DICT, args);
    if (rlhf__jinja_is(f->text, "range")) return range(m, args);
    if (rlhf__jinja_is(f->text, "strftime_now"))
        return rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN,
                                "the function 'strftime_now' would write today's date, and a run "
                                "must be the same tomorrow: give the date, for example "
                                "prompts.date=2026-11-28 (--date 2026-11-28)");
    const int known = rlhf__jinja_is(f->text, "cycler") || rlhf__jinja_is(f->text, "joiner") ||
                      rlhf__jinja_is(f->text, "lipsum");
    return rlhf__jinja_stop(&m->w, known ? RLHF__JINJA_UNKNOWN : RLHF__JINJA_RAISED,
                            "the function '%.*s'", NAME(f->text));
}

// Calls loop.cycle(...). It returns its first argument in the first iteration, its second argument
// in the second iteration, and so on, and starts again after the last argument.
static rlhf__value loop_method(machine *m, rlhf_str name, const struct rlhf__jinja_loop *loop,
                               const struct rlhf__jinja_args *args) {
    if (rlhf__jinja_is(name, "cycle") && args->n) return args->value[loop->at % args->n];
    return rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN, "the method '%.*s' of a loop", NAME(name));
}

static rlhf__value call(machine *m, const node *n) {
    const node *f = at(m, n->a);
    struct rlhf__jinja_args args;
    rlhf__value of;
    if (f->kind == RLHF__JN_ATTR) {
        of = rlhf__jinja_eval(m, f->a);
        if (m->w.state) return rlhf__jinja_undefined();
        arguments(m, n->b, &args);
        if (m->w.state) return rlhf__jinja_undefined();
        if (of.type == RLHF__JINJA_LOOP) return loop_method(m, f->text, of.loop, &args);
        return rlhf__jinja_method(&m->w, f->text, of, &args);
    }
    of = rlhf__jinja_eval(m, n->a);
    if (!m->w.state) arguments(m, n->b, &args);
    if (m->w.state) return rlhf__jinja_undefined();
    if (of.type == RLHF__JINJA_DATE) return date(m, &args);
    if (of.type == RLHF__JINJA_MACRO) return rlhf__jinja_macro(m, at(m, (int32_t)of.i), &args);
    if (f->kind == RLHF__JN_NAME && of.type == RLHF__JINJA_UNDEFINED) return function(m, f, &args);
    return rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "a call of %s", rlhf__jinja_kind(of));
}

static rlhf__value filter_or_test(machine *m, const node *n) {
    struct rlhf__jinja_args args;
    const rlhf__value of = rlhf__jinja_eval(m, n->a);
    if (m->w.state) return rlhf__jinja_undefined();
    arguments(m, n->b, &args);
    if (m->w.state) return rlhf__jinja_undefined();
    if (n->kind == RLHF__JN_FILTER) return rlhf__jinja_filter(&m->w, n->which, n->text, of, &args);
    return rlhf__jinja_bool(rlhf__jinja_test(&m->w, n->which, n->text, of, &args, 0));
}

// ---- expressions ----

static rlhf__value of_loop(rlhf_str name, const struct rlhf__jinja_loop *loop) {
    const size_t i = loop->at, n = loop->list->n;
    const rlhf__value none = rlhf__jinja_undefined();
    const struct {
        const char *name;
        size_t value;
    } numbers[] = {{"index0", i},
                   {"index", i + 1},
                   {"length", n},
                   {"revindex", n - i},
                   {"depth", (size_t)loop->depth},
                   {"revindex0", n - i - 1},
                   {"depth0", (size_t)loop->depth - 1}};
    if (rlhf__jinja_is(name, "first")) return rlhf__jinja_bool(i == 0);
    if (rlhf__jinja_is(name, "last")) return rlhf__jinja_bool(i + 1 == n);
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        if (rlhf__jinja_is(name, numbers[k].name))
            return rlhf__jinja_int((int64_t)numbers[k].value);
    if (rlhf__jinja_is(name, "previtem")) return i ? loop->list->item[i - 1] : none;
    if (rlhf__jinja_is(name, "nextitem")) return i + 1 < n ? loop->list->item[i + 1] : none;
    return none;
}

static rlhf__value attribute(machine *m, const node *n) {
    const rlhf__value of = rlhf__jinja_eval(m, n->a);
    if (of.type == RLHF__JINJA_UNDEFINED)
        return rlhf__jinja_stop(&m->w, RLHF__JINJA_RAISED, "'%.*s' of an undefined value",
                                NAME(n->text));
    if (of.type == RLHF__JINJA_LOOP) return of_loop(n->text, of.loop);
    if (of.type == RLHF__JINJA_DICT && rlhf__jinja_has_method(n->text))
        return (rlhf__value){.type = RLHF__JINJA_METHOD};
    if (!rlhf__jinja_is_dict(of)) return rlhf__jinja_undefined();
    const rlhf__value *v = rlhf__jinja_get(&m->w, of.dict, n->text);
    return v ? *v : rlhf__jinja_undefined();
}

static rlhf__value binary(machine *m, const node *n) {
    const rlhf__value a = rlhf__jinja_eval(m, n->a);
    if (m->w.state) return rlhf__jinja_undefined();
    const rlhf__value b = rlhf__jinja_eval(m, n->b);
    return m->w.state ? rlhf__jinja_undefined() : rlhf__jinja_binary(&m->w, n->which, a, b);
}

static rlhf__value item_or_slice(machine *m, const node *n) {
    const rlhf__value of = rlhf__jinja_eval(m, n->a);
    const int32_t place[] = {n->b, n->c, n->d};
    rlhf__value part[3] = {{0}};
    for (int i = 0; i < 3 && !m->w.state; i++)
        if (place[i]) part[i] = rlhf__jinja_eval(m, place[i]);
    if (m->w.state) return rlhf__jinja_undefined();
    if (n->kind == RLHF__JN_SLICE) return rlhf__jinja_slice(&m->w, of, part[0], part[1], part[2]);
    return rlhf__jinja_item(&m->w, of, part[0]);
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
        if (v.type != RLHF__JINJA_STRING)
            rlhf__jinja_stop(&m->w, RLHF__JINJA_UNKNOWN, "a key that is not a string");
        else
            rlhf__jinja_put(&m->w, out, v.s, rlhf__jinja_eval(m, at(m, i)->b));
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
        return call(m, n);
    case RLHF__JN_FILTER:
    case RLHF__JN_TEST:
        return filter_or_test(m, n);
    case RLHF__JN_NOT:
        return rlhf__jinja_bool(!rlhf__jinja_true(rlhf__jinja_eval(m, n->a)));
    case RLHF__JN_MINUS:
        v = rlhf__jinja_eval(m, n->a);
        return rlhf__jinja_binary(&m->w, RLHF__JINJA_OP_SUB, rlhf__jinja_int(0), v);
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
