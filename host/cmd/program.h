// program.h: the start and the end that all programs share.
#ifndef RLHF_HOST_CMD_PROGRAM_H
#define RLHF_HOST_CMD_PROGRAM_H

#include "base/env.h"
#include "base/error.h"

#include <jansson.h>

// Opens descriptors 0 to 2 if they are closed, installs the handlers of signals and of
// out-of-memory, finds the directories, runs `work` and flushes what it printed. Returns the exit
// status: that of `work`, or 1 if the output could not be written. [main]
int rlhf__program(int argc, char **argv,
                  int (*work)(const struct rlhf__env *env, int argc, char **argv));

// Replaces this process by another of our programs, `name`, from the directory of this one. argv
// ends with NULL. Returns only if the program cannot be started: the exit status, after logging
// the reason. [main]
int rlhf__program_exec(const struct rlhf__env *env, const char *name, char **argv);

// ---- output ----

// Flushes standard output; RLHF_E_IO if it could not be written. [main]
rlhf_status rlhf__print_flush(struct rlhf__error *err);

// Print v as one line and release it, also on failure; NULL is RLHF_E_NOMEM (a failed json_pack).
// Errors: RLHF_E_IO. [main]
rlhf_status rlhf__print_json_new(json_t *v, struct rlhf__error *err);

#endif
