// json.c: see json.h.
#include "base/json.h"

#include "base/decimal.h"
#include "base/file.h"
#include "base/printable.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- reading ----

#define MAX_FILE_BYTES ((uint64_t)64 << 20)

// Returns a hint for the end of a message if the file's name is that of another format, otherwise
// "".
static const char *other_format(const char *name) {
    const char *dot = strrchr(name, '.');
    const int is_yaml = dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
    return is_yaml || (dot && strcmp(dot, ".toml") == 0) ? "; YAML and TOML are not read, only JSON"
                                                         : "";
}

static rlhf_status failed(const char *name, int64_t line, const json_error_t *why, const char *text,
                          struct rlhf__error *err) {
    if (json_error_code(why) == json_error_out_of_memory)
        return RLHF__NOMEM(err, "%s: out of memory", name);
    return rlhf__fail(err, RLHF_E_INVALID, "%s:%lld:%d: not valid JSON: %s%s", name,
                      (long long)line, why->column < 0 ? 0 : why->column, text, other_format(name));
}

rlhf_status rlhf__json_line_failed(const char *name, int64_t line, const json_error_t *why,
                                   struct rlhf__error *err) {
    static const char of_file[] = "end of file"; // Jansson's words for the end of the text
    char text[JSON_ERROR_TEXT_LENGTH];
    const char *end = strstr(why->text, of_file);
    if (!end || end[strlen(of_file)]) return failed(name, line, why, why->text, err);
    snprintf(text, sizeof text, "%.*sthe end of the line", (int)(end - why->text), why->text);
    return failed(name, line, why, text, err);
}

rlhf_status rlhf__json_parse(const char *name, const char *text, size_t len, json_t **out,
                             struct rlhf__error *err) {
    json_error_t why;
    *out = rlhf__json_decode(text, len, JSON_REJECT_DUPLICATES, &why);
    if (*out) return RLHF_OK;
    return failed(name, why.line < 1 ? 1 : why.line, &why, why.text, err);
}

rlhf_status rlhf__json_parse_digits(const char *name, const char *text, size_t len, json_t **out,
                                    struct rlhf__error *err) {
    json_error_t why;
    *out = rlhf__json_decode_digits(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (*out) return RLHF_OK;
    return failed(name, why.line < 1 ? 1 : why.line, &why, why.text, err);
}

rlhf_status rlhf__json_parse_foreign(const char *name, const char *text, size_t len, json_t **out,
                                     struct rlhf__error *err) {
    json_error_t why;
    *out = rlhf__json_decode(text, len, JSON_REJECT_DUPLICATES, &why);
    if (*out) return RLHF_OK;
    char *near = strstr(why.text, " near '"); // Jansson's words before a part of the text
    if (near) *near = '\0';
    return failed(name, why.line < 1 ? 1 : why.line, &why, why.text, err);
}

rlhf_status rlhf__json_load(const char *path, json_t **out, struct rlhf__error *err) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    *out = NULL;
    rlhf_status st = rlhf__file_read(path, MAX_FILE_BYTES, &text, err);
    if (st == RLHF_OK)
        st = rlhf__json_parse_foreign(path, rlhf__buf_text(&text), text.len, out, err);
    rlhf__buf_finish(&text);
    return st;
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
        return rlhf__json_digits(v) ? "an integer" : "an object";
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

// ---- the line of a key ----

// A position in text that is valid JSON. Every step still checks for the end of the text.

struct cursor {
    const char *p, *end;
    int64_t line;
};

static void skip_space(struct cursor *c) {
    for (; c->p < c->end && strchr(" \t\r\n:,", *c->p); c->p++)
        if (*c->p == '\n') c->line++;
}

// Called at a quote: moves past the string. Sets *from and *n to the bytes between its quotes.
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

// In the object or list at `c`, move to the value of the member whose key is the n bytes at `key`.
// In a list, the key is the index in decimal. Returns 0 if the member is missing.
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

// ---- writing ----

// Append a character as a JSON escape, because it is unsafe to show.
static void put_escaped(struct rlhf__buf *out, uint32_t c) {
    if (c < 0x10000)
        rlhf__buf_printf(out, "\\u%04x", c);
    else
        rlhf__buf_printf(out, "\\u%04x\\u%04x", 0xd7c0 + (c >> 10), 0xdc00 + (c & 0x3ff));
}

// Returns 1 if a byte is a whole character that needs no escape.
static int is_plain(char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

void rlhf__json_write_string(struct rlhf__buf *out, const char *bytes, size_t n) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    rlhf__buf_putc(out, '"');
    for (size_t i = 0; i < n;) {
        size_t plain = 0;
        while (i + plain < n && is_plain(bytes[i + plain]))
            plain++;
        if (plain) rlhf__buf_put(out, bytes + i, plain);
        i += plain;
        if (i == n) break;
        uint32_t c;
        size_t len = rlhf__char_at(bytes + i, n - i, &c);
        const char *escape = len == 1 && c ? strchr(from, (int)c) : NULL;
        if (len == 0)
            rlhf__buf_puts(out, "\xef\xbf\xbd");
        else if (escape)
            rlhf__buf_printf(out, "\\%c", to[escape - from]);
        else if (!rlhf__is_printable(c))
            put_escaped(out, c);
        else
            rlhf__buf_put(out, bytes + i, len);
        i += len ? len : 1;
    }
    rlhf__buf_putc(out, '"');
}

const char *rlhf__json_text_in(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

json_t *rlhf__json_text(const char *bytes) {
    struct rlhf__buf good = RLHF__BUF_INIT;
    size_t n = bytes ? strlen(bytes) : 0;
    uint32_t c;
    for (size_t i = 0; i < n;) {
        size_t len = rlhf__char_at(bytes + i, n - i, &c);
        if (len)
            rlhf__buf_put(&good, bytes + i, len);
        else
            rlhf__buf_puts(&good, "\xef\xbf\xbd");
        i += len ? len : 1;
    }
    json_t *text = good.bad ? NULL : json_string(rlhf__buf_text(&good));
    rlhf__buf_finish(&good);
    return text;
}

static void newline(struct rlhf__buf *out, int indent, int depth) {
    if (!indent) return;
    rlhf__buf_putc(out, '\n');
    for (int i = 0; i < indent * depth; i++)
        rlhf__buf_putc(out, ' ');
}

static void write_value(struct rlhf__buf *out, const json_t *v, int indent, int depth);

static void write_object(struct rlhf__buf *out, const json_t *v, int indent, int depth) {
    // Jansson can iterate over a const object, but its function takes a pointer that is not const.
    json_t *object = (json_t *)(uintptr_t)v;
    const char *key, *comma = "";
    json_t *item;
    const char *digits = rlhf__json_digits(v);
    if (digits) {
        rlhf__buf_puts(out, digits);
        return;
    }
    rlhf__buf_putc(out, '{');
    json_object_foreach(object, key, item) {
        rlhf__buf_puts(out, comma);
        newline(out, indent, depth + 1);
        rlhf__json_write_string(out, key, strlen(key));
        rlhf__buf_puts(out, ": ");
        write_value(out, item, indent, depth + 1);
        comma = indent ? "," : ", ";
    }
    if (*comma) newline(out, indent, depth);
    rlhf__buf_putc(out, '}');
}

static void write_array(struct rlhf__buf *out, const json_t *v, int indent, int depth) {
    size_t n = json_array_size(v);
    rlhf__buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i) rlhf__buf_puts(out, indent ? "," : ", ");
        newline(out, indent, depth + 1);
        write_value(out, json_array_get(v, i), indent, depth + 1);
    }
    if (n) newline(out, indent, depth);
    rlhf__buf_putc(out, ']');
}

static void write_value(struct rlhf__buf *out, const json_t *v, int indent, int depth) {
    char number[40];
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        write_object(out, v, indent, depth);
        break;
    case JSON_ARRAY:
        write_array(out, v, indent, depth);
        break;
    case JSON_STRING:
        rlhf__json_write_string(out, json_string_value(v), json_string_length(v));
        break;
    case JSON_INTEGER:
        rlhf__buf_printf(out, "%lld", (long long)json_integer_value(v));
        break;
    case JSON_REAL:
        rlhf__buf_puts(out, rlhf__format_double(json_real_value(v), 1, number));
        break;
    default:
        rlhf__buf_puts(out, json_is_true(v) ? "true" : json_is_false(v) ? "false" : "null");
    }
}

void rlhf__json_write(struct rlhf__buf *out, const json_t *v, int indent) {
    write_value(out, v, indent, 0);
}

rlhf_status rlhf__json_save_new(const struct rlhf__folder *in, const char *name, json_t *v,
                                int indent, struct rlhf__error *err) {
    if (!v) return RLHF__NOMEM(err, "%s: out of memory", name);
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__json_write(&text, v, indent);
    rlhf__buf_putc(&text, '\n');
    json_decref(v);
    rlhf_status st = rlhf__buf_ok(&text, err);
    if (st == RLHF_OK) st = rlhf__file_write(in, name, text.data, text.len, err);
    rlhf__buf_finish(&text);
    return st;
}

// ---- memory ----

// After a failed allocation, this function must not allocate, flush buffers or run exit handlers.
// So it exits with _exit().
static void *must_allocate(size_t n) {
    char text[96];
    void *p = malloc(n ? n : 1);
    if (p) return p;
    int len = snprintf(text, sizeof text, "rlhf-host: error: out of memory (%zu bytes)\n", n);
    if (write(STDERR_FILENO, text, (size_t)len) < 0) _exit(1); // cannot be reported anywhere
    _exit(1);
}

void rlhf__json_guard_memory(void) { json_set_alloc_funcs(must_allocate, free); }
