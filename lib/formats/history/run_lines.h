// run_lines.h: a file of a run with one JSON object per line, each with a phase: metrics.jsonl,
// samples.jsonl, spread.jsonl, events.jsonl. It is read once, in constant memory.
//
// Lines that are not such objects are skipped and counted. A last line without its end is skipped
// too: it is still being written, or the file was truncated.
#ifndef RLHF_FORMATS_HISTORY_RUN_LINES_H
#define RLHF_FORMATS_HISTORY_RUN_LINES_H

#include "history/run_files.h"

#define RLHF__RUN_PHASE_MAX ((int64_t)1 << 50)

struct rlhf__run_lines {
    struct rlhf__run_files *run;
    const char *name;      // borrowed
    struct rlhf__buf line; // without its end
    char *block;           // bytes read ahead: from `at` to `have`
    size_t at, have;
    int64_t left;        // bytes of the file not read yet; bytes appended later are not read
    int64_t phase, skip; // of the line; lines skipped so far
    json_t *row;         // the line, if it has been decoded
    int fd;              // -1: the file does not exist
    int32_t cut;         // 1: the file ends within a line
};

// Open the file `name` of a run. A missing file counts as empty. Errors: RLHF_E_NOMEM. [any]
rlhf_status rlhf__run_lines_open(struct rlhf__run_files *run, const char *name,
                                 struct rlhf__run_lines *out, struct rlhf__error *err);

// Add what was skipped to the run's trouble, and release everything. [any]
void rlhf__run_lines_close(struct rlhf__run_lines *l);

// Move to the next line with a phase. Returns 0 at the end. [any]
int rlhf__run_lines_next(struct rlhf__run_lines *l);

// The object of the current line. Borrowed until the next call of rlhf__run_lines_next. A line that
// is not an object with a phase gives NULL and is counted as skipped. [any]
json_t *rlhf__run_lines_row(struct rlhf__run_lines *l);

// The first and the last object with a phase, without reading the lines between them. New
// references; NULL in a file without such objects. [any]
void rlhf__run_lines_ends(struct rlhf__run_files *run, const char *name, json_t **first,
                          json_t **last);

// The phase of a row; -1 if it lacks a valid one. [any]
int64_t rlhf__run_row_phase(const json_t *row);

#endif
