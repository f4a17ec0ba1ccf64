// numbers.h: reads JSON files of expected numbers, which scripts make_*.py write. Every function
// fails the test if something is missing or if an array has another length.
//
// Header only; the test links PkgConfig::JANSSON.
#ifndef RLHF_TESTS_SUPPORT_NUMBERS_H
#define RLHF_TESTS_SUPPORT_NUMBERS_H

#include "check.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

// Reads the file `name` below tests/. json_decref releases the result.
static inline json_t *numbers_open(const char *name) {
    char path[4096];
    const char *root = getenv("RLHF_SOURCE_DIR");
    json_error_t why;
    snprintf(path, sizeof path, "%s/tests/%s", root ? root : ".", name);
    json_t *all = json_load_file(path, 0, &why);
    if (!all) fail_msg("%s: %s", path, why.text);
    return all;
}

static inline const json_t *numbers_get(const json_t *from, const char *key) {
    const json_t *value = json_object_get(from, key);
    if (!value) fail_msg("the numbers have no \"%s\"", key);
    return value;
}

// The list `key` of n entries.
static inline const json_t *numbers_list(const json_t *from, const char *key, size_t n) {
    const json_t *list = numbers_get(from, key);
    if (json_array_size(list) != n)
        fail_msg("\"%s\" has %zu entries, not %zu", key, json_array_size(list), n);
    return list;
}

static inline double numbers_one(const json_t *from, const char *key) {
    const json_t *value = numbers_get(from, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static inline int32_t numbers_int(const json_t *from, const char *key) {
    const json_t *value = numbers_get(from, key);
    assert_true(json_is_integer(value));
    return (int32_t)json_integer_value(value);
}

static inline const char *numbers_text(const json_t *from, const char *key) {
    const char *text = json_string_value(numbers_get(from, key));
    assert_non_null(text);
    return text;
}

static inline void numbers_doubles(const json_t *from, const char *key, double *out, size_t n) {
    const json_t *list = numbers_list(from, key, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(json_is_number(json_array_get(list, i)));
        out[i] = json_number_value(json_array_get(list, i));
    }
}

static inline void numbers_floats(const json_t *from, const char *key, float *out, size_t n) {
    const json_t *list = numbers_list(from, key, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(json_is_number(json_array_get(list, i)));
        out[i] = (float)json_number_value(json_array_get(list, i));
    }
}

static inline void numbers_ints(const json_t *from, const char *key, int32_t *out, size_t n) {
    const json_t *list = numbers_list(from, key, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(json_is_integer(json_array_get(list, i)));
        out[i] = (int32_t)json_integer_value(json_array_get(list, i));
    }
}

// Words of 32 bits.
static inline void numbers_words(const json_t *from, const char *key, uint32_t *out, size_t n) {
    const json_t *list = numbers_list(from, key, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(json_is_integer(json_array_get(list, i)));
        out[i] = (uint32_t)json_integer_value(json_array_get(list, i));
    }
}

#endif
