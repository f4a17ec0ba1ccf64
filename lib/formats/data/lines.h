// lines.h: reads files of rows, plain or gzip, line by line within a memory limit. It also
// recognizes JSON rows, and writes JSON Lines.
//
// It does not know what a row means (dataset.c does).
#ifndef RLHF_FORMATS_DATA_LINES_H
#define RLHF_FORMATS_DATA_LINES_H

#include "base/error.h"
#include "base/watch.h"

#include <jansson.h>

#include <signal.h>

// ---- how a file is loaded ----

#define RLHF__DATA_MAX_MIB 1024 // default memory limit

enum { RLHF__BAD_ROWS_NAMED = 3 };

// Rows that were left out because they are bad. A bad row has a line that is not JSON or not UTF-8,
// or fields that cannot be used.
struct rlhf__bad_rows {
    int64_t n;
    char first[RLHF__BAD_ROWS_NAMED][512]; // "rows.jsonl:7: field 'text' is null, ..."
};

// Options for loading rows, borrowed. If the pointer to them is NULL, the memory limit is the
// default, and loading cannot be canceled.
struct rlhf__loading {
    int64_t max_mib;     // memory limit of the rows and their tokens, in MiB; 0 = the default
    const char *setting; // for messages: the name of that setting; NULL = "data.max_mib"
    const volatile sig_atomic_t *cancelled; // loading stops if this is not 0; NULL = never
    const struct rlhf__watch *watch;        // for progress; may be NULL
    struct rlhf__bad_rows *bad; // receives the bad rows, which are left out; NULL: they are errors
};

// `st` and `err` are the result of reading a row. If the row is bad (RLHF_E_INVALID) and bad rows
// are left out, counts it and returns RLHF_OK; the caller then undoes what the row has added, and
// *left_out is 1. Otherwise returns st. [any]
rlhf_status rlhf__bad_row(const struct rlhf__loading *, rlhf_status st, int *left_out,
                          const struct rlhf__error *err);

// Add the rows of `from`, which come after those of `to`. [any]
void rlhf__bad_rows_add(struct rlhf__bad_rows *to, const struct rlhf__bad_rows *from);

// Append "; 2 rows are bad, the first: REASON" to the message of a file without rows. Returns the
// error's code. [any]
rlhf_status rlhf__bad_rows_context(const struct rlhf__loading *, struct rlhf__error *err);

// Checks that loading may continue. Called for every row. `bytes` is the memory that loading uses
// so far. `line` is the number of the row's line for the message, or 0 if it is unknown. Errors:
// RLHF_E_CANCELLED, and RLHF_E_INVALID if `bytes` exceeds the limit. [any]
rlhf_status rlhf__loading_check(const struct rlhf__loading *, uint64_t bytes, const char *path,
                                int64_t line, struct rlhf__error *err);

// Call this function after every row. It reports progress for every 256th row. [main]
void rlhf__loading_seen(const struct rlhf__loading *, const char *what, int64_t done, int64_t of);

// ---- lines ----

#define RLHF__LINE_MAX ((size_t)8 << 20) // bytes of a line; parsed JSON takes many times as much

struct rlhf__lines; // opaque

// Open a file of lines. The caller owns *out; `path` must outlive it. `setting` is the setting that
// the path came from, such as "--data", or NULL if it is unknown. Error messages begin with
// `setting`. Errors: RLHF_E_INVALID (no such file, a directory, a JSON list), RLHF_E_UNSUPPORTED
// (another kind of file, such as CSV), RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__lines_open(const char *path, const char *setting, struct rlhf__lines **out,
                             struct rlhf__error *err);

// Like rlhf__lines_open, for standard input, which stays open. [main]
rlhf_status rlhf__lines_open_stdin(struct rlhf__lines **out, struct rlhf__error *err);

// NULL allowed. [main]
void rlhf__lines_close(struct rlhf__lines *lines);

// Get the next line without its line end (LF or CRLF) and, for line 1, without a UTF-8 byte-order
// mark. The line is borrowed until the next call. *number is the line's number, from 1. At the end
// of the file, *more is 0. Errors: RLHF_E_INVALID (damaged or truncated gzip, line too long),
// RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__lines_next(struct rlhf__lines *lines, rlhf_str *line, int64_t *number, int *more,
                             struct rlhf__error *err);

// ---- kinds of values ----

// 1 if the file's name ends with .txt or .txt.gz, so that each line is a text and not JSON. [any]
int rlhf__data_is_text(const char *path);

// ---- rows ----

// 1 if the line is empty or consists of white space. [any]
int rlhf__row_line_blank(rlhf_str line);

// Returns 1 if the text begins like a JSON row: with `{"`, or with a brace that is alone on its
// line. Ordinary text rarely begins like this. [any]
int rlhf__row_line_begins_object(rlhf_str line);

// Returns `st`. If `st` is RLHF_E_INVALID, first appends to `err` the hint that the piped text
// looks like a JSON row. [any]
rlhf_status rlhf__row_line_hint_text(rlhf_status st, struct rlhf__error *err);

// Returns RLHF_E_INVALID, with the file, line and byte in the message, if the line is not valid
// UTF-8. [any]
rlhf_status rlhf__row_line_check(rlhf_str line, const char *path, int64_t number,
                                 struct rlhf__error *err);

// Parse a line, which must be valid UTF-8, as an object. In the objects inside it (messages, tools,
// variables of the chat template), integers beyond 64 bits keep their digits; elsewhere they become
// the nearest double (base/json_decode.h). The caller owns *out. Errors: RLHF_E_INVALID (not valid
// JSON, a duplicate key, not an object), RLHF_E_NOMEM. [any]
rlhf_status rlhf__row_line_json(rlhf_str line, const char *path, int64_t number, json_t **out,
                                struct rlhf__error *err);

// ---- writing JSON Lines ----

// Writes a file that appears complete or not at all. If the file's name ends with ".gz", the file
// is compressed. The same lines always give the same bytes.
struct rlhf__line_writer; // opaque

// Refuse a target that exists already: "pairs: --out 'x' exists already; --force replaces it". With
// `force`, an existing regular file is allowed, but not a link (even to a missing file), a device,
// a pipe or a directory. The message begins with `command`. Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__line_writer_free_target(const char *command, const char *target, int force,
                                          struct rlhf__error *err);

// Start writing the file `target`, under a temporary name in the same directory. The caller owns
// *out, and must commit or abort it. Errors: RLHF_E_IO, RLHF_E_NOMEM. [main]
rlhf_status rlhf__line_writer_open(const char *target, struct rlhf__line_writer **out,
                                   struct rlhf__error *err);

// Append the row as one line. Takes ownership of the reference to the row, also on failure. If
// `row` is NULL (after a failed json_pack), returns RLHF_E_NOMEM. [main]
rlhf_status rlhf__line_writer_put_new(struct rlhf__line_writer *w, json_t *row,
                                      struct rlhf__error *err);

// Rename the temporary file to the target and free w, also on failure. Errors: RLHF_E_IO. After an
// error, the temporary file is removed. [main]
rlhf_status rlhf__line_writer_commit(struct rlhf__line_writer *w, struct rlhf__error *err);

// Remove the temporary file and free w. NULL allowed. [main]
void rlhf__line_writer_abort(struct rlhf__line_writer *w);

#endif
