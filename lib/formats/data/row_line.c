// row_line.c: see row_line.h.
#include "data/row_line.h"

#include "base/json.h"
#include "text/unicode.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

int rlhf__row_line_blank(rlhf_str line) {
    for (uint64_t i = 0; i < line.len; i++)
        if (!strchr(" \t\v\f\r", line.ptr[i]) || !line.ptr[i]) return 0;
    return 1;
}

int rlhf__row_line_begins_object(rlhf_str line) {
    uint64_t i = 0;
    while (i < line.len && isspace((unsigned char)line.ptr[i]))
        i++;
    if (i == line.len || line.ptr[i] != '{') return 0;
    for (i++; i < line.len && isspace((unsigned char)line.ptr[i]);)
        i++;
    return i == line.len || line.ptr[i] == '"';
}

rlhf_status rlhf__row_line_hint_text(rlhf_status st, struct rlhf__error *err) {
    const size_t n = strlen(err->text);
    if (st == RLHF_E_INVALID)
        snprintf(err->text + n, sizeof err->text - n,
                 " (standard input begins with {, so its lines are JSON rows; such a text is "
                 "given as {\"prompt\": ...})");
    return st;
}

rlhf_status rlhf__row_line_check(rlhf_str line, const char *path, int64_t number,
                                 struct rlhf__error *err) {
    size_t good = rlhf__utf8_valid(line.ptr, (size_t)line.len);
    if (good == line.len) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_INVALID, "%s:%lld: invalid UTF-8 at byte %zu of the line", path,
                      (long long)number, good + 1);
}

rlhf_status rlhf__row_line_json(rlhf_str line, const char *path, int64_t number, json_t **out,
                                struct rlhf__error *err) {
    json_error_t why;
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL;
    *out = rlhf__json_decode(line.ptr, (size_t)line.len, flags, &why);
    if (!*out) return rlhf__json_failed(path, number, &why, err);
    if (json_is_object(*out)) return RLHF_OK;
    rlhf_status st = rlhf__fail(err, RLHF_E_INVALID, "%s:%lld: the row is %s, expected an object",
                                path, (long long)number, rlhf__json_kind(*out));
    json_decref(*out);
    *out = NULL;
    return st;
}
