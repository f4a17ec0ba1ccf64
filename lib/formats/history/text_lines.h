// text_lines.h: reads a regular file of lines, one line at a time. The file may come from a
// stranger: lines are limited, and a byte 0 is an error, because texts do not contain it.
#ifndef RLHF_FORMATS_HISTORY_TEXT_LINES_H
#define RLHF_FORMATS_HISTORY_TEXT_LINES_H

#include "base/buf.h"
#include "base/file.h"

#define RLHF__TEXT_LINE_MAX ((size_t)1 << 30) // bytes

// A file without lines if it does not exist. Release it with rlhf__text_lines_close.
struct rlhf__text_lines {
    char path[RLHF__PATH_CAP];
    struct rlhf__buf line; // the current line, without its newline
    char *block;           // bytes that were read ahead, from `at` to `have`
    size_t at, have;
    int64_t number; // of the current line, from 1
    int32_t fd;     // -1: the file does not exist
    int32_t whole;  // 1: the current line ends with a newline
};

// Errors: RLHF_E_INVALID (not a regular file), RLHF_E_IO, RLHF_E_NOMEM. [any]
rlhf_status rlhf__text_lines_open(const char *path, struct rlhf__text_lines *out,
                                  struct rlhf__error *err);

// Read the next line. At the end of the file, *more is 0. Errors: RLHF_E_INVALID (a byte 0, or a
// line that is too long), RLHF_E_IO, RLHF_E_NOMEM. [any]
rlhf_status rlhf__text_lines_next(struct rlhf__text_lines *, int *more, struct rlhf__error *err);

// Go back to the first line. [any]
void rlhf__text_lines_rewind(struct rlhf__text_lines *);

void rlhf__text_lines_close(struct rlhf__text_lines *); // zeroed structs allowed [any]

#endif
