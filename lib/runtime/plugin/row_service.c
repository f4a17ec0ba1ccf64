// row_service.c: see row_service.h. A plugin's rlhf_row is the parsed row itself.
#include "plugin/row_service.h"

#include "base/json.h"
#include "base/printable.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { START_BYTES = 60 }; // bytes of a row that messages show

static json_t *row_of(const rlhf_row *row) { return (json_t *)(uintptr_t)row; }

// Append the beginning of a row, without splitting a character, so that users can find the row in
// the file.
static void put_start(struct rlhf__buf *out, const rlhf_row *row) {
    struct rlhf__buf text = RLHF__BUF_INIT;
    rlhf__json_write(&text, row_of(row), 0);
    const char *s = rlhf__buf_text(&text);
    const size_t n = text.len < START_BYTES ? text.len : rlhf__utf8_floor(s, START_BYTES);
    rlhf__put_printable(out, s, n, "");
    if (n < text.len) rlhf__buf_puts(out, "...");
    rlhf__buf_finish(&text);
}

static rlhf_status fail(const rlhf_host *host, const rlhf_row *row, const char *path,
                        const char *wanted, const json_t *found) {
    struct rlhf__error err = {0, ""};
    struct rlhf__buf start = RLHF__BUF_INIT;
    put_start(&start, row);
    if (found)
        rlhf__fail(&err, RLHF_E_INVALID, "\"%.200s\" of the data row is %s; expected %s: %s", path,
                   rlhf__json_kind(found), wanted, rlhf__buf_text(&start));
    else
        rlhf__fail(&err, RLHF_E_INVALID, "the data row has no \"%.200s\"; expected %s: %s", path,
                   wanted, rlhf__buf_text(&start));
    rlhf__buf_finish(&start);
    return rlhf__service_failed(host, &err);
}

static rlhf_status row_open(const rlhf_host *host, rlhf_str json, rlhf_row **out) {
    struct rlhf__error err = {0, ""};
    json_t *v = NULL;
    *out = NULL;
    if (json.len == 0)
        rlhf__fail(&err, RLHF_E_INVALID,
                   "there is no data row: the prompts do not come from a file of JSON rows");
    else if (rlhf__json_parse_digits("the data row", json.ptr, (size_t)json.len, &v, &err) ==
                 RLHF_OK &&
             !rlhf__json_is_object(v))
        rlhf__fail(&err, RLHF_E_INVALID, "the data row is %s; expected an object",
                   rlhf__json_kind(v));
    if (err.code != 0) {
        json_decref(v);
        return rlhf__service_failed(host, &err);
    }
    *out = (rlhf_row *)(void *)v;
    return RLHF_OK;
}

static void row_close(const rlhf_host *host, rlhf_row *row) {
    (void)host;
    json_decref(row_of(row));
}

// ---- paths ----

// Returns 1 if `key` equals step[0..n), an escaped step of a JSON Pointer.
static int is_step(const char *key, const char *step, size_t n) {
    for (size_t i = 0; i < n; i++, key++) {
        char c = step[i];
        if (c == '~' && i + 1 < n && (step[i + 1] == '0' || step[i + 1] == '1'))
            c = step[++i] == '1' ? '/' : '~';
        if (!*key || *key != c) return 0;
    }
    return *key == '\0';
}

static json_t *member(json_t *object, const char *step, size_t n) {
    const char *key;
    json_t *v;
    json_object_foreach(object, key, v) {
        if (is_step(key, step, n)) return v;
    }
    return NULL;
}

// Look up an array index. The RFC forbids leading zeros.
static json_t *entry(const json_t *list, const char *step, size_t n) {
    size_t at = 0;
    if (n == 0 || n > 9 || (n > 1 && *step == '0')) return NULL;
    for (size_t i = 0; i < n; i++) {
        if (step[i] < '0' || step[i] > '9') return NULL;
        at = 10 * at + (size_t)(step[i] - '0');
    }
    return json_array_get(list, at);
}

static json_t *find(const rlhf_row *row, const char *path) {
    json_t *v = row_of(row);
    if (!path) return NULL;
    if (*path && *path != '/') return json_object_get(v, path);
    while (v && *path) {
        const char *step = path + 1;
        size_t n = strcspn(step, "/");
        v = rlhf__json_is_object(v) ? member(v, step, n)
            : json_is_array(v)      ? entry(v, step, n)
                                    : NULL;
        path = step + n;
    }
    return v;
}

// ---- values ----

static int32_t row_type(const rlhf_host *host, const rlhf_row *row, const char *path) {
    const json_t *v = find(row, path);
    (void)host;
    if (!v) return RLHF_JSON_ABSENT;
    if (rlhf__json_digits(v)) return RLHF_JSON_NUMBER;
    switch (json_typeof(v)) {
    case JSON_NULL:
        return RLHF_JSON_NULL;
    case JSON_TRUE:
    case JSON_FALSE:
        return RLHF_JSON_BOOL;
    case JSON_INTEGER:
    case JSON_REAL:
        return RLHF_JSON_NUMBER;
    case JSON_STRING:
        return RLHF_JSON_STRING;
    case JSON_ARRAY:
        return RLHF_JSON_LIST;
    default:
        return RLHF_JSON_OBJECT;
    }
}

static rlhf_status row_string(const rlhf_host *host, const rlhf_row *row, const char *path,
                              rlhf_str *out) {
    const json_t *v = find(row, path);
    if (!json_is_string(v)) return fail(host, row, path, "a string", v);
    *out = (rlhf_str){json_string_value(v), json_string_length(v)};
    return RLHF_OK;
}

static rlhf_status row_number(const rlhf_host *host, const rlhf_row *row, const char *path,
                              double *out) {
    const json_t *v = find(row, path);
    const char *digits = rlhf__json_digits(v);
    if (!json_is_number(v) && !digits) return fail(host, row, path, "a number", v);
    const double x = digits ? strtod(digits, NULL) : json_number_value(v);
    if (!isfinite(x)) return fail(host, row, path, "a number that a double can hold", v);
    *out = x;
    return RLHF_OK;
}

static rlhf_status row_integer(const rlhf_host *host, const rlhf_row *row, const char *path,
                               int64_t *out) {
    const json_t *v = find(row, path);
    if (!json_is_integer(v)) return fail(host, row, path, "an integer of at most 64 bits", v);
    *out = json_integer_value(v);
    return RLHF_OK;
}

static rlhf_status row_boolean(const rlhf_host *host, const rlhf_row *row, const char *path,
                               int32_t *out) {
    const json_t *v = find(row, path);
    if (!json_is_boolean(v)) return fail(host, row, path, "true or false", v);
    *out = json_is_true(v);
    return RLHF_OK;
}

static rlhf_status row_length(const rlhf_host *host, const rlhf_row *row, const char *path,
                              uint64_t *out) {
    const json_t *v = find(row, path);
    const int is_object = rlhf__json_is_object(v);
    if (!json_is_array(v) && !is_object) return fail(host, row, path, "a list or an object", v);
    *out = is_object ? json_object_size(v) : json_array_size(v);
    return RLHF_OK;
}

static rlhf_status row_json(const rlhf_host *host, const rlhf_row *row, const char *path,
                            char *utf8, uint64_t cap, uint64_t *len) {
    const json_t *v = find(row, path);
    struct rlhf__buf text = RLHF__BUF_INIT;
    struct rlhf__error err = {0, ""};
    if (!v) return fail(host, row, path, "a value", v);
    rlhf__json_write(&text, v, 0);
    *len = text.len;
    if (!text.bad && cap) memcpy(utf8, text.data, text.len < cap ? text.len : (size_t)cap);
    const int full = text.bad;
    rlhf__buf_finish(&text);
    if (!full) return RLHF_OK;
    rlhf__fail(&err, RLHF_E_NOMEM, "out of memory for a value of the data row");
    return rlhf__service_failed(host, &err);
}

// Returns an iterator at member i of the object, or NULL past the end.
static void *at_member(json_t *object, uint64_t i) {
    void *at = json_object_iter(object);
    while (at && i-- > 0)
        at = json_object_iter_next(object, at);
    return at;
}

static rlhf_status row_key(const rlhf_host *host, const rlhf_row *row, const char *path, uint64_t i,
                           rlhf_str *out) {
    json_t *v = find(row, path);
    void *at = rlhf__json_is_object(v) ? at_member(v, i) : NULL;
    if (!at) return fail(host, row, path, "an object with more members", v);
    *out = (rlhf_str){json_object_iter_key(at), strlen(json_object_iter_key(at))};
    return RLHF_OK;
}

static rlhf_status row_item(const rlhf_host *host, const rlhf_row *row, const char *path,
                            uint64_t i, rlhf_row **out) {
    json_t *v = find(row, path), *item = NULL;
    void *at = rlhf__json_is_object(v) ? at_member(v, i) : NULL;
    if (at) item = json_object_iter_value(at);
    if (json_is_array(v)) item = json_array_get(v, (size_t)i);
    *out = NULL;
    if (!item) return fail(host, row, path, "a list or an object with more entries", v);
    *out = (rlhf_row *)(void *)json_incref(item);
    return RLHF_OK;
}

const rlhf_row_service *rlhf__row_service(void) {
    static const rlhf_row_service table = {.size = sizeof table,
                                           .open = row_open,
                                           .close = row_close,
                                           .type = row_type,
                                           .string = row_string,
                                           .number = row_number,
                                           .integer = row_integer,
                                           .boolean = row_boolean,
                                           .json = row_json,
                                           .length = row_length,
                                           .key = row_key,
                                           .item = row_item};
    return &table;
}
