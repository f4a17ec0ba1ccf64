// program.h: what all programs do at their start and end.
#ifndef RLHF_HOST_CMD_PROGRAM_H
#define RLHF_HOST_CMD_PROGRAM_H

#include "base/env.h"
#include "base/error.h"

#include <jansson.h>

// Opens descriptors 0 to 2 if they are closed, installs handlers for signals and for out-of-memory,
// and finds the directories. Then runs `work` and flushes its output. Returns the exit status of
// `work`, or 1 if the output could not be written. [main]
int rlhf__program(int argc, char **argv,
                  int (*work)(const struct rlhf__env *env, int argc, char **argv));

// Replaces this process with the program `name` from the same directory. argv ends with NULL. If
// that program cannot be started, logs the reason and returns the exit status. Otherwise never
// returns. [main]
int rlhf__program_exec(const struct rlhf__env *env, const char *name, char **argv);

// ---- output ----

// Flushes standard output. Errors: RLHF_E_IO. [main]
rlhf_status rlhf__print_flush(struct rlhf__error *err);

// Print v as one line. Releases v, even after a failure. Errors: RLHF_E_NOMEM if v is NULL
// (json_pack failed); RLHF_E_IO. [main]
rlhf_status rlhf__print_json_new(json_t *v, struct rlhf__error *err);

#endif
