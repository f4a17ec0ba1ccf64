// message_value.c: see message_value.h.
#include "values/message_value.h"

#include "values/jinja_dict.h"
#include "values/jinja_print.h"

#include <string.h>

static rlhf_str name_of(const char *s) { return (rlhf_str){s, strlen(s)}; }

static void put(struct rlhf__jinja_work *w, rlhf__value to, const char *name, rlhf__value v) {
    rlhf__jinja_put(w, to, name_of(name), v);
}

static void put_text(struct rlhf__jinja_work *w, rlhf__value to, const char *name, rlhf_str s) {
    if (s.ptr) put(w, to, name, rlhf__jinja_str(s));
}

static rlhf__value content(struct rlhf__jinja_work *w, const struct rlhf__message *m) {
    if (m->written != RLHF__CONTENT_PARTS) return rlhf__jinja_str(m->content);
    if (m->parts) return rlhf__jinja_from_json(w, m->parts);
    const rlhf__value part = rlhf__jinja_dict(w, RLHF__JINJA_DICT, 2),
                      list = rlhf__jinja_list(w, RLHF__JINJA_LIST, 1);
    put_text(w, part, "type", name_of("text"));
    put_text(w, part, "text", m->content);
    rlhf__jinja_add(w, list, part);
    return list;
}

// Puts the members that the row's object has, except those that are null. The calls get their value
// later, since the program may have replaced them.
static void put_given(struct rlhf__jinja_work *w, rlhf__value to, const struct rlhf__message *m) {
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)m->given, key, v) {
        const int later = m->calls && strcmp(key, "tool_calls") == 0;
        if (!json_is_null(v))
            put(w, to, key, later ? rlhf__jinja_none() : rlhf__jinja_from_json(w, v));
    }
}

rlhf__value rlhf__message_value(struct rlhf__jinja_work *w, const struct rlhf__message *m) {
    rlhf__value v = rlhf__jinja_dict(w, RLHF__JINJA_DICT, 4);
    put_text(w, v, "thinking", m->thoughts);
    if (!m->given) put_text(w, v, "role", name_of(rlhf__role_name(m->role)));
    put_given(w, v, m);
    if (m->written != RLHF__CONTENT_ABSENT) put(w, v, "content", content(w, m));
    put_text(w, v, "reasoning_content", m->thoughts);
    put_text(w, v, "name", m->name);
    put_text(w, v, "tool_call_id", m->call_id);
    if (m->calls) put(w, v, "tool_calls", rlhf__jinja_from_json(w, m->calls));
    return v;
}
