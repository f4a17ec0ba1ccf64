// template.c: see template.h.
#include "grader/template.h"

#include "process/row_text.h"
#include "process/utf8.h"

#include <stdio.h>
#include <string.h>

struct rlhf__template_part {
    rlhf_str text;        // a part of the template, for messages; of a field with its braces
    int32_t field, space; // field: 1; space: enum rlhf__template_space
    char *pointer;        // of a field: JSON Pointer
};

enum { SHOWN = 80 };

static const char *const spaces[] = {"item", "sample"};
static const char *const samples[] = {"output_text", "output_json", "output_tools", "choices"};

static void show(rlhf_str text, char *out, size_t cap) {
    char shown[SHOWN];
    snprintf(out, cap, "%s", rlhf__utf8_shown(text.ptr, (size_t)text.len, shown, sizeof shown));
}

static int refuse(rlhf_str field, const char *what, char *why, size_t cap) {
    char shown[SHOWN];
    show(field, shown, sizeof shown);
    snprintf(why, cap, "has %s, %s", shown, what);
    return 0;
}

// ---- reading ----

static size_t name_length(const char *at, const char *end) {
    size_t n = 0;
    while (at + n < end && !strchr(" \t\r\n.[](){}|'\"", at[n]))
        n++;
    return n;
}

// Append a member to a JSON Pointer.
static void put_member(struct rlhf__bytes *to, const char *name, size_t n) {
    rlhf__bytes_text(to, "/");
    for (size_t i = 0; i < n; i++)
        if (name[i] == '~' || name[i] == '/')
            rlhf__bytes_text(to, name[i] == '~' ? "~0" : "~1");
        else
            rlhf__bytes_add(to, name + i, 1);
}

// Reads [3] or ["name"] at `at`. Returns its end, or NULL.
static const char *read_index(const char *at, const char *end, struct rlhf__bytes *to) {
    const char *from = ++at;
    if (at < end && (*at == '"' || *at == '\'')) {
        const char *close = memchr(at + 1, *at, (size_t)(end - at - 1));
        if (!close || close + 1 >= end || close[1] != ']') return NULL;
        put_member(to, from + 1, (size_t)(close - from - 1));
        return close + 2;
    }
    while (at < end && *at >= '0' && *at <= '9')
        at++;
    if (at == from || at == end || *at != ']') return NULL;
    put_member(to, from, (size_t)(at - from));
    return at + 1;
}

// Reads the path after the namespace. Returns 0 if it is no path.
static int read_path(const char *at, const char *end, struct rlhf__bytes *to) {
    if (at == end) return 0;
    while (at < end) {
        if (*at == '.') {
            const size_t n = name_length(++at, end);
            if (!n) return 0;
            put_member(to, at, n);
            at += n;
        } else if (*at != '[' || !(at = read_index(at, end, to)))
            return 0;
    }
    rlhf__bytes_add(to, "", 1);
    return 1;
}

static int is_of_sample(const char *pointer) {
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const size_t n = strlen(samples[i]);
        if (strncmp(pointer + 1, samples[i], n) == 0 && (!pointer[n + 1] || pointer[n + 1] == '/'))
            return 1;
    }
    return 0;
}

static int read_field(struct rlhf__template_part *p, const rlhf_host *host, char *why, size_t cap) {
    const char *at = p->text.ptr + 2, *end = p->text.ptr + p->text.len - 2;
    struct rlhf__bytes to = {.host = host};
    while (at < end && strchr(" \t\r\n", *at))
        at++;
    while (end > at && strchr(" \t\r\n", end[-1]))
        end--;
    const size_t n = name_length(at, end);
    for (p->space = 0; p->space < 2; p->space++)
        if (strlen(spaces[p->space]) == n && memcmp(spaces[p->space], at, n) == 0) break;
    p->field = 1;
    if (p->space == 2)
        return refuse(p->text, "which begins neither with item. nor with sample.", why, cap);
    const int path = read_path(at + n, end, &to);
    p->pointer = to.data;
    if (to.full) return 0;
    if (!path)
        return refuse(
            p->text,
            "which is not a path; expected {{ item.NAME }} or {{ sample.NAME }}, followed "
            "by .NAME, [NUMBER] or [\"NAME\"]",
            why, cap);
    if (p->space == RLHF__TEMPLATE_ITEM || is_of_sample(p->pointer)) return 1;
    return refuse(p->text,
                  "which a sample does not have; it has output_text, output_json, output_tools and "
                  "choices",
                  why, cap);
}

// Splits the text. If `part` is NULL, only counts the parts.
static uint32_t split(const char *text, struct rlhf__template_part *part, const char **open) {
    uint32_t n = 0;
    *open = NULL;
    while (*text) {
        const char *from = strstr(text, "{{"), *to = from ? strstr(from, "}}") : NULL;
        if (from && !to) *open = from;
        const size_t plain = to ? (size_t)(from - text) : strlen(text);
        if (plain && part) part[n].text = (rlhf_str){text, plain};
        n += plain != 0;
        if (!to) break;
        if (part)
            part[n] = (struct rlhf__template_part){{from, (uint64_t)(to + 2 - from)}, 1, 0, NULL};
        n++;
        text = to + 2;
    }
    return n;
}

int rlhf__template_read(struct rlhf__template *t, const rlhf_host *host, const char *text,
                        char *why, size_t cap) {
    const char *open;
    *why = 0;
    t->host = host;
    t->n = 0;
    const uint32_t n = split(text, NULL, &open);
    if (open) return refuse((rlhf_str){open, strlen(open)}, "which has no \"}}\"", why, cap);
    if (!n) return 1;
    t->part = host->alloc(host, n * sizeof *t->part);
    if (!t->part) return 0;
    t->n = split(text, t->part, &open);
    for (uint32_t i = 0; i < n; i++)
        if (t->part[i].field && !read_field(&t->part[i], host, why, cap)) return 0;
    return 1;
}

void rlhf__template_finish(struct rlhf__template *t) {
    for (uint32_t i = 0; i < t->n; i++)
        t->host->free(t->host, t->part[i].pointer);
    if (t->host) t->host->free(t->host, t->part);
    *t = (struct rlhf__template){0};
}

// ---- filling ----

static const rlhf_row *row_of(const struct rlhf__template_part *p,
                              const struct rlhf__template_from *from) {
    return from->rows ? from->of[p->space] : NULL;
}

int rlhf__template_fill(const struct rlhf__template *t, const struct rlhf__template_from *from,
                        struct rlhf__bytes *out, char *lacks, size_t cap) {
    for (uint32_t i = 0; i < t->n; i++) {
        const struct rlhf__template_part *p = &t->part[i];
        if (!p->field) {
            rlhf__bytes_add(out, p->text.ptr, (size_t)p->text.len);
            continue;
        }
        const rlhf_row *row = row_of(p, from);
        if (row && from->rows->type(t->host, row, p->pointer) != RLHF_JSON_NULL &&
            rlhf__row_text(from->rows, row, p->pointer, 1, out))
            continue;
        if (lacks) show(p->text, lacks, cap);
        return 0;
    }
    return 1;
}

int rlhf__template_lacks(const struct rlhf__template *t, const struct rlhf__template_from *from,
                         char *lacks, size_t cap) {
    for (uint32_t i = 0; i < t->n; i++) {
        const struct rlhf__template_part *p = &t->part[i];
        if (!p->field || p->space != RLHF__TEMPLATE_ITEM) continue;
        const rlhf_row *row = row_of(p, from);
        if (row && from->rows->type(t->host, row, p->pointer) > RLHF_JSON_NULL) continue;
        show(p->text, lacks, cap);
        return 1;
    }
    return 0;
}
