// run_lines.h: reads a file of a run in which every line is a JSON object with a phase:
// metrics.jsonl, samples.jsonl, spread.jsonl, events.jsonl. The file is read once, in constant
// memory.
//
// Lines that are not a JSON object with a phase are skipped and counted. A last line without a line
// end is skipped too, because the program is still writing it, or the file was truncated.
#ifndef RLHF_FORMATS_HISTORY_RUN_LINES_H
#define RLHF_FORMATS_HISTORY_RUN_LINES_H

#include "history/run_files.h"

#define RLHF__RUN_PHASE_MAX ((int64_t)1 << 50)

struct rlhf__run_lines {
    struct rlhf__run_files *run;
    const char *name;      // borrowed
    struct rlhf__buf line; // the current line, without its line end
    char *block;           // bytes that were read ahead, from `at` to `have`
    size_t at, have;
    int64_t left;        // unread bytes of the file; those appended later need _more()
    int64_t phase, skip; // phase of the line; number of lines skipped so far
    json_t *row;         // the current line, if it has been decoded
    int fd;              // -1: the file does not exist
    int32_t cut;         // 1: the file ends in the middle of a line
};

// Open the file `name` of a run. A missing file is treated as an empty one. Errors: RLHF_E_NOMEM.
// [any]
rlhf_status rlhf__run_lines_open(struct rlhf__run_files *run, const char *name,
                                 struct rlhf__run_lines *out, struct rlhf__error *err);

// Report skipped lines in the run's trouble, and release everything. [any]
void rlhf__run_lines_close(struct rlhf__run_lines *l);

// After the end of the file was reached: read on if lines have been appended since. [any]
void rlhf__run_lines_more(struct rlhf__run_lines *l);

// Move to the next line with a phase. Returns 0 at the end. [any]
int rlhf__run_lines_next(struct rlhf__run_lines *l);

// Returns the object of the current line, borrowed until the next call of rlhf__run_lines_next. If
// the line is not an object with a phase, counts it as skipped and returns NULL. [any]
json_t *rlhf__run_lines_row(struct rlhf__run_lines *l);

// Get the first and the last object with a phase, without reading the lines between them. Both are
// new references, or NULL if the file has no such objects. [any]
void rlhf__run_lines_ends(struct rlhf__run_files *run, const char *name, json_t **first,
                          json_t **last);

// The phase of a row, or -1 if the row lacks a valid phase. [any]
int64_t rlhf__run_row_phase(const json_t *row);

#endif
