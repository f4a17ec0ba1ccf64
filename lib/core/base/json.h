// json.h: reading JSON strictly and writing it readably.
//
// Jansson parses. This adds integers of any size, file names and lines in messages, the line of a
// key, and a writer that prints the shortest number that reads back the same (0.1, not
// 0.10000000000000001).
#ifndef RLHF_HOST_JSON_H
#define RLHF_HOST_JSON_H

#include "base/folder.h"

#include <jansson.h>

// Like json_loadb, but integers beyond 64 bits become the nearest double; *why (NULL allowed) gives
// the position in text. New reference. All JSON is read through this. [any]
json_t *rlhf__json_decode(const char *text, size_t len, size_t flags, json_error_t *why);

// The error to return after that returned NULL: RLHF_E_INVALID with "NAME:LINE:COLUMN: not valid
// JSON: ...", or RLHF_E_NOMEM. [any]
rlhf_status rlhf__json_failed(const char *name, int64_t line, const json_error_t *why,
                              struct rlhf__error *err);

// Parse text (len bytes). Duplicate keys, trailing bytes and invalid UTF-8 are refused; the message
// is "<name>:<line>:<column>: reason". *out is a new reference. [any]
rlhf_status rlhf__json_parse(const char *name, const char *text, size_t len, json_t **out,
                             struct rlhf__error *err);

// Read and parse a file of at most 64 MiB. [any]
rlhf_status rlhf__json_load(const char *path, json_t **out, struct rlhf__error *err);

// The same for dir/name, which must hold an object (else RLHF_E_INVALID) or be missing; *out is
// NULL then. [any]
rlhf_status rlhf__json_load_any(const char *dir, const char *name, json_t **out,
                                struct rlhf__error *err);

// Write v (released, also on failure; NULL is RLHF_E_NOMEM) as the file `name` in a folder (NULL:
// name is a path), with a final newline; see file.h. [any]
rlhf_status rlhf__json_save_new(const struct rlhf__folder *in, const char *name, json_t *v,
                                int indent, struct rlhf__error *err);

// Line (from 1) of the value at `path` ("optim.lr", "reward.0.weight") in valid JSON text; 0 if it
// is missing. [any]
int64_t rlhf__json_line_of(const char *text, size_t len, const char *path);

// Append v to out; indent 0 = one line. Non-finite reals are written as null. Object keys keep
// their order. [any]
void rlhf__json_write(struct rlhf__buf *out, const json_t *v, int indent);

// Append one JSON string with quotes; invalid UTF-8 becomes U+FFFD, and characters that
// must not be shown (printable.h) are escaped, so that the text is safe on a terminal. [any]
void rlhf__json_write_string(struct rlhf__buf *out, const char *bytes, size_t n);

// A JSON string of any NUL-ended bytes: invalid UTF-8 becomes U+FFFD; NULL gives the empty string.
// New reference; NULL when out of memory. [any]
json_t *rlhf__json_text(const char *bytes);

// Shortest decimal that reads back as v, with ".0" when it would look like an integer and
// `real` is 1; non-finite gives "null". Returns out. [any]
const char *rlhf__format_double(double v, int real, char out[40]);

// A short decimal that reads back as v, also by way of a double; non-finite gives "null". Returns
// out. [any]
const char *rlhf__format_float(float v, char out[40]);

// Fields of an object that count something: whole numbers of 0 or more. All are read or none;
// RLHF_E_INVALID names the wrong field. [any]
struct rlhf__json_count {
    const char *name;
    int64_t *to;
};
rlhf_status rlhf__json_counts(const json_t *object, const struct rlhf__json_count *list, size_t n,
                              struct rlhf__error *err);

// What a value is, in words: "a string", "an integer", "null", ...; NULL is "missing". [any]
const char *rlhf__json_kind(const json_t *v);

// Make failed allocations of Jansson end the program, with one sentence and status 1. Call it
// before the first use of Jansson. Jansson 2.14 dereferences NULL after some failed allocations and
// reports others as wrong input, and its setters would have to be checked in a hundred places.
// Ending the program is safe: files are written so that a run survives a kill at any instant. The
// rest of the host reports RLHF_E_NOMEM. [main]
void rlhf__json_guard_memory(void);

#endif
