// program.h: a program that works for a reward: found, started, watched, ended. The host starts and
// supervises it (rlhf/draft/program.h); what is said to it and what it answers is in talk.h.
#ifndef RLHF_PLUGINS_PROCESS_PROGRAM_H
#define RLHF_PLUGINS_PROCESS_PROGRAM_H

#include "process/said.h"

#include <rlhf/draft/program.h>
#include <rlhf/service.h>

enum { RLHF__PROGRAM_PATH = 4096, RLHF__PROGRAM_WALLS = 768 };

struct rlhf__program {
    const rlhf_host *host;
    char *const *argv;         // [..] NULL-ended, borrowed
    const char *name;          // in messages, borrowed; argv[0] unless the user sets it
    const char *const *env;    // NULL-ended assignments beside the user's; NULL = none
    const rlhf_limits *limits; // "rlhf.limits/0"; NULL = the host has none
    const rlhf_program_service *programs;
    rlhf_process *process;           // NULL = it does not run
    struct rlhf__said said;          // on standard error since it was started
    char path[RLHF__PROGRAM_PATH];   // of the file, absolute
    char walls[RLHF__PROGRAM_WALLS]; // what was said of its walls; "" = nothing yet
    int32_t ended, how;              // 1: it has ended, with this wait status
};

// For rlhf_plugin.extension: the plugin's work is done by programs. [any]
const void *rlhf__program_extension(void *self, const char *id);

// Find the file of argv[0], in PATH unless it has a slash. Starts nothing. RLHF_E_INVALID: not
// there, no file, not executable; RLHF_E_UNSUPPORTED: the host starts no programs. [main]
rlhf_status rlhf__program_init(struct rlhf__program *, const rlhf_host *host, char *const *argv,
                               const char *const *env);

// Start it; what it may do is logged, once and when it changes. RLHF_E_INVALID or RLHF_E_IO, with
// the reason: nothing runs then. [step]
rlhf_status rlhf__program_start(struct rlhf__program *);

// What the run allows now: seconds for an exchange, bytes of address space; 0 = no limit. [any]
double rlhf__program_timeout(const struct rlhf__program *);
uint64_t rlhf__program_memory(const struct rlhf__program *);

// Whether it has ended since. [step]
int rlhf__program_has_ended(struct rlhf__program *);

// "was ended by signal 11 (Segmentation fault)", "ended with status 3", of one that has. [step]
const char *rlhf__program_end(const struct rlhf__program *, char *out, size_t cap);

// End it at once with all that it has started, and wait for it. What it said stays. Nothing when it
// does not run. [step]
void rlhf__program_kill(struct rlhf__program *);

// Close its standard input, give it a second to end, and kill what is left. [main]
void rlhf__program_finish(struct rlhf__program *);

#endif
