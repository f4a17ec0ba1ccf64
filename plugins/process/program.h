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
    char *const *argv;         // [..] with a NULL at the end, borrowed
    const char *name;          // shown in messages; borrowed; argv[0] unless the caller sets it
    const char *const *env;    // NULL-terminated; added to the user's environment; NULL: none
    const rlhf_limits *limits; // "rlhf.limits/1"; NULL if the host lacks it
    double timeout_s;          // seconds for one exchange; 0: as the limits say
    const rlhf_program_service *programs;
    rlhf_process *process;           // NULL: not running
    struct rlhf__program_said said;  // its output on standard error since its start
    char path[RLHF__PROGRAM_PATH];   // absolute path of the file
    char walls[RLHF__PROGRAM_WALLS]; // the last logged text about its restrictions; "": none yet
    int32_t ended, how;              // 1: it has ended, with this wait status
};

// rlhf_plugin.extension of a plugin that lets programs do its work. [any]
const void *rlhf__program_extension(void *self, const char *id);

// Returns `text` as a member of an argument list. Such pointers are not const, because execve()
// takes them so, but nothing modifies the text. [any]
char *rlhf__program_word(const char *text);

// Finds the file of argv[0] without starting it. If argv[0] has no slash, searches PATH.
// RLHF_E_INVALID: the file is missing, not a regular file, or not executable. RLHF_E_UNSUPPORTED:
// the host cannot start programs. [main]
rlhf_status rlhf__program_init(struct rlhf__program *, const rlhf_host *host, char *const *argv,
                               const char *const *env);

// Starts the program. Logs the program's restrictions at its first start, and at a later start if
// they have changed. Errors, with a message: RLHF_E_INVALID, RLHF_E_IO, RLHF_E_NOMEM. After an
// error, the program is not running. [step]
rlhf_status rlhf__program_start(struct rlhf__program *);

// These functions return the limits of the run that apply now. rlhf__program_timeout returns the
// seconds for an exchange, and rlhf__program_memory returns the bytes of address space. 0 =
// unlimited. [any]
double rlhf__program_timeout(const struct rlhf__program *);
uint64_t rlhf__program_memory(const struct rlhf__program *);

// 1 if the program has ended since its start. [step]
int rlhf__program_has_ended(struct rlhf__program *);

// Describes how the program ended: "was ended by signal 11 (Segmentation fault)", "ended with
// status 3". [step]
const char *rlhf__program_end(const struct rlhf__program *, char *out, size_t cap);

// Kills the program with all its descendants and waits until it has ended. Its output remains
// available. If the program is not running, does nothing. [step]
void rlhf__program_kill(struct rlhf__program *);

// Closes the program's standard input and waits one second for the program to exit. Then kills it
// and its descendants. [main]
void rlhf__program_finish(struct rlhf__program *);

#endif
