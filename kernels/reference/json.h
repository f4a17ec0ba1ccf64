// json.h: writes the JSON object that a backend's describe() returns, into memory of fixed size.
//
// For C and C++ (kernels/cuda). If the text does not fit, `full` is set. A member whose value is an
// empty string or 0 is left out, because all members that describe() returns are optional.
#ifndef RLHF_KERNELS_REFERENCE_JSON_H
#define RLHF_KERNELS_REFERENCE_JSON_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct rlhf__json {
    char text[8192];
    uint32_t n;    // bytes of the text, without the final NUL
    int32_t comma; // 1: a comma must precede the next member or item
    int32_t full;
};

static inline void rlhf__json_raw(struct rlhf__json *j, const char *s) {
    const size_t n = strlen(s);
    if (j->full || n >= sizeof j->text - j->n) {
        j->full = 1;
        return;
    }
    memcpy(j->text + j->n, s, n + 1);
    j->n += (uint32_t)n;
}

// Write a string with quotes. Bytes outside of ASCII become '?'. So the result is valid UTF-8, even
// if the string is not.
static inline void rlhf__json_string(struct rlhf__json *j, const char *s) {
    rlhf__json_raw(j, "\"");
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        char one[8] = {(char)c, 0};
        if (c == '"' || c == '\\')
            snprintf(one, sizeof one, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            snprintf(one, sizeof one, "\\u%04x", c);
        else if (c >= 0x80)
            one[0] = '?';
        rlhf__json_raw(j, one);
    }
    rlhf__json_raw(j, "\"");
}

// Write the text before a value: a comma if another value came before, and the key unless it is
// NULL.
static inline void rlhf__json_key(struct rlhf__json *j, const char *key) {
    if (j->comma) rlhf__json_raw(j, ", ");
    j->comma = 1;
    if (!key) return;
    rlhf__json_string(j, key);
    rlhf__json_raw(j, ": ");
}

// Begin an object ("{") or a list ("["). For an item of a list, key is NULL.
static inline void rlhf__json_begin(struct rlhf__json *j, const char *key, const char *bracket) {
    rlhf__json_key(j, key);
    rlhf__json_raw(j, bracket);
    j->comma = 0;
}

static inline void rlhf__json_end(struct rlhf__json *j, const char *bracket) {
    rlhf__json_raw(j, bracket);
    j->comma = 1;
}

// Begin the text: the outermost object.
static inline void rlhf__json_start(struct rlhf__json *j) {
    j->n = 0;
    j->text[0] = 0;
    j->comma = j->full = 0;
    rlhf__json_begin(j, NULL, "{");
}

static inline void rlhf__json_text(struct rlhf__json *j, const char *key, const char *value) {
    if (!value[0]) return;
    rlhf__json_key(j, key);
    rlhf__json_string(j, value);
}

static inline void rlhf__json_number(struct rlhf__json *j, const char *key, uint64_t value) {
    char digits[24];
    if (!value) return;
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    rlhf__json_key(j, key);
    rlhf__json_raw(j, digits);
}

static inline void rlhf__json_bool(struct rlhf__json *j, const char *key, int value) {
    rlhf__json_key(j, key);
    rlhf__json_raw(j, value ? "true" : "false");
}

#endif
