// run_files.h: reads the files of a run as far as possible. The files may be truncated, still
// growing, from another version, or from a stranger. So links are not followed, only regular files
// are read, every size is limited, and no plugin is loaded.
//
// If a part cannot be read, that is not a failure. A sentence about it is added to a list, which is
// called the run's trouble.
#ifndef RLHF_FORMATS_HISTORY_RUN_FILES_H
#define RLHF_FORMATS_HISTORY_RUN_FILES_H

#include "base/folder.h"

#include <jansson.h>

struct rlhf__run_files {
    struct rlhf__folder *root;
    char *name;                // name of the directory
    json_t *config, *manifest; // empty objects if the files are missing or cannot be read
    json_t *trouble; // sentences about parts that could not be read, without a period at the end
};

// Open the directory of a run. Errors: RLHF_E_INVALID unless the path is a directory with a run's
// config.json or with metrics.jsonl; RLHF_E_IO, RLHF_E_NOMEM. Release with rlhf__run_files_close,
// even after a failure. [any]
rlhf_status rlhf__run_files_open(const char *path, struct rlhf__run_files *out,
                                 struct rlhf__error *err);
void rlhf__run_files_close(struct rlhf__run_files *run);

// Append a sentence, formatted like printf, to the run's trouble. [any]
__attribute__((format(printf, 2, 3))) void rlhf__run_files_trouble(struct rlhf__run_files *run,
                                                                   const char *fmt, ...);

// A setting of config.json by its dotted name: "run.phases". Borrowed; NULL if it is missing. [any]
const json_t *rlhf__run_files_setting(const struct rlhf__run_files *run, const char *key);

// The same setting as a number, or `otherwise` if it is missing or not a number. [any]
double rlhf__run_files_number(const struct rlhf__run_files *run, const char *key, double otherwise);

// Open a regular file of the run; links are refused. Returns a descriptor, or -1. If the file
// exists but cannot be read, adds a sentence to the trouble. [any]
int rlhf__run_files_fd(struct rlhf__run_files *run, const char *name, int64_t *size);

#endif
