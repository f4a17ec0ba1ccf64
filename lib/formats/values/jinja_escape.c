// jinja_escape.c: see jinja_escape.h.
#include "values/jinja_escape.h"

#include "values/jinja_print.h"

#include <string.h>

rlhf__value rlhf__jinja_escaped(struct rlhf__jinja_work *w, rlhf__value v) {
    static const char from[] = "&<>'\"";
    static const char *const to[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    struct rlhf__buf out = RLHF__BUF_INIT;
    if (v.type == RLHF__JINJA_STRING && v.mark) return v;
    v = v.type ? rlhf__jinja_text(w, v) : rlhf__jinja_empty();
    if (w->state || !rlhf__jinja_pay(w, (size_t)v.s.len)) return rlhf__jinja_undefined();
    for (size_t i = 0; i < v.s.len && out.len <= RLHF__JINJA_MEMORY_MAX; i++) {
        const char *sign = v.s.ptr[i] ? strchr(from, v.s.ptr[i]) : NULL;
        if (sign)
            rlhf__buf_puts(&out, to[sign - from]);
        else
            rlhf__buf_putc(&out, v.s.ptr[i]);
    }
    return rlhf__jinja_marked(rlhf__jinja_taken(w, &out), 1);
}

rlhf__value rlhf__jinja_marked(rlhf__value v, int safe) {
    if (v.type == RLHF__JINJA_STRING) v.mark = safe;
    for (size_t i = 0; rlhf__jinja_is_list(v) && i < v.list->n; i++)
        if (v.list->item[i].type == RLHF__JINJA_STRING) v.list->item[i].mark = safe;
    return v;
}

rlhf__value rlhf__jinja_added(struct rlhf__jinja_work *w, rlhf__value a, rlhf__value b) {
    const int safe = a.mark || b.mark;
    if (safe) a = rlhf__jinja_escaped(w, a);
    if (safe) b = rlhf__jinja_escaped(w, b);
    if (w->state) return rlhf__jinja_undefined();
    return rlhf__jinja_marked(rlhf__jinja_joined(w, a.s, b.s), safe);
}
