// json.h: reads JSON strictly and writes it readably.
//
// Jansson does the parsing, called by json_decode.h. This file adds messages with the file's name
// and line, the line number of a key, and a writer. The writer prints the shortest number that
// reads back as the same value: 0.1, not 0.10000000000000001.
#ifndef RLHF_CORE_BASE_JSON_H
#define RLHF_CORE_BASE_JSON_H

#include "base/folder.h"
#include "base/json_decode.h"

#include <jansson.h>

// Sets `err` after rlhf__json_decode returned NULL for one line of a JSON Lines file. Returns
// RLHF_E_INVALID, with "NAME:LINE:COLUMN: not valid JSON: ..." in the message, or RLHF_E_NOMEM.
// [any]
rlhf_status rlhf__json_line_failed(const char *name, int64_t line, const json_error_t *why,
                                   struct rlhf__error *err);

// Parse the `len` bytes of `text`. Duplicate keys, bytes after the JSON value and invalid UTF-8 are
// errors, with the message "<name>:<line>:<column>: reason". *out is a new reference. [any]
rlhf_status rlhf__json_parse(const char *name, const char *text, size_t len, json_t **out,
                             struct rlhf__error *err);

// Like rlhf__json_parse, but integers beyond 64 bits keep their digits (json_decode.h), and strings
// may have NULs. [any]
rlhf_status rlhf__json_parse_digits(const char *name, const char *text, size_t len, json_t **out,
                                    struct rlhf__error *err);

// Like rlhf__json_parse, for the text of a file that may come from a stranger. The message leaves
// out the text, because the file may be a link to a secret. [any]
rlhf_status rlhf__json_parse_foreign(const char *name, const char *text, size_t len, json_t **out,
                                     struct rlhf__error *err);

// Read and parse a file of at most 64 MiB, as rlhf__json_parse_foreign does. [any]
rlhf_status rlhf__json_load(const char *path, json_t **out, struct rlhf__error *err);

// Parses the file dir/name as rlhf__json_load does. If the file is missing, returns RLHF_OK and
// sets *out to NULL. If the file's value is not an object, returns RLHF_E_INVALID. [any]
rlhf_status rlhf__json_load_any(const char *dir, const char *name, json_t **out,
                                struct rlhf__error *err);

// Write `v` with a final newline to the file `name` in the folder `in`; see file.h. If `in` is
// NULL, `name` is a path. Takes over the reference to `v`, also on failure. If `v` is NULL, returns
// RLHF_E_NOMEM. [any]
rlhf_status rlhf__json_save_new(const struct rlhf__folder *in, const char *name, json_t *v,
                                int indent, struct rlhf__error *err);

// Returns the line, counted from 1, of the value at `path` ("optim.lr", "reward.0.weight") in valid
// JSON text, or 0 if the value is missing. [any]
int64_t rlhf__json_line_of(const char *text, size_t len, const char *path);

// Append `v` to `out`, on one line if `indent` is 0. Reals that are not finite are written as null.
// Object keys keep their order. [any]
void rlhf__json_write(struct rlhf__buf *out, const json_t *v, int indent);

// Append bytes as one JSON string with quotes. Invalid UTF-8 becomes U+FFFD. Characters that are
// unsafe on a terminal (printable.h) are escaped. [any]
void rlhf__json_write_string(struct rlhf__buf *out, const char *bytes, size_t n);

// Returns any NUL-ended bytes as a JSON string: a new reference, or NULL if memory runs out.
// Invalid UTF-8 becomes U+FFFD. A NULL argument gives the empty string. [any]
json_t *rlhf__json_text(const char *bytes);

// Returns the text of a member, or "" if it is missing or is not a string. Borrowed. [any]
const char *rlhf__json_text_in(const json_t *object, const char *key);

// Reads several fields of an object. Each must be an integer of 0 or more. If one of them is
// invalid, sets none, and returns RLHF_E_INVALID with the field's name in the message. [any]
struct rlhf__json_count {
    const char *name;
    int64_t *to;
};
rlhf_status rlhf__json_counts(const json_t *object, const struct rlhf__json_count *list, size_t n,
                              struct rlhf__error *err);

// Returns the type of a value in words: "a string", "an integer", "null", ...; "missing" for NULL.
// [any]
const char *rlhf__json_kind(const json_t *v);

// After this call, a failed allocation in Jansson ends the program with one sentence and status 1.
// Call this function before the first use of Jansson. The reason: Jansson 2.14 dereferences NULL
// after some failed allocations and reports others as wrong input. Besides, the results of
// Jansson's setters would have to be checked in a hundred places. Ending the program is safe,
// because files are written so that a run survives a kill at any instant. The rest of the host
// reports RLHF_E_NOMEM. [main]
void rlhf__json_guard_memory(void);

#endif
