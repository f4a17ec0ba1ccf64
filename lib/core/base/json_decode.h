// json_decode.h: decodes JSON text with Jansson, also if it has integers beyond 64 bits, which
// Jansson refuses.
//
// JSON allows integers of any size, and some programs write long ones: for a tokenizer without a
// length limit, transformers writes 10^30. All JSON is read through this file.
#ifndef RLHF_CORE_BASE_JSON_DECODE_H
#define RLHF_CORE_BASE_JSON_DECODE_H

#include <jansson.h>

// Like json_loadb, but integers beyond 64 bits become the nearest double. Returns a new reference.
// On failure, returns NULL, and sets *why to the reason and its position in the text. `why` may be
// NULL. [any]
json_t *rlhf__json_decode(const char *text, size_t len, size_t flags, json_error_t *why);

// Like rlhf__json_decode, but integers beyond 64 bits keep their digits, at most 4300, as in
// Python. Such an integer is an object that rlhf__json_digits knows, and rlhf__json_write writes it
// as a number. Where an object is expected, ask rlhf__json_is_object. [any]
json_t *rlhf__json_decode_digits(const char *text, size_t len, size_t flags, json_error_t *why);

// The digits of an integer beyond 64 bits, with a "-" if it is negative; NULL if `v` is another
// value. [any]
const char *rlhf__json_digits(const json_t *v);

// 1 if `v` is an object and not an integer beyond 64 bits. [any]
int rlhf__json_is_object(const json_t *v);

// Replaces the integers of rlhf__json_decode_digits with the nearest double where `object` has them
// as members or in lists, but not in the objects inside it. Returns 0 if one of them is too large
// for a double. [any]
int rlhf__json_widen(json_t *object);

#endif
