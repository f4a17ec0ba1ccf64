// program.h: finds, starts, monitors and ends a program that works for a plugin. The host starts
// and supervises the process (rlhf/draft/program.h); talk.h exchanges data with it.
#ifndef RLHF_PLUGINS_PROCESS_PROGRAM_H
#define RLHF_PLUGINS_PROCESS_PROGRAM_H

#include "process/said.h"

#include <rlhf/draft/program.h>
#include <rlhf/service.h>

enum { RLHF__PROGRAM_PATH = 4096, RLHF__PROGRAM_WALLS = 768 };

struct rlhf__program {
    const rlhf_host *host;
    char *const *argv;         // [..] NULL-ended, borrowed
    const char *name;          // for messages, borrowed; argv[0] unless the caller sets it
    const char *const *env;    // NULL-ended assignments added to the user's; NULL: none
    const rlhf_limits *limits; // "rlhf.limits/0"; NULL if the host lacks it
    double timeout_s;          // seconds for an exchange; 0: by the limits
    const rlhf_program_service *programs;
    rlhf_process *process;           // NULL: not running
    struct rlhf__said said;          // its output on standard error since it was started
    char path[RLHF__PROGRAM_PATH];   // of the file, absolute
    char walls[RLHF__PROGRAM_WALLS]; // the last logged line about its restrictions; "": none yet
    int32_t ended, how;              // 1: it has ended, with this wait status
};

// For rlhf_plugin.extension: the plugin's work is done by programs. [any]
const void *rlhf__program_extension(void *self, const char *id);

// Finds the file of argv[0] without starting it. Searches PATH unless argv[0] contains a slash.
// RLHF_E_INVALID: the file is missing, not a regular file, or not executable. RLHF_E_UNSUPPORTED:
// the host does not start programs. [main]
rlhf_status rlhf__program_init(struct rlhf__program *, const rlhf_host *host, char *const *argv,
                               const char *const *env);

// Starts the program. Logs the program's restrictions the first time and when they change. If it
// returns RLHF_E_INVALID or RLHF_E_IO, with the reason, nothing is running. [step]
rlhf_status rlhf__program_start(struct rlhf__program *);

// Limits of the run that apply now: seconds for an exchange, bytes of address space. 0 = unlimited.
// [any]
double rlhf__program_timeout(const struct rlhf__program *);
uint64_t rlhf__program_memory(const struct rlhf__program *);

// Whether the program has ended since it was started. [step]
int rlhf__program_has_ended(struct rlhf__program *);

// Describes how an ended program ended: "was ended by signal 11 (Segmentation fault)", "ended with
// status 3". [step]
const char *rlhf__program_end(const struct rlhf__program *, char *out, size_t cap);

// Kills the program with all its descendants and waits for it. Its output stays available. No
// effect if the program is not running. [step]
void rlhf__program_kill(struct rlhf__program *);

// Closes the program's standard input, waits a second for the program to exit, then kills it and
// its descendants. [main]
void rlhf__program_finish(struct rlhf__program *);

#endif
