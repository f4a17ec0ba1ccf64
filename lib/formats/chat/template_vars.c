// template_vars.c: see template_vars.h.
#include "chat/template_vars.h"

#include "base/json.h"
#include "base/printable.h"

#include <stdlib.h>
#include <string.h>

typedef struct rlhf__jinja_node node;

// ---- which names a template reads ----

// How often a name occurs: as an expression, where the template sets it, and as the name of a loop
// or macro, whose value is never the caller's.
struct uses {
    int32_t all, set, own, tested;
};

// Counts the name in the target of an assignment: a name, or a list or tuple of targets.
static int32_t in_target(const struct rlhf__jinja *j, int32_t target, int32_t symbol) {
    const node *t = &j->node[target];
    int32_t n = 0;
    if (t->kind == RLHF__JN_NAME) return t->which == symbol;
    if (t->kind != RLHF__JN_TUPLE && t->kind != RLHF__JN_LIST) return 0;
    for (int32_t i = t->a; i; i = j->node[i].next)
        n += in_target(j, i, symbol);
    return n;
}

static struct uses uses_of(const struct rlhf__jinja *j, int32_t symbol) {
    struct uses u = {0};
    for (size_t i = 1; i < j->n; i++) {
        const node *n = &j->node[i];
        const node *a = n->kind == RLHF__JN_TEST ? &j->node[n->a] : NULL;
        if (n->kind == RLHF__JN_NAME) u.all += n->which == symbol;
        if (n->kind == RLHF__JN_SET || n->kind == RLHF__JN_SET_BLOCK)
            u.set += in_target(j, n->e, symbol);
        if (n->kind == RLHF__JN_FOR) u.own += in_target(j, n->e, symbol);
        for (int32_t k = n->kind == RLHF__JN_WITH ? n->e : 0; k; k = j->node[k].next)
            u.set += in_target(j, j->node[k].a, symbol);
        if (n->kind == RLHF__JN_MACRO || n->kind == RLHF__JN_PARAM) u.own += n->which == symbol;
        if (a && a->kind == RLHF__JN_NAME && a->which == symbol)
            u.tested += rlhf__jinja_is(n->text, "defined") || rlhf__jinja_is(n->text, "undefined");
    }
    return u;
}

int rlhf__template_reads(const struct rlhf__template *t, const char *name) {
    const int32_t symbol = rlhf__jinja_symbol(&t->jinja, name);
    if (symbol < 0) return 0;
    const struct uses u = uses_of(&t->jinja, symbol);
    return !u.own && u.all > u.set;
}

// ---- names that are not the user's ----

static const char *const ours[] = {"messages", "tools", "documents", "add_generation_prompt"};
static const char *const functions[] = {"range", "namespace", "raise_exception", "strftime_now",
                                        "dict",  "cycler",    "joiner",          "lipsum",
                                        "loop",  "caller",    "varargs",         "kwargs"};

static int is_among(const char *const *list, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0) return 1;
    return 0;
}

#define IS_AMONG(list, name) is_among(list, sizeof(list) / sizeof *(list), name)

// 1 if a user may want to set the name: the template reads it, and never sets it or tests for it.
static int is_offered(const struct rlhf__template *t, int32_t symbol, const char *name) {
    const struct uses u = uses_of(&t->jinja, symbol);
    if (u.own || u.all <= u.set || (u.set && !u.tested)) return 0;
    return !IS_AMONG(ours, name) && !IS_AMONG(functions, name) && !json_object_get(t->vars, name);
}

static void put_offers(const struct rlhf__template *t, struct rlhf__buf *out) {
    size_t n = 0;
    for (int32_t i = 0; t && i < t->jinja.n_symbols; i++) {
        char name[80];
        const rlhf_str s = t->jinja.symbol[i];
        if (s.len >= sizeof name) continue;
        snprintf(name, sizeof name, "%.*s", (int)s.len, s.ptr);
        if (!is_offered(t, i, name)) continue;
        rlhf__buf_printf(out, "%s%s", n++ ? ", " : "", name);
    }
    if (!n) rlhf__buf_puts(out, "none");
}

// 1 if the name can be written in a template.
static int is_name(const char *s) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return *s && strspn(s, letters) == strlen(s) && !(*s >= '0' && *s <= '9');
}

rlhf_status rlhf__template_check_vars(const struct rlhf__template *t,
                                      const struct rlhf__template *more, const json_t *vars,
                                      struct rlhf__error *err) {
    const char *name;
    json_t *v;
    char shown[120];
    json_object_foreach((json_t *)(uintptr_t)vars, name, v) {
        if (IS_AMONG(ours, name) || IS_AMONG(functions, name))
            return rlhf__fail(err, RLHF_E_INVALID,
                              "the variable '%s' of the chat template is set by the program", name);
        if (is_name(name) &&
            (rlhf__template_reads(t, name) || (more && rlhf__template_reads(more, name))))
            continue;
        struct rlhf__buf reads = RLHF__BUF_INIT;
        put_offers(t, &reads);
        const rlhf_status st = rlhf__fail(
            err, RLHF_E_INVALID,
            "the chat template never reads a variable '%.60s'; variables that it reads: %s",
            rlhf__printable(name, shown, sizeof shown), rlhf__buf_text(&reads));
        rlhf__buf_finish(&reads);
        return st;
    }
    return RLHF_OK;
}

// ---- defaults ----

// Append a string as Jinja reads it: as in JSON, but other characters than ASCII stay as they are.
static void put_string(const char *s, size_t n, struct rlhf__buf *out) {
    rlhf__buf_putc(out, '"');
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            rlhf__buf_printf(out, "\\%c", c);
        else if (c < ' ')
            rlhf__buf_printf(out, "\\x%02x", c);
        else
            rlhf__buf_putc(out, s[i]);
    }
    rlhf__buf_putc(out, '"');
}

static void put_value(const json_t *v, struct rlhf__buf *out) {
    const char *key, *comma = "";
    json_t *item;
    size_t i;
    if (json_is_string(v)) {
        put_string(json_string_value(v), json_string_length(v), out);
    } else if (json_is_array(v)) {
        rlhf__buf_putc(out, '[');
        json_array_foreach(v, i, item) {
            if (i) rlhf__buf_puts(out, ", ");
            put_value(item, out);
        }
        rlhf__buf_putc(out, ']');
    } else if (rlhf__json_is_object(v)) {
        rlhf__buf_putc(out, '{');
        json_object_foreach((json_t *)(uintptr_t)v, key, item) {
            rlhf__buf_puts(out, comma);
            put_string(key, strlen(key), out);
            rlhf__buf_puts(out, ": ");
            put_value(item, out);
            comma = ", ";
        }
        rlhf__buf_putc(out, '}');
    } else if (json_is_null(v)) {
        rlhf__buf_puts(out, "none");
    } else {
        rlhf__json_write(out, v, 0); // a number, true or false
    }
}

void rlhf__template_put_defaults(const json_t *vars, struct rlhf__buf *out) {
    const char *name;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)vars, name, v) {
        rlhf__buf_printf(out, "{%%- if %s is not defined %%}{%%- set %s = ", name, name);
        put_value(v, out);
        rlhf__buf_puts(out, " %}{%- endif %}");
    }
    rlhf__buf_putc(out, '\n'); // Jinja removes the line end after a statement
}
