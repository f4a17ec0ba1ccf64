// option_value.c: writes one JSON value into one field of a config struct. If that is impossible,
// the error is a sentence that says why.
#include "option/option_list.h"

#include "base/decimal.h"
#include "base/printable.h"
#include "option/aliases.h"
#include "option/nearest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// A limit of at least this size counts as no limit and is not printed.
#define NO_LIMIT     1e30
#define NO_LIMIT_I64 ((int64_t)1 << 40)

// Write "source:line: " for section.key to `out`.
static void place(const struct rlhf__origin *from, const char *key, struct rlhf__buf *out) {
    char path[256];
    snprintf(path, sizeof path, "%s%s%s", from->section, *from->section ? "." : "", key);
    int64_t line = from->text ? rlhf__json_line_of(from->text, from->text_len, path) : 0;
    rlhf__buf_puts(out, from->source);
    if (line > 0) rlhf__buf_printf(out, ":%lld", (long long)line);
    rlhf__buf_puts(out, ": ");
}

// `noun` is "a number" or "numbers".
static void f64_allowed(const rlhf_opt *o, const char *noun, struct rlhf__buf *out) {
    char lo[40], hi[40];
    rlhf__format_double(o->f_min, 0, lo);
    rlhf__format_double(o->f_max, 0, hi);
    int has_lo = o->f_min > -NO_LIMIT, has_hi = o->f_max < NO_LIMIT;
    int lo_open = (o->flags & RLHF_OPT_MIN_OPEN) != 0,
        hi_open = (o->flags & RLHF_OPT_MAX_OPEN) != 0;
    rlhf__buf_puts(out, noun);
    if (has_lo && has_hi && !lo_open && !hi_open) {
        rlhf__buf_printf(out, " from %s to %s", lo, hi);
        return;
    }
    if (has_lo) rlhf__buf_printf(out, lo_open ? " above %s" : " of at least %s", lo);
    if (has_lo && has_hi) rlhf__buf_puts(out, " and");
    if (has_hi) rlhf__buf_printf(out, hi_open ? " below %s" : " at most %s", hi);
}

// `noun` is "an integer" or "integers".
static void i64_allowed(const rlhf_opt *o, const char *noun, struct rlhf__buf *out) {
    long long lo = o->i_min, hi = o->i_max;
    int has_lo = lo > -NO_LIMIT_I64, has_hi = hi < NO_LIMIT_I64;
    rlhf__buf_puts(out, noun);
    if (has_lo && has_hi)
        rlhf__buf_printf(out, " from %lld to %lld", lo, hi);
    else if (has_lo)
        rlhf__buf_printf(out, " of at least %lld", lo);
    else if (has_hi)
        rlhf__buf_printf(out, " of at most %lld", hi);
}

void rlhf__opt_allowed(const rlhf_opt *o, struct rlhf__buf *out) {
    switch (o->type) {
    case RLHF_T_BOOL:
        rlhf__buf_puts(out, "true or false");
        break;
    case RLHF_T_I64:
        i64_allowed(o, "an integer", out);
        break;
    case RLHF_T_F64:
        f64_allowed(o, "a number", out);
        break;
    case RLHF_T_ENUM:
        for (size_t i = 0; o->choices[i]; i++) {
            rlhf__buf_puts(out, i ? ", " : "one of ");
            rlhf__put_printable(out, o->choices[i], strlen(o->choices[i]), "");
        }
        break;
    case RLHF_T_PATH:
        rlhf__buf_puts(out, "a path (a string)");
        break;
    case RLHF_T_LIST:
        rlhf__list_allowed(o, out);
        break;
    case RLHF_T_I64_LIST:
        i64_allowed(o, "a list of integers", out);
        rlhf__buf_puts(out, ", as 1,2 or [1, 2]");
        break;
    case RLHF_T_F64_LIST:
        f64_allowed(o, "a list of numbers", out);
        rlhf__buf_puts(out, ", as 1,2.5 or [1, 2.5]");
        break;
    default:
        rlhf__buf_puts(out, o->flags & RLHF__OPT_ENDS
                                ? "a list of texts that are not empty and of token ids, such as "
                                  "[\"\\n\\n\", 13]"
                            : o->flags & RLHF__OPT_OBJECT
                                ? "a JSON object, such as {\"enable_thinking\": false}"
                                : "a string");
        break;
    }
}

// Appends the value as the user wrote it, cut to 60 bytes, with quotes around a string. For a list
// or an object, appends only the type.
static void put_found(const json_t *v, const char *raw, struct rlhf__buf *out) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (raw)
        rlhf__buf_printf(&text, "%s", raw);
    else
        rlhf__json_write(&text, v, 0);
    const char *s = rlhf__buf_text(&text);
    const char *quote = raw && json_is_string(v) && *s && *s != '"' ? "\"" : "";
    if (json_is_object(v) || json_is_array(v))
        rlhf__buf_puts(out, rlhf__json_kind(v));
    else
        rlhf__buf_printf(out, text.len > 60 ? "%s%.60s...%s" : "%s%s%s", quote, *s ? s : "nothing",
                         quote);
    rlhf__buf_finish(&text);
}

// Returns 1 if `v` is a non-empty string or a token id.
static int is_end(const json_t *v) {
    if (json_is_string(v)) return json_string_length(v) > 0;
    return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) <= INT32_MAX;
}

// Returns the first invalid item of an array, or NULL.
static const json_t *wrong_end(const json_t *array) {
    for (size_t i = 0; i < json_array_size(array); i++)
        if (!is_end(json_array_get(array, i))) return json_array_get(array, i);
    return NULL;
}

static rlhf_status refuse(const rlhf_opt *o, const json_t *v, const char *raw,
                          const struct rlhf__origin *from, struct rlhf__error *err) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    place(from, o->key, &b);
    rlhf__buf_printf(&b, "%s%s%s must be ", from->section, *from->section ? "." : "", o->key);
    rlhf__opt_allowed(o, &b);
    rlhf__buf_puts(&b, ", found ");
    if (o->flags & RLHF__OPT_ENDS && json_is_array(v)) {
        rlhf__buf_puts(&b, "a list with ");
        put_found(wrong_end(v), NULL, &b);
    } else if (o->type < RLHF_T_LIST || o->type > RLHF_T_F64_LIST ||
               !rlhf__list_put_wrong(o, v, raw, &b)) {
        put_found(v, raw, &b);
    }
    if (o->type == RLHF_T_ENUM && json_is_string(v)) {
        struct rlhf__nearest near = {json_string_value(v), NULL, 0};
        char hint[128];
        for (size_t i = 0; o->choices[i]; i++)
            rlhf__nearest_offer(&near, o->choices[i]);
        rlhf__buf_puts(&b, rlhf__nearest_hint(&near, hint, sizeof hint));
    }
    rlhf_status st = rlhf__fail(err, RLHF_E_INVALID, "%s", rlhf__buf_text(&b));
    rlhf__buf_finish(&b);
    return st;
}

rlhf_status rlhf__opts_unknown(const struct rlhf__opt_table *t, const char *key,
                               const char *const *skip, const struct rlhf__origin *from,
                               struct rlhf__error *err) {
    struct rlhf__buf b = RLHF__BUF_INIT;
    const char *dot = *from->section ? "." : "";
    struct rlhf__nearest near = {key, NULL, 0};
    for (uint32_t i = 0; i < t->n; i++) {
        rlhf_opt o;
        rlhf__opt_at(t, i, &o);
        rlhf__nearest_offer(&near, o.key);
    }
    for (; skip && *skip; skip++)
        rlhf__nearest_offer(&near, *skip);
    place(from, key, &b);
    rlhf__buf_printf(&b, "unknown key \"%s%s%s\"", from->section, dot, key);
    char full[200];
    snprintf(full, sizeof full, "%s%s%s", from->section, dot, key);
    if (!rlhf__alias_hint(full, 0, &b) && near.best)
        rlhf__buf_printf(&b, " (did you mean \"%s%s%s\"?)", from->section, dot, near.best);
    rlhf_status st = rlhf__fail(err, RLHF_E_INVALID, "%s", rlhf__buf_text(&b));
    rlhf__buf_finish(&b);
    return st;
}

// store() for an option with RLHF__OPT_ENDS.
static int store_ends(const json_t *v, char *at, struct rlhf__strings *strings) {
    int single = is_end(v);
    if (!single && (!json_is_array(v) || wrong_end(v))) return 0;
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (single) rlhf__buf_putc(&text, '[');
    rlhf__json_write(&text, v, 0);
    if (single) rlhf__buf_putc(&text, ']');
    const char *kept = text.bad ? NULL : rlhf__strings_add(strings, rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
    if (!kept) return -1;
    memcpy(at, &kept, sizeof kept);
    return 1;
}

// store() for an option with RLHF__OPT_OBJECT.
static int store_object(const json_t *v, char *at, struct rlhf__strings *strings) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    if (!json_is_object(v)) return 0;
    rlhf__json_write(&text, v, 0);
    const char *kept = text.bad ? NULL : rlhf__strings_add(strings, rlhf__buf_text(&text));
    rlhf__buf_finish(&text);
    if (!kept) return -1;
    memcpy(at, &kept, sizeof kept);
    return 1;
}

// Write the value to `at`. Returns 1 on success, 0 if the value does not fit the option, and -1 if
// memory runs out.
static int store(const rlhf_opt *o, const json_t *v, const char *raw, char *at,
                 struct rlhf__strings *strings) {
    int32_t small = json_is_true(v);
    int64_t big = 0;
    double real = json_number_value(v);
    const char *text = json_is_string(v) ? json_string_value(v) : json_is_null(v) ? NULL : raw;
    const char *const *list;
    switch (o->type) {
    case RLHF_T_BOOL:
        if (!json_is_boolean(v)) return 0;
        memcpy(at, &small, sizeof small);
        return 1;
    case RLHF_T_I64:
        if (!rlhf__opt_integral(v, &big) || big < o->i_min || big > o->i_max) return 0;
        memcpy(at, &big, sizeof big);
        return 1;
    case RLHF_T_F64:
        if (!json_is_number(v) || !rlhf__opt_in_range(o, real)) return 0;
        memcpy(at, &real, sizeof real);
        return 1;
    case RLHF_T_ENUM: // a choice "true" or "false" may be a JSON boolean
        if (!text && json_is_boolean(v)) text = json_is_true(v) ? "true" : "false";
        for (small = 0; text && o->choices[small]; small++) {
            if (strcmp(o->choices[small], text) != 0) continue;
            memcpy(at, &small, sizeof small);
            return 1;
        }
        return 0;
    case RLHF_T_LIST:
        small = rlhf__list_read(o, v, raw, strings, &list);
        if (small > 0) memcpy(at, &list, sizeof list);
        return small;
    case RLHF_T_I64_LIST:
    case RLHF_T_F64_LIST:
        return rlhf__numbers_read(o, v, raw, strings, at);
    default:
        if (o->flags & RLHF__OPT_ENDS) return store_ends(v, at, strings);
        if (o->flags & RLHF__OPT_OBJECT) return store_object(v, at, strings);
        if (!text && !(json_is_null(v) && !o->s_def)) return 0;
        if (text && !(text = rlhf__strings_add(strings, text))) return -1;
        memcpy(at, &text, sizeof text);
        return 1;
    }
}

rlhf_status rlhf__opts_set(const struct rlhf__opt_table *t, const char *key, const json_t *v,
                           const char *raw, const struct rlhf__origin *from, void *config,
                           struct rlhf__strings *strings, struct rlhf__error *err) {
    int32_t i = rlhf__opt_find(t, key);
    if (i < 0) return from->lenient ? RLHF_OK : rlhf__opts_unknown(t, key, NULL, from, err);
    rlhf_opt o;
    rlhf__opt_at(t, (uint32_t)i, &o);
    if (from->lenient && json_is_null(v)) {
        if (o.type == RLHF_T_I64 && o.flags & RLHF_OPT_NULL_IS_0)
            memset((char *)config + o.offset, 0, sizeof(int64_t));
        return RLHF_OK;
    }
    int stored = store(&o, v, raw, (char *)config + o.offset, strings);
    if (stored < 0) return rlhf__fail(err, RLHF_E_NOMEM, "out of memory");
    return stored ? RLHF_OK : refuse(&o, v, raw, from, err);
}

// For a lenient origin: sets options from the value `v` of a key that the table does not know. If
// the value is an object, each of its members sets the option "key.member", and the members of
// these members likewise. If it is a list, each of its items sets the option "key[]".
static rlhf_status apply_inside(const struct rlhf__opt_table *t, const char *key, const json_t *v,
                                const struct rlhf__origin *from, void *config,
                                struct rlhf__strings *strings, struct rlhf__error *err) {
    char name[256];
    const char *member;
    json_t *inner;
    json_object_foreach((json_t *)(uintptr_t)v, member, inner) {
        if ((size_t)snprintf(name, sizeof name, "%s.%s", key, member) >= sizeof name) continue;
        if (json_is_object(inner) && rlhf__opt_find(t, name) < 0)
            RLHF_TRY(apply_inside(t, name, inner, from, config, strings, err));
        else
            RLHF_TRY(rlhf__opts_set(t, name, inner, NULL, from, config, strings, err));
    }
    if ((size_t)snprintf(name, sizeof name, "%s[]", key) >= sizeof name) return RLHF_OK;
    for (size_t i = 0; i < json_array_size(v); i++)
        RLHF_TRY(rlhf__opts_set(t, name, json_array_get(v, i), NULL, from, config, strings, err));
    return RLHF_OK;
}

rlhf_status rlhf__opts_apply(const struct rlhf__opt_table *t, const json_t *object,
                             const char *const *skip, const struct rlhf__origin *from, void *config,
                             struct rlhf__strings *strings, struct rlhf__error *err) {
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)object, key, v) {
        const char *const *s = skip;
        while (s && *s && strcmp(*s, key) != 0)
            s++;
        if (s && *s) continue;
        if (!from->lenient && rlhf__opt_find(t, key) < 0)
            return rlhf__opts_unknown(t, key, skip, from, err);
        if (from->lenient && rlhf__opt_find(t, key) < 0)
            RLHF_TRY(apply_inside(t, key, v, from, config, strings, err));
        else
            RLHF_TRY(rlhf__opts_set(t, key, v, NULL, from, config, strings, err));
    }
    return RLHF_OK;
}

int rlhf__opt_is_default(const rlhf_opt *o, const void *config) {
    const char *at = (const char *)config + o->offset, *text;
    const char *const *list;
    int32_t small;
    int64_t integer;
    double number;
    switch (o->type) {
    case RLHF_T_BOOL:
    case RLHF_T_ENUM:
        memcpy(&small, at, sizeof small);
        return small == o->i_def;
    case RLHF_T_I64:
        memcpy(&integer, at, sizeof integer);
        return integer == o->i_def;
    case RLHF_T_F64:
        memcpy(&number, at, sizeof number);
        return number == o->f_def;
    case RLHF_T_LIST:
        memcpy(&list, at, sizeof list);
        return rlhf__list_equal(list, rlhf__list_default(o));
    case RLHF_T_I64_LIST:
        return ((const rlhf_i64_list *)(const void *)at)->len == 0;
    case RLHF_T_F64_LIST:
        return ((const rlhf_f64_list *)(const void *)at)->len == 0;
    default:
        memcpy(&text, at, sizeof text);
        return strcmp(text ? text : "", o->s_def ? o->s_def : "") == 0;
    }
}
