// run_files.h: the files that a run left, read as far as they can be read. They may be truncated,
// still growing, from another version, or from a stranger. So links are not followed, only regular
// files are read, every size is limited, and plugins stay closed.
//
// A part that cannot be read is not a failure. It adds a sentence to a list, the run's trouble.
#ifndef RLHF_FORMATS_HISTORY_RUN_FILES_H
#define RLHF_FORMATS_HISTORY_RUN_FILES_H

#include "base/folder.h"

#include <jansson.h>

struct rlhf__run_files {
    struct rlhf__folder *root;
    char *name;                // of the directory
    json_t *config, *manifest; // objects, empty if they are missing or cannot be read
    json_t *trouble;           // strings without a period at the end: what could not be read
};

// Open the directory of a run. Errors: RLHF_E_INVALID for anything but a directory with config.json
// or metrics.jsonl; RLHF_E_IO, RLHF_E_NOMEM. Release with rlhf__run_files_close, also after a
// failure. [any]
rlhf_status rlhf__run_files_open(const char *path, struct rlhf__run_files *out,
                                 struct rlhf__error *err);
void rlhf__run_files_close(struct rlhf__run_files *run);

// Append a sentence, printf-style, to the list of trouble. [any]
__attribute__((format(printf, 2, 3))) void rlhf__run_files_trouble(struct rlhf__run_files *run,
                                                                   const char *fmt, ...);

// A setting of config.json by its dotted name: "run.phases". Borrowed; NULL if it is missing. [any]
const json_t *rlhf__run_files_setting(const struct rlhf__run_files *run, const char *key);

// The same as a number; `otherwise` if it is missing or not a number. [any]
double rlhf__run_files_number(const struct rlhf__run_files *run, const char *key, double otherwise);

// Open a regular file of the run, not through a link. Returns a descriptor, or -1. If the file
// exists but cannot be read, this is added to the trouble. [any]
int rlhf__run_files_fd(struct rlhf__run_files *run, const char *name, int64_t *size);

#endif
