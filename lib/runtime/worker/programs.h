// programs.h: the service "rlhf.program/1". It starts programs that the user named, under the
// same supervisor as workers (supervise/warden.h). Isolated programs are confined like workers.
#ifndef RLHF_HOST_WORKER_PROGRAMS_H
#define RLHF_HOST_WORKER_PROGRAMS_H

#include "base/env.h"

#include <rlhf/draft/program.h>

// The confinement of a reward's programs.
struct rlhf__program_walls {
    int32_t network; // 1: the programs may use the network
    // The confinement that was in force for the last program, as text; owned.
    char *confined;
    const char **told; // if not NULL, *told is set to `confined` when `confined` changes
};

struct rlhf__programs {
    rlhf_program_service table; // offered as RLHF_SVC_PROGRAM
    const char *program;        // executable of the warden (rlhf__dirs.program), borrowed
    // Returns the confinement of the programs that `plugin` starts. If this function is NULL or
    // returns NULL, the programs are not confined.
    struct rlhf__program_walls *(*walls)(const rlhf_host *plugin);
};

// Fill *p. Do not move it afterwards. [main]
void rlhf__programs_init(struct rlhf__programs *p, const char *program,
                         struct rlhf__program_walls *(*walls)(const rlhf_host *plugin));

// ---- launched.c: in the started process ----

// The host starts a program with the hidden command `worker`. It passes these arguments before the
// program's own arguments: the host's process id; RLHF__PROGRAM_WORD; "open", "closed" or
// "network"; bytes of address space; the directory of the control group ("" = none); the file.
#define RLHF__PROGRAM_WORD "program"
enum { RLHF__PROGRAM_WORDS = 6, RLHF__PROGRAM_TOLD = 3 };

// The command `worker HOST program LEVEL BYTES GROUP FILE ARG0 ...`, which makes this process the
// warden of a program. Writes 4 bytes to descriptor RLHF__PROGRAM_TOLD: the confinement that is in
// force (enum rlhf__confined). If the program cannot be executed, an errno follows these bytes. The
// exit status is 2 if someone other than the host started this process. [main]
int rlhf__launched(const struct rlhf__env *env, int argc, char **argv);

#endif
