// json.c: reading JSON; see json.h. The writer is in json_write.c.
#include "base/json.h"

#include "base/file.h"

#include <stdio.h>
#include <string.h>

#define MAX_FILE_BYTES ((uint64_t)64 << 20)

rlhf_status rlhf__json_failed(const char *name, int64_t line, const json_error_t *why,
                              struct rlhf__error *err) {
    if (json_error_code(why) == json_error_out_of_memory)
        return RLHF__NOMEM(err, "%s: out of memory", name);
    return rlhf__fail(err, RLHF_E_INVALID, "%s:%lld:%d: not valid JSON: %s", name, (long long)line,
                      why->column < 0 ? 0 : why->column, why->text);
}

rlhf_status rlhf__json_parse(const char *name, const char *text, size_t len, json_t **out,
                             struct rlhf__error *err) {
    json_error_t why;
    *out = rlhf__json_decode(text, len, JSON_REJECT_DUPLICATES, &why);
    if (*out) return RLHF_OK;
    return rlhf__json_failed(name, why.line < 1 ? 1 : why.line, &why, err);
}

rlhf_status rlhf__json_load(const char *path, json_t **out, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    *out = NULL;
    rlhf_status status = rlhf__file_read(path, MAX_FILE_BYTES, &text, err);
    if (status == RLHF_OK)
        status = rlhf__json_parse(path, rlhf__buf_text(&text), text.len, out, err);
    rlhf__buf_free(&text);
    return status;
}

rlhf_status rlhf__json_load_any(const char *dir, const char *name, json_t **out,
                                struct rlhf__error *err) {
    char path[RLHF__PATH_CAP];
    *out = NULL;
    rlhf__path_put(path, "%s/%s", dir, name);
    if (!rlhf__is_file(path)) return RLHF_OK;
    RLHF_TRY(rlhf__json_load(path, out, err));
    if (json_is_object(*out)) return RLHF_OK;
    const char *kind = rlhf__json_kind(*out);
    json_decref(*out);
    *out = NULL;
    return rlhf__fail(err, RLHF_E_INVALID, "%s: expected an object, found %s", path, kind);
}

const char *rlhf__json_kind(const json_t *v) {
    if (!v) return "missing";
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "a list";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "a boolean";
    default:
        return "null";
    }
}

// ---- the line of a key ------------------------------------------------------------------------
// A walk over text that is known to be valid; every step still checks the end.

struct cursor {
    const char *p, *end;
    int64_t line;
};

static void skip_space(struct cursor *c) {
    for (; c->p < c->end && strchr(" \t\r\n:,", *c->p); c->p++)
        if (*c->p == '\n') c->line++;
}

// At a quote: moves past the string; *from, *n = what stood between the quotes.
static void skip_string(struct cursor *c, const char **from, size_t *n) {
    *from = ++c->p;
    while (c->p < c->end && *c->p != '"')
        c->p += *c->p == '\\' ? 2 : 1;
    if (c->p > c->end) c->p = c->end;
    *n = (size_t)(c->p - *from);
    if (c->p < c->end) c->p++;
}

static void skip_value(struct cursor *c) {
    const char *s;
    size_t n;
    int depth = 0;
    do {
        skip_space(c);
        if (c->p >= c->end) return;
        if (*c->p == '"') {
            skip_string(c, &s, &n);
        } else if (strchr("[{", *c->p)) {
            depth++;
            c->p++;
        } else if (strchr("]}", *c->p)) {
            depth--;
            c->p++;
        } else {
            while (c->p < c->end && !strchr(" \t\r\n:,]}", *c->p))
                c->p++;
        }
        skip_space(c);
    } while (depth > 0);
}

// Moves into the object or list at c to the member called key[n]; 0 when there is none.
static int enter(struct cursor *c, const char *key, size_t n) {
    skip_space(c);
    if (c->p >= c->end || !strchr("[{", *c->p)) return 0;
    int object = *c->p++ == '{';
    for (uint64_t index = 0;; index++) {
        skip_space(c);
        if (c->p >= c->end || strchr("]}", *c->p)) return 0;
        const char *name = NULL;
        size_t len = 0;
        char number[24];
        if (object) {
            skip_string(c, &name, &len);
        } else {
            len = (size_t)snprintf(number, sizeof number, "%llu", (unsigned long long)index);
            name = number;
        }
        int here = len == n && memcmp(name, key, n) == 0;
        skip_space(c);
        if (here) return 1;
        skip_value(c);
    }
}

int64_t rlhf__json_line_of(const char *text, size_t len, const char *path) {
    struct cursor c = {text, text + len, 1};
    while (*path) {
        size_t n = strcspn(path, ".");
        if (!enter(&c, path, n)) return 0;
        path += n;
        if (*path == '.') path++;
    }
    skip_space(&c);
    return c.line;
}

rlhf_status rlhf__json_counts(const json_t *object, const struct rlhf__json_count *list, size_t n,
                              struct rlhf__error *err) {
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_object_get(object, list[i].name);
        if (!json_is_integer(v))
            return rlhf__fail(err, RLHF_E_INVALID, "\"%s\" must be a whole number, it is %s",
                              list[i].name, rlhf__json_kind(v));
        if (json_integer_value(v) < 0)
            return rlhf__fail(err, RLHF_E_INVALID, "\"%s\" is %lld; it must be 0 or more",
                              list[i].name, (long long)json_integer_value(v));
    }
    for (size_t i = 0; i < n; i++)
        *list[i].to = json_integer_value(json_object_get(object, list[i].name));
    return RLHF_OK;
}
