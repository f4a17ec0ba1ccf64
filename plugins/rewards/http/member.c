// member.c: see member.h.
#include "http/member.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

// To read the row, long integers become strings of U+FDD0, a code point for use inside a program,
// and their digits.
#define MARK "\"\xef\xb7\x90"

enum { MARK_BYTES = 4 };

static int is_long(const char *s, size_t n) {
    const size_t sign = *s == '-';
    if (n < sign + 19 || strspn(s + sign, "0123456789") < n - sign) return 0;
    errno = 0;
    (void)strtoll(s, NULL, 10);
    return errno == ERANGE;
}

// Returns a copy of the text in which long integers are marked strings. A mark and the quote after
// the digits are fewer bytes than the 19 digits that they follow.
static char *marked(rlhf_str row) {
    const size_t n = (size_t)row.len;
    char *from = malloc(n + 1), *out = malloc(2 * n + 1), *to = out;
    if (!from || !out) {
        free(from);
        free(out);
        return NULL;
    }
    memcpy(from, row.ptr, n);
    from[n] = '\0';
    for (size_t i = 0, end; i < n; i = end) {
        end = i + 1;
        if (from[i] == '"') {
            while (end < n && from[end] != '"')
                end += from[end] == '\\' && end + 1 < n ? 2 : 1;
            end += end < n;
        } else if (strchr("-0123456789", from[i])) {
            end = i + strspn(from + i, "0123456789+-.eE");
        }
        const int wrap = from[i] != '"' && is_long(from + i, end - i);
        if (wrap) memcpy(to, MARK, MARK_BYTES);
        if (wrap) to += MARK_BYTES;
        memcpy(to, from + i, end - i);
        to += end - i;
        if (wrap) *to++ = '"';
    }
    *to = '\0';
    free(from);
    return out;
}

// Makes the marked strings of a JSON text numbers again.
static char *unmarked(char *text) {
    char *to = text;
    for (const char *at = text; *at;) {
        const size_t n =
            strncmp(at, MARK, MARK_BYTES) == 0 ? strspn(at + MARK_BYTES, "-0123456789") : 0;
        if (n && at[MARK_BYTES + n] == '"') {
            memmove(to, at + MARK_BYTES, n);
            to += n;
            at += MARK_BYTES + n + 1;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
    return text;
}

char *rlhf__row_member(rlhf_str row, const char *key, int plain) {
    char *copy = row.len ? marked(row) : NULL;
    json_t *all = copy ? json_loads(copy, JSON_ALLOW_NUL, NULL) : NULL;
    const json_t *v = json_object_get(all, key);
    char *text = v ? json_dumps(v, JSON_ENCODE_ANY | (plain ? 0 : JSON_COMPACT)) : NULL;
    const int is_text = text && plain && json_is_string(v) && strncmp(text, MARK, MARK_BYTES) != 0;
    if (is_text) {
        free(text);
        text = strdup(json_string_value(v));
    } else if (text) {
        unmarked(text);
    }
    json_decref(all);
    free(copy);
    return text;
}
