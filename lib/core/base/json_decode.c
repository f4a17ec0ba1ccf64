// json_decode.c: see json_decode.h.
#include "base/json_decode.h"

#include "base/buf.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- texts ----

// Returns 1 if the literal s[0..n) is an integer that does not fit in 64 bits.
static int is_long(const char *s, size_t n) {
    const size_t sign = *s == '-';
    if (n < sign + 19 || s[sign] == '0' || strspn(s + sign, "0123456789") < n - sign) return 0;
    errno = 0;
    (void)strtoll(s, NULL, 10);
    return errno == ERANGE;
}

// Moves past the string, number or other character at text[at]. Returns the position after it, and
// sets *is_number.
static size_t after(const char *text, size_t len, size_t at, int *is_number) {
    *is_number = text[at] == '-' || (text[at] >= '0' && text[at] <= '9');
    if (*is_number) return at + strspn(text + at, "0123456789+-.eE");
    if (text[at] != '"') return at + 1;
    for (at++; at < len && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at < len ? at + 1 : len;
}

// Returns a copy of the text with a NUL at its end.
static char *ended(const char *text, size_t len, json_error_t *why) {
    char *copy = malloc(len + 1);
    if (!copy) {
        snprintf(why->text, sizeof why->text, "out of memory");
        why->text[sizeof why->text - 1] = json_error_out_of_memory;
        return NULL;
    }
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

static int is_overflow(const json_error_t *why) {
    return json_error_code(why) == json_error_numeric_overflow;
}

// ---- the nearest double ----

// If the integer literal s[0..n) does not fit in 64 bits, replace it with the nearest double and
// return 1. The replacement has the same length (17 digits, an exponent, spaces), so the rest of
// the text does not move.
static int widen(char *s, size_t n) {
    if (!is_long(s, n)) return 0;
    const double v = strtod(s, NULL);
    if (!isfinite(v)) return 0;
    char digits[40], fresh[40];
    snprintf(digits, sizeof digits, "%.16e", fabs(v)); // d.dddddddddddddddde+NN
    const int len = snprintf(fresh, sizeof fresh, "%s%c%.16se%ld", *s == '-' ? "-" : "", digits[0],
                             digits + 2, strtol(digits + 19, NULL, 10) - 16);
    memset(s, ' ', n);
    memcpy(s, fresh, (size_t)len);
    return 1;
}

// Reads a text as Jansson does. If this fails because of a long integer, *copy becomes a copy of
// the text, which the caller frees; otherwise NULL.
static json_t *decode_short(const char *text, size_t len, size_t flags, json_error_t *why,
                            char **copy) {
    json_t *v = json_loadb(text, len, flags, why);
    *copy = v || !is_overflow(why) ? NULL : ended(text, len, why);
    return v;
}

json_t *rlhf__json_decode(const char *text, size_t len, size_t flags, json_error_t *why) {
    json_error_t own;
    char *copy;
    if (!why) why = &own;
    json_t *v = decode_short(text, len, flags, why, &copy);
    if (!copy) return v;
    size_t found = 0;
    int is_number;
    for (size_t i = 0, to; i < len; i = to) {
        to = after(copy, len, i, &is_number);
        if (is_number) found += (size_t)widen(copy + i, to - i);
    }
    if (found) v = json_loadb(copy, len, flags, why);
    free(copy);
    return v;
}

// ---- digits ----

// Jansson lacks a type for integers beyond 64 bits. Such an integer becomes an object with one
// member. The member's name is U+FDD0, which Unicode reserves for use inside a program.
#define NAME "\xef\xb7\x90"

enum { DIGITS_MAX = 4300 };

// Returns 1 if s[0..n) are the digits of an integer beyond 64 bits that is not too long.
static int is_digits(const char *s, size_t n) {
    return n <= DIGITS_MAX + (size_t)(*s == '-') && is_long(s, n);
}

static json_t *decode_wrapped(const char *copy, size_t len, size_t flags) {
    struct rlhf__buf all = RLHF__BUF_INIT;
    int is_number;
    for (size_t i = 0, to; i < len; i = to) {
        to = after(copy, len, i, &is_number);
        const int wrap = is_number && is_digits(copy + i, to - i);
        if (wrap) rlhf__buf_puts(&all, "{\"" NAME "\":\"");
        rlhf__buf_put(&all, copy + i, to - i);
        if (wrap) rlhf__buf_puts(&all, "\"}");
    }
    json_t *v = all.bad ? NULL : json_loadb(rlhf__buf_text(&all), all.len, flags, NULL);
    rlhf__buf_finish(&all);
    if (flags & JSON_DECODE_ANY || !rlhf__json_digits(v)) return v;
    json_decref(v); // the whole text is a number
    return NULL;
}

json_t *rlhf__json_decode_digits(const char *text, size_t len, size_t flags, json_error_t *why) {
    json_error_t own;
    char *copy;
    if (!why) why = &own;
    json_t *v = decode_short(text, len, flags, why, &copy);
    if (!copy) return v;
    v = decode_wrapped(copy, len, flags);
    free(copy);
    return v ? v : rlhf__json_decode(text, len, flags, why); // finds the place of the error
}

const char *rlhf__json_digits(const json_t *v) {
    const json_t *text = json_object_size(v) == 1 ? json_object_get(v, NAME) : NULL;
    const char *s = json_string_value(text);
    return s && is_digits(s, json_string_length(text)) ? s : NULL;
}

int rlhf__json_is_object(const json_t *v) { return json_is_object(v) && !rlhf__json_digits(v); }

// Returns the value that takes the place of v, as a new reference. NULL: a double cannot hold it.
static json_t *widened(json_t *v) {
    const char *digits = rlhf__json_digits(v);
    json_t *item, *wide;
    size_t i;
    if (digits) return json_real(strtod(digits, NULL)); // NULL if it is not finite
    json_array_foreach(v, i, item) {
        wide = widened(item);
        if (!wide || json_array_set_new(v, i, wide) != 0) return NULL;
    }
    return json_incref(v);
}

int rlhf__json_widen(json_t *object) {
    const char *key;
    json_t *v, *wide;
    json_object_foreach(object, key, v) {
        wide = widened(v);
        if (!wide || json_object_set_new(object, key, wide) != 0) return 0;
    }
    return 1;
}
