// member.c: see member.h.
#include "http/member.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// To read a text, long integers become strings of U+FDD0, a code point for use inside a program,
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

// Returns a copy of s[0..n) in which long integers are marked strings, and sets *len to its length.
// A mark and the quote after the digits are fewer bytes than the 19 digits that they follow.
static char *marked(const char *s, size_t n, size_t *len) {
    char *from = malloc(n + 1), *out = malloc(2 * n + 1), *to = out;
    if (!from || !out) {
        free(from);
        free(out);
        return NULL;
    }
    memcpy(from, s, n);
    from[n] = '\0';
    for (size_t i = 0, end; i < n; i = end) {
        end = i + 1;
        if (from[i] == '"') {
            while (end < n && from[end] != '"')
                end += from[end] == '\\' && end + 1 < n ? 2 : 1;
            end += end < n;
        } else if (from[i] == '-' || (from[i] >= '0' && from[i] <= '9')) {
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
    *len = (size_t)(to - out);
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

json_t *rlhf__long_read(const char *s, size_t n) {
    size_t len = 0;
    char *copy = n ? marked(s, n, &len) : NULL;
    json_t *v = copy ? json_loadb(copy, len, JSON_ALLOW_NUL, NULL) : NULL;
    free(copy);
    return v;
}

const char *rlhf__long_digits(const json_t *v) {
    const char *s = json_string_value(v);
    const char *mark = &MARK[1]; // without the quote
    if (!s || strncmp(s, mark, MARK_BYTES - 1) != 0) return NULL;
    s += MARK_BYTES - 1;
    return *s && !s[strspn(s, "-0123456789")] ? s : NULL;
}

char *rlhf__long_text(const json_t *v, size_t flags) {
    char *text = v ? json_dumps(v, JSON_ENCODE_ANY | flags) : NULL;
    return text ? unmarked(text) : NULL;
}

char *rlhf__row_member(rlhf_str row, const char *key, int plain) {
    json_t *all = rlhf__long_read(row.ptr, (size_t)row.len);
    const json_t *v = json_object_get(all, key);
    const int is_text = plain && json_is_string(v) && !rlhf__long_digits(v);
    char *text =
        is_text ? strdup(json_string_value(v)) : rlhf__long_text(v, plain ? 0 : JSON_COMPACT);
    json_decref(all);
    return text;
}
