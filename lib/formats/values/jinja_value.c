// jinja_value.c: see jinja_value.h.
#include "values/jinja_value.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- memory and failure ----

enum { BLOCK_BYTES = 16 << 10, ALIGN = 16 };

struct rlhf__jinja_block {
    struct rlhf__jinja_block *older;
    char bytes[];
};

void rlhf__jinja_memory_finish(struct rlhf__jinja_memory *m) {
    while (m->block) {
        struct rlhf__jinja_block *b = m->block;
        m->block = b->older;
        free(b);
    }
    m->at = m->end = NULL;
}

rlhf__value rlhf__jinja_stop(struct rlhf__jinja_work *w, int state, const char *fmt, ...) {
    if (w->state) return rlhf__jinja_undefined();
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(w->why, sizeof w->why, fmt, ap);
    va_end(ap);
    w->state = state;
    return rlhf__jinja_undefined();
}

// Adds a memory block with at least n free bytes. Returns 0 after a failure.
static int more(struct rlhf__jinja_work *w, size_t n) {
    struct rlhf__jinja_memory *m = &w->memory;
    const size_t room = n > BLOCK_BYTES / 4 ? 2 * n : BLOCK_BYTES;
    if ((int64_t)n > m->left) {
        rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "more text than is allowed (%d MiB of values)",
                         RLHF__JINJA_MEMORY_MAX >> 20);
        return 0;
    }
    struct rlhf__jinja_block *b = malloc(sizeof *b + room);
    if (!b) {
        rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "out of memory");
        return 0;
    }
    b->older = m->block;
    m->block = b;
    m->at = b->bytes;
    m->end = b->bytes + room;
    m->left -= (int64_t)room;
    return 1;
}

// Returns n bytes for text.
static char *take(struct rlhf__jinja_work *w, size_t n) {
    struct rlhf__jinja_memory *m = &w->memory;
    if (w->state || n > RLHF__JINJA_MEMORY_MAX) {
        rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "more text than is allowed (%d MiB of values)",
                         RLHF__JINJA_MEMORY_MAX >> 20);
        return NULL;
    }
    if ((size_t)(m->end - m->at) < n && !more(w, n)) return NULL;
    char *at = m->at;
    if (n) m->at += n;
    return at;
}

void *rlhf__jinja_alloc(struct rlhf__jinja_work *w, size_t n) {
    struct rlhf__jinja_memory *m = &w->memory;
    const size_t over = (uintptr_t)m->at % ALIGN, skip = over ? ALIGN - over : 0;
    if ((size_t)(m->end - m->at) >= n + skip && m->at)
        m->at += skip;
    else if (w->state || n > RLHF__JINJA_MEMORY_MAX || !more(w, n + ALIGN))
        return take(w, RLHF__JINJA_MEMORY_MAX + (size_t)1); // fails and sets the reason
    return take(w, n);
}

int rlhf__jinja_pay(struct rlhf__jinja_work *w, size_t n) {
    w->steps -= (int64_t)(n / 64) + 1;
    if (w->steps < 0)
        rlhf__jinja_stop(w, RLHF__JINJA_UNKNOWN, "more steps than are allowed (%d)",
                         RLHF__JINJA_STEPS_MAX);
    return !w->state;
}

// ---- making values ----

rlhf__value rlhf__jinja_copied(struct rlhf__jinja_work *w, const char *s, size_t n) {
    if (!n) return rlhf__jinja_str((rlhf_str){"", 0});
    char *to = take(w, n);
    if (!to) return rlhf__jinja_undefined();
    memcpy(to, s, n);
    return rlhf__jinja_str((rlhf_str){to, n});
}

rlhf__value rlhf__jinja_joined(struct rlhf__jinja_work *w, rlhf_str a, rlhf_str b) {
    struct rlhf__jinja_memory *m = &w->memory;
    if (!a.len) return rlhf__jinja_str(b);
    if (!b.len) return rlhf__jinja_str(a);
    if (!rlhf__jinja_pay(w, (size_t)b.len)) return rlhf__jinja_undefined();
    if (a.ptr + a.len == m->at && (size_t)(m->end - m->at) >= b.len) {
        memcpy(m->at, b.ptr, (size_t)b.len);
        m->at += b.len;
        return rlhf__jinja_str((rlhf_str){a.ptr, a.len + b.len});
    }
    char *to = take(w, (size_t)(a.len + b.len));
    if (!to || !rlhf__jinja_pay(w, (size_t)a.len)) return rlhf__jinja_undefined();
    memcpy(to, a.ptr, (size_t)a.len);
    memcpy(to + a.len, b.ptr, (size_t)b.len);
    return rlhf__jinja_str((rlhf_str){to, a.len + b.len});
}

rlhf__value rlhf__jinja_list(struct rlhf__jinja_work *w, int32_t type, size_t cap) {
    struct rlhf__jinja_list *list = rlhf__jinja_alloc(w, sizeof *list);
    if (!list) return rlhf__jinja_undefined();
    *list = (struct rlhf__jinja_list){.cap = cap};
    if (cap) list->item = rlhf__jinja_alloc(w, cap * sizeof *list->item);
    if (cap && !list->item) return rlhf__jinja_undefined();
    return (rlhf__value){.type = type, .list = list};
}

void rlhf__jinja_add(struct rlhf__jinja_work *w, rlhf__value v, rlhf__value item) {
    if (w->state || !rlhf__jinja_is_list(v)) return;
    struct rlhf__jinja_list *list = v.list;
    if (list->n == list->cap) {
        const size_t cap = list->cap ? 2 * list->cap : 8;
        rlhf__value *grown = rlhf__jinja_alloc(w, cap * sizeof *grown);
        if (!grown || !rlhf__jinja_pay(w, list->n)) return;
        if (list->n) memcpy(grown, list->item, list->n * sizeof *grown);
        list->item = grown;
        list->cap = cap;
    }
    list->item[list->n++] = item;
}

rlhf__value rlhf__jinja_bound(struct rlhf__jinja_work *w, rlhf__value of, rlhf_str name) {
    struct rlhf__jinja_method *method = rlhf__jinja_alloc(w, sizeof *method);
    if (!method) return rlhf__jinja_undefined();
    *method = (struct rlhf__jinja_method){of, name};
    return (rlhf__value){.type = RLHF__JINJA_METHOD, .method = method};
}

// ---- looking at values ----

int rlhf__jinja_same(rlhf_str a, rlhf_str b) {
    return a.len == b.len && (!a.len || memcmp(a.ptr, b.ptr, (size_t)a.len) == 0);
}

int rlhf__jinja_is(rlhf_str a, const char *text) {
    return rlhf__jinja_same(a, (rlhf_str){text, strlen(text)});
}

int rlhf__jinja_true(rlhf__value v) {
    switch (v.type) {
    case RLHF__JINJA_UNDEFINED:
    case RLHF__JINJA_NONE:
        return 0;
    case RLHF__JINJA_BOOL:
    case RLHF__JINJA_INT:
        return v.i != 0;
    case RLHF__JINJA_FLOAT:
        return v.f < 0 || v.f > 0 || isnan(v.f);
    case RLHF__JINJA_STRING:
        return v.s.len > 0;
    case RLHF__JINJA_LIST:
    case RLHF__JINJA_TUPLE:
    case RLHF__JINJA_RANGE:
    case RLHF__JINJA_VIEW:
        return v.list->n > 0;
    case RLHF__JINJA_DICT:
        return v.dict->n > 0;
    default:
        return 1;
    }
}

const char *rlhf__jinja_kind(rlhf__value v) {
    static const char *const names[] = {"an undefined value",
                                        "null",
                                        "true or false",
                                        "an integer",
                                        "an integer",
                                        "a number",
                                        "a string",
                                        "a list",
                                        "a list",
                                        "a range",
                                        "a view of an object",
                                        "an iterator",
                                        "an object",
                                        "a namespace",
                                        "a loop",
                                        "a macro",
                                        "a method",
                                        "a function",
                                        "a cycler",
                                        "a joiner",
                                        "a function"};
    return names[v.type];
}

// The length in bytes of the character at s, which must be valid UTF-8.
static size_t char_bytes(const char *s) {
    const unsigned char c = (unsigned char)*s;
    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

int rlhf__jinja_has_items(rlhf__value v) {
    return rlhf__jinja_is_list(v) || v.type == RLHF__JINJA_VIEW || v.type == RLHF__JINJA_ITERATOR ||
           v.type == RLHF__JINJA_DICT || v.type == RLHF__JINJA_STRING ||
           v.type == RLHF__JINJA_UNDEFINED;
}

static rlhf__value copied_items(struct rlhf__jinja_work *w, const struct rlhf__jinja_list *list) {
    const size_t n = list->n - list->at;
    rlhf__value own = rlhf__jinja_list(w, RLHF__JINJA_LIST, n);
    if (!rlhf__jinja_pay(w, n * sizeof *list->item)) return rlhf__jinja_undefined();
    for (size_t i = list->at; i < list->n; i++)
        rlhf__jinja_add(w, own, list->item[i]);
    return own;
}

rlhf__value rlhf__jinja_items(struct rlhf__jinja_work *w, rlhf__value v) {
    if (rlhf__jinja_is_list(v) || v.type == RLHF__JINJA_VIEW) return v;
    if (v.type == RLHF__JINJA_ITERATOR) {
        const rlhf__value rest = v.list->at ? copied_items(w, v.list) : v;
        struct rlhf__jinja_list *own = rlhf__jinja_alloc(w, sizeof *own);
        if (!own) return rlhf__jinja_undefined();
        *own = *rest.list;
        v.list->at = v.list->n;
        return (rlhf__value){.type = RLHF__JINJA_LIST, .list = own};
    }
    rlhf__value list = rlhf__jinja_list(w, RLHF__JINJA_LIST, 0);
    if (v.type == RLHF__JINJA_DICT) {
        for (size_t i = 0; i < v.dict->n && rlhf__jinja_pay(w, 1); i++)
            rlhf__jinja_add(w, list, v.dict->pair[i].key);
    } else if (v.type == RLHF__JINJA_STRING) {
        for (size_t at = 0, n; at < v.s.len && rlhf__jinja_pay(w, 1); at += n) {
            n = char_bytes(v.s.ptr + at);
            if (n > v.s.len - at) n = (size_t)v.s.len - at;
            rlhf__jinja_add(w, list, rlhf__jinja_str((rlhf_str){v.s.ptr + at, n}));
        }
    } else if (v.type != RLHF__JINJA_UNDEFINED) {
        return rlhf__jinja_stop(w, RLHF__JINJA_RAISED, "a loop over %s", rlhf__jinja_kind(v));
    }
    return list;
}

rlhf__value rlhf__jinja_own_items(struct rlhf__jinja_work *w, rlhf__value v) {
    const rlhf__value all = rlhf__jinja_items(w, v);
    if (w->state) return rlhf__jinja_undefined();
    return rlhf__jinja_is_list(v) || v.type == RLHF__JINJA_VIEW ? copied_items(w, all.list) : all;
}

int64_t rlhf__jinja_characters(struct rlhf__jinja_work *w, rlhf_str s) {
    int64_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    rlhf__jinja_pay(w, (size_t)s.len);
    return n;
}
