// jinja_text_filter.c: the filters of text; see jinja_filter.h.
#include "jinja/jinja_filter.h"
#include "values/jinja_casing.h"
#include "values/jinja_escape.h"
#include "values/jinja_letter.h"
#include "values/jinja_number.h"
#include "values/jinja_numeral.h"
#include "values/jinja_operator.h"
#include "values/jinja_print.h"
#include "values/jinja_spec.h"
#include "values/jinja_text.h"

#include <string.h>

typedef struct rlhf__jinja_filtering filtering;

static rlhf__value raised(filtering *f) { return rlhf__jinja_filter_fails(f, RLHF__JINJA_RAISED); }

static rlhf__value text_of(filtering *f, rlhf__value v) {
    return v.type ? rlhf__jinja_text(f->w, v) : rlhf__jinja_empty();
}

// Converts the value to text, and applies the string method that has the same name as the filter.
static rlhf__value f_method(filtering *f) {
    const rlhf_str name = rlhf__jinja_is(f->name, "trim") ? (rlhf_str){"strip", 5} : f->name;
    struct rlhf__jinja_args args = {.n = f->args->n, .value = {f->a[0]}};
    const rlhf__value text = text_of(f, f->v);
    if (rlhf__jinja_is(name, "center")) {
        args.n = 1;
        args.value[0] = f->a[0].type ? f->a[0] : rlhf__jinja_int(80);
    }
    return f->w->state ? text : rlhf__jinja_string_method(f->w, name, text, &args);
}

static rlhf__value f_replace(filtering *f) {
    const rlhf__value count = f->a[2].type == RLHF__JINJA_NONE ? rlhf__jinja_undefined() : f->a[2];
    const struct rlhf__jinja_args args = {
        .n = count.type ? 3 : 2, .value = {text_of(f, f->a[0]), text_of(f, f->a[1]), count}};
    const rlhf__value text = rlhf__jinja_marked(text_of(f, f->v), 0);
    if (f->w->state) return rlhf__jinja_undefined();
    return rlhf__jinja_marked(
        rlhf__jinja_string_method(f->w, (rlhf_str){"replace", 7}, text, &args), 0);
}

static rlhf__value f_title(filtering *f) {
    const rlhf__value text = text_of(f, f->v);
    return f->w->state ? text : rlhf__jinja_title(f->w, text.s);
}

static rlhf__value f_wordcount(filtering *f) {
    const rlhf__value text = text_of(f, f->v);
    int64_t n = 0;
    int inside = 0;
    if (f->w->state || !rlhf__jinja_pay(f->w, 8 * (size_t)text.s.len))
        return rlhf__jinja_undefined();
    for (size_t i = 0; i < text.s.len;) {
        uint32_t c = 0;
        i += rlhf__letter_at(text.s.ptr + i, (size_t)text.s.len - i, &c);
        const int word = c == '_' || rlhf__letter_is_alnum(c);
        n += word && !inside;
        inside = word;
    }
    return rlhf__jinja_int(n);
}

static rlhf__value f_indent(filtering *f) {
    const int first = rlhf__jinja_true(f->a[1]), blank = rlhf__jinja_true(f->a[2]);
    rlhf__value by = f->a[0], out = rlhf__jinja_empty();
    if (f->v.type != RLHF__JINJA_STRING) return raised(f);
    if (by.type != RLHF__JINJA_STRING)
        by = rlhf__jinja_binary(f->w, RLHF__JINJA_OP_MUL, rlhf__jinja_str((rlhf_str){" ", 1}),
                                by.type ? by : rlhf__jinja_int(4));
    rlhf__value text = rlhf__jinja_joined(f->w, f->v.s, (rlhf_str){"\n", 1});
    if (f->w->state || by.type != RLHF__JINJA_STRING) return raised(f);
    if (f->v.mark) by.mark = 1;
    const rlhf__value lines = rlhf__jinja_lines(f->w, text.s, 0);
    for (size_t i = 0; !f->w->state && i < lines.list->n; i++) {
        const rlhf_str line = lines.list->item[i].s;
        if (i) out = rlhf__jinja_joined(f->w, out.s, (rlhf_str){"\n", 1});
        if (!f->w->state && (i ? line.len || blank : first))
            out = rlhf__jinja_joined(f->w, out.s, by.s);
        if (!f->w->state) out = rlhf__jinja_joined(f->w, out.s, line);
    }
    return rlhf__jinja_marked(out, f->v.mark);
}

static rlhf__value f_truncate(filtering *f) {
    const int64_t length = rlhf__jinja_whole_arg(f->w, f->a[0], 255),
                  leeway = f->a[3].type == RLHF__JINJA_NONE
                               ? 5
                               : rlhf__jinja_whole_arg(f->w, f->a[3], 5);
    const rlhf__value end = f->a[2].type ? f->a[2] : rlhf__jinja_str((rlhf_str){"...", 3});
    if (end.type != RLHF__JINJA_STRING || f->w->state) return raised(f);
    const int64_t end_length = rlhf__jinja_characters(f->w, end.s);
    if (length < end_length || leeway < 0) return raised(f);
    const int64_t limit = length > INT64_MAX - leeway ? INT64_MAX : length + leeway;
    if ((rlhf__jinja_is_list(f->v) && (int64_t)f->v.list->n <= limit) ||
        (f->v.type == RLHF__JINJA_DICT && (int64_t)f->v.dict->n <= limit) ||
        f->v.type == RLHF__JINJA_UNDEFINED)
        return f->v;
    if (f->v.type != RLHF__JINJA_STRING) return raised(f);
    if (rlhf__jinja_characters(f->w, f->v.s) <= limit) return f->v;
    rlhf_str s = rlhf__jinja_spec_cut(f->w, f->v.s, length - end_length);
    if (!rlhf__jinja_true(f->a[1])) {
        const char *space = s.len ? memrchr(s.ptr, ' ', (size_t)s.len) : NULL;
        if (space) s.len = (uint64_t)(space - s.ptr);
    }
    rlhf__value cut = rlhf__jinja_str(s);
    cut.mark = f->v.mark;
    return f->w->state ? rlhf__jinja_undefined() : rlhf__jinja_added(f->w, cut, end);
}

// ---- HTML and addresses ----

static rlhf__value f_escape(filtering *f) { return rlhf__jinja_escaped(f->w, f->v); }

static rlhf__value f_forceescape(filtering *f) {
    const rlhf__value text = text_of(f, f->v);
    return f->w->state ? text : rlhf__jinja_escaped(f->w, rlhf__jinja_marked(text, 0));
}

static rlhf__value f_safe(filtering *f) {
    const rlhf__value text = text_of(f, f->v);
    return f->w->state ? text : rlhf__jinja_marked(text, 1);
}

static void put_quoted(struct rlhf__buf *out, rlhf_str s, int query) {
    for (size_t i = 0; i < s.len && out->len <= RLHF__JINJA_MEMORY_MAX; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        const int plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || (c && strchr("_.-~", c) != NULL) ||
                          (c == '/' && !query);
        if (plain)
            rlhf__buf_putc(out, (char)c);
        else if (c == ' ' && query)
            rlhf__buf_putc(out, '+');
        else
            rlhf__buf_printf(out, "%%%02X", c);
    }
}

static rlhf__value f_urlencode(filtering *f) {
    struct rlhf__buf out = RLHF__BUF_INIT;
    if (f->v.type == RLHF__JINJA_STRING || !rlhf__jinja_has_items(f->v)) {
        const rlhf__value text = text_of(f, f->v);
        if (!f->w->state && rlhf__jinja_pay(f->w, (size_t)text.s.len)) put_quoted(&out, text.s, 0);
        return rlhf__jinja_taken(f->w, &out);
    }
    const int object = f->v.type == RLHF__JINJA_DICT;
    const rlhf__value all = rlhf__jinja_items(f->w, f->v);
    for (size_t i = 0; !f->w->state && i < all.list->n; i++) {
        rlhf__value pair = rlhf__jinja_undefined();
        if (!object) pair = rlhf__jinja_items(f->w, all.list->item[i]);
        if (!object && !f->w->state && pair.list->n != 2) raised(f);
        if (f->w->state) break;
        const rlhf__value key = text_of(f, object ? f->v.dict->pair[i].key : pair.list->item[0]),
                          value =
                              text_of(f, object ? f->v.dict->pair[i].value : pair.list->item[1]);
        if (f->w->state || !rlhf__jinja_pay(f->w, (size_t)(key.s.len + value.s.len))) break;
        if (i) rlhf__buf_putc(&out, '&');
        put_quoted(&out, key.s, 1);
        rlhf__buf_putc(&out, '=');
        put_quoted(&out, value.s, 1);
    }
    return rlhf__jinja_taken(f->w, &out);
}

static rlhf__value f_xmlattr(filtering *f) {
    const int space = !f->a[0].type || rlhf__jinja_true(f->a[0]);
    rlhf__value out = rlhf__jinja_empty();
    if (f->v.type != RLHF__JINJA_DICT) return raised(f);
    for (size_t i = 0; i < f->v.dict->n && !f->w->state; i++) {
        const rlhf__value v = f->v.dict->pair[i].value, k = f->v.dict->pair[i].key;
        if (v.type <= RLHF__JINJA_NONE) continue;
        for (size_t c = 0; k.type == RLHF__JINJA_STRING && c < k.s.len; c++)
            if (k.s.ptr[c] && strchr(" \t\n\r\v\f/>=", k.s.ptr[c])) return raised(f);
        const rlhf__value key = rlhf__jinja_escaped(f->w, k), value = rlhf__jinja_escaped(f->w, v);
        if (k.type != RLHF__JINJA_STRING || f->w->state) return raised(f);
        if (out.s.len || space) out = rlhf__jinja_joined(f->w, out.s, (rlhf_str){" ", 1});
        const rlhf_str parts[] = {key.s, {"=\"", 2}, value.s, {"\"", 1}};
        for (int p = 0; p < 4 && !f->w->state; p++)
            out = rlhf__jinja_joined(f->w, out.s, parts[p]);
    }
    return out;
}

static rlhf__value f_filesize(filtering *f) {

    static const char prefix[] = "kMGTPEZY";
    const int binary = rlhf__jinja_true(f->a[0]);
    const double base = binary ? 1024 : 1000;
    rlhf__value v = f->v;
    struct rlhf__buf out = RLHF__BUF_INIT;
    if (v.type == RLHF__JINJA_STRING) v = rlhf__numeral_float(f->w, v.s);
    if (!rlhf__jinja_is_number(v)) return raised(f);
    const double bytes = rlhf__jinja_real(f->w, v);
    if (bytes >= 1 && bytes <= 1) return rlhf__jinja_str((rlhf_str){"1 Byte", 6});
    if (bytes < base) {
        const rlhf__value whole = rlhf__jinja_text(f->w, rlhf__jinja_truncated(f->w, bytes));
        return f->w->state ? whole : rlhf__jinja_joined(f->w, whole.s, (rlhf_str){" Bytes", 6});
    }
    double unit = base * base;
    size_t i = 0;
    for (; i < 7 && !(bytes < unit); i++)
        unit *= base;
    rlhf__buf_printf(&out, "%.1f %c%s%s", base * bytes / unit, i == 0 && binary ? 'K' : prefix[i],
                     binary ? "i" : "", "B");
    return rlhf__jinja_taken(f->w, &out);
}

const struct rlhf__jinja_filter_row rlhf__jinja_text_filters[] = {
    {"trim", "chars=", f_method},
    {"upper", "", f_method},
    {"lower", "", f_method},
    {"capitalize", "", f_method},
    {"center", "width=", f_method},
    {"title", "", f_title},
    {"replace", "old new count=", f_replace},
    {"wordcount", "", f_wordcount},
    {"indent", "width= first= blank=", f_indent},
    {"truncate", "length= killwords= end= leeway=", f_truncate},
    {"e", "", f_escape},
    {"escape", "", f_escape},
    {"forceescape", "", f_forceescape},
    {"safe", "", f_safe},
    {"urlencode", "", f_urlencode},
    {"xmlattr", "autospace=", f_xmlattr},
    {"filesizeformat", "binary=", f_filesize},
    {"striptags", "", NULL},
    {"urlize", "", NULL},
    {"wordwrap", "", NULL},
    {NULL, NULL, NULL}};
