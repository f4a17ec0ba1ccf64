// jinja_format.c: see jinja_format.h.
#include "jinja/jinja_format.h"

#include "jinja/jinja_method.h"
#include "values/jinja_dict.h"
#include "values/jinja_escape.h"
#include "values/jinja_operator.h"
#include "values/jinja_percent.h"
#include "values/jinja_print.h"
#include "values/jinja_spec.h"

#include <string.h>

enum numbering { NO_NUMBER = 0, AUTOMATIC, BY_HAND };

struct formatting {
    struct rlhf__jinja_work *w;
    const struct rlhf__jinja_args *args;
    rlhf__value map;
    size_t next; // the next automatic number
    enum numbering numbering;
    int safe;
};

static rlhf__value raised(struct formatting *f, const char *what, rlhf_str s) {
    return rlhf__jinja_stop(f->w, RLHF__JINJA_RAISED, "format() with %s '%.*s'", what,
                            RLHF__JINJA_NAME(s));
}

static int is_digits(rlhf_str s) {
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] < '0' || s.ptr[i] > '9') return 0;
    return s.len > 0 && s.len < 9;
}

static size_t value_of_digits(rlhf_str s) {
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n = n * 10 + (size_t)(s.ptr[i] - '0');
    return n;
}

// The argument of this name or number; an empty name takes the next one.
static rlhf__value argument(struct formatting *f, rlhf_str name) {
    const int number = !name.len || is_digits(name);
    const enum numbering how = !name.len ? AUTOMATIC : BY_HAND;
    if (number && f->numbering && f->numbering != how)
        return raised(f, "fields that are numbered and fields that are not", name);
    if (number) f->numbering = how;
    const size_t at = !number ? 0 : name.len ? value_of_digits(name) : f->next++;
    for (size_t i = 0, place = 0; i < f->args->n; i++) {
        if (number ? !f->args->name[i].len && place++ == at
                   : rlhf__jinja_same(f->args->name[i], name))
            return f->args->value[i];
    }
    const rlhf__value *v =
        number || f->map.type != RLHF__JINJA_DICT ? NULL : rlhf__jinja_get(f->w, f->map.dict, name);
    return v ? *v : raised(f, "no argument for", name);
}

// The value of a field such as "0.name[key]".
static rlhf__value field(struct formatting *f, rlhf_str s) {
    size_t n = 0;
    while (n < s.len && s.ptr[n] != '.' && s.ptr[n] != '[')
        n++;
    rlhf__value v = argument(f, (rlhf_str){s.ptr, n});
    for (size_t at = n; at < s.len && !f->w->state; at = n) {
        const int item = s.ptr[at] == '[';
        if (!item && s.ptr[at] != '.') return raised(f, "the field", s);
        for (n = ++at; n < s.len && (item ? s.ptr[n] != ']' : s.ptr[n] != '.' && s.ptr[n] != '[');)
            n++;
        const rlhf_str part = {s.ptr + at, n - at};
        if (!part.len || (item && n == s.len)) return raised(f, "the field", s);
        if (!item)
            v = rlhf__jinja_attribute(f->w, v, part);
        else if (is_digits(part))
            v = rlhf__jinja_member(f->w, v, rlhf__jinja_int((int64_t)value_of_digits(part)));
        else
            v = rlhf__jinja_member(f->w, v, rlhf__jinja_str(part));
        n += (size_t)item;
    }
    return v;
}

static rlhf__value formatted(struct formatting *f, rlhf_str s, int depth);

// Formats "field!conversion:spec".
static rlhf__value replacement(struct formatting *f, rlhf_str s, int depth) {
    size_t n = 0;
    for (int brackets = 0; n < s.len && (brackets || (s.ptr[n] != '!' && s.ptr[n] != ':')); n++)
        brackets = s.ptr[n] == '[' ? 1 : s.ptr[n] == ']' ? 0 : brackets;
    rlhf__value v = field(f, (rlhf_str){s.ptr, n});
    char conversion = '\0';
    if (n < s.len && s.ptr[n] == '!') {
        conversion = n + 1 < s.len ? s.ptr[n + 1] : '?';
        n += 2;
        if (!strchr("rsa", conversion) || (n < s.len && s.ptr[n] != ':'))
            return raised(f, "the field", s);
    }
    const rlhf_str rest = {s.ptr + n + (n < s.len), n < s.len ? s.len - n - 1 : 0};
    const rlhf__value spec = formatted(f, rest, depth + 1);
    struct rlhf__jinja_spec how;
    if (f->w->state) return rlhf__jinja_undefined();
    if (conversion == 's' && v.type != RLHF__JINJA_STRING)
        v = v.type ? rlhf__jinja_text(f->w, v) : rlhf__jinja_empty();
    if (conversion == 'r') v = rlhf__jinja_repr(f->w, v);
    if (conversion == 'a') {
        struct rlhf__jinja_list one = {.item = &v, .n = 1};
        v = rlhf__jinja_percent(f->w, rlhf__jinja_str((rlhf_str){"%a", 2}),
                                (rlhf__value){.type = RLHF__JINJA_TUPLE, .list = &one});
    }
    if (f->safe && v.type == RLHF__JINJA_STRING && v.mark)
        return spec.s.len ? raised(f, "a format of safe text", s) : v;
    if (f->w->state || !rlhf__jinja_spec_read(f->w, spec.s, &how)) return rlhf__jinja_undefined();
    v = rlhf__jinja_spec_apply(f->w, v, &how);
    return f->safe && !f->w->state ? rlhf__jinja_escaped(f->w, rlhf__jinja_marked(v, 0)) : v;
}

// The length of the replacement at s, which begins after its "{". Returns s.len + 1 if it does not
// end.
static size_t replacement_length(rlhf_str s) {
    int open = 1;
    for (size_t i = 0; i < s.len; i++) {
        open += s.ptr[i] == '{' ? 1 : s.ptr[i] == '}' ? -1 : 0;
        if (!open) return i;
    }
    return (size_t)s.len + 1;
}

static rlhf__value formatted(struct formatting *f, rlhf_str s, int depth) {
    rlhf__value out = rlhf__jinja_empty();
    if (depth > 1 && s.len && memchr(s.ptr, '{', (size_t)s.len))
        return raised(f, "a format inside of a format of", s);
    while (s.len && !f->w->state && rlhf__jinja_pay(f->w, 1)) {
        size_t n = 0;
        while (n < s.len && s.ptr[n] != '{' && s.ptr[n] != '}')
            n++;
        out = rlhf__jinja_joined(f->w, out.s, (rlhf_str){s.ptr, n});
        if (f->w->state) break;
        s = (rlhf_str){s.ptr + n, s.len - n};
        if (!s.len) break;
        const int twice = s.len > 1 && s.ptr[1] == s.ptr[0];
        if (twice) {
            out = rlhf__jinja_joined(f->w, out.s, (rlhf_str){s.ptr, 1});
            s = (rlhf_str){s.ptr + 2, s.len - 2};
            continue;
        }
        s = (rlhf_str){s.ptr + 1, s.len - 1};
        n = s.ptr[-1] == '}' ? s.len + 1 : replacement_length(s);
        if (n > s.len) return raised(f, "a single brace before", s);
        const rlhf__value v = replacement(f, (rlhf_str){s.ptr, n}, depth);
        if (!f->w->state) out = rlhf__jinja_joined(f->w, out.s, v.s);
        s = (rlhf_str){s.ptr + n + 1, s.len - n - 1};
    }
    return f->w->state ? rlhf__jinja_undefined() : out;
}

rlhf__value rlhf__jinja_format(struct rlhf__jinja_work *w, rlhf__value text,
                               const struct rlhf__jinja_args *args, rlhf__value map) {
    struct formatting f = {.w = w, .args = args, .map = map, .safe = text.mark};
    const rlhf__value out = formatted(&f, text.s, 0);
    return w->state ? rlhf__jinja_undefined() : rlhf__jinja_marked(out, text.mark);
}
