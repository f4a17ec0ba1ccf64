// lines.h: the lines of a text file, plain or gzip, one after the other.
//
// What it is not: it does not know what a line means (dataset.c does); internal to data/.
#ifndef RLHF_HOST_DATA_LINES_H
#define RLHF_HOST_DATA_LINES_H

#include "base/error.h"

#define RLHF__LINE_MAX ((size_t)8 << 20) // bytes a line may have; its JSON takes many times that

struct rlhf__lines; // opaque

// Caller owns *out; path must outlive it. setting: what gave the path, which messages then begin
// with ("--data"); NULL = not said. Errors: RLHF_E_INVALID (no such file), RLHF_E_IO,
// RLHF_E_NOMEM. [main]
rlhf_status rlhf__lines_open(const char *path, const char *setting, struct rlhf__lines **out,
                             struct rlhf__error *err);

// The same of standard input, which stays open. [main]
rlhf_status rlhf__lines_open_stdin(struct rlhf__lines **out, struct rlhf__error *err);

// NULL allowed. [main]
void rlhf__lines_close(struct rlhf__lines *lines);

// The next line without its end (LF or CRLF) and, on line 1, without a UTF-8 byte-order mark;
// borrowed until the next call. *more = 0 at the end of the file. *number counts from 1.
// Errors: RLHF_E_INVALID (damaged or truncated gzip, line too long), RLHF_E_IO, RLHF_E_NOMEM.
// [main]
rlhf_status rlhf__lines_next(struct rlhf__lines *lines, rlhf_str *line, int64_t *number, int *more,
                             struct rlhf__error *err);

#endif
