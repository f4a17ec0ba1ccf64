// programs.h: the service "rlhf.draft.program/0": starts programs that the user named, under the
// supervisor that workers have (supervise/warden.h). An isolated program has a worker's walls too.
#ifndef RLHF_HOST_WORKER_PROGRAMS_H
#define RLHF_HOST_WORKER_PROGRAMS_H

#include "base/env.h"

#include <rlhf/draft/program.h>

// Walls around the programs of a reward.
struct rlhf__program_walls {
    int32_t network; // 1: the network stays open to the programs
    int32_t reserved;
    // The confinement of the last program that was started, in words: free().
    char *confined;
    const char **told; // = confined when that changes; NULL = not wanted
};

struct rlhf__programs {
    rlhf_program_service table; // first; to be offered as RLHF_SVC_PROGRAM
    const char *program;        // the file that is the warden (rlhf__dirs.program), borrowed
    // The walls around a plugin's programs. No walls if this is NULL or returns NULL.
    struct rlhf__program_walls *(*walls)(const rlhf_host *plugin);
};

// Fill *p, which must not move. [main]
void rlhf__programs_init(struct rlhf__programs *p, const char *program,
                         struct rlhf__program_walls *(*walls)(const rlhf_host *plugin));

// ---- launched.c: the other side ----

// The words that the host passes to the hidden command `worker` for a program, before the program's
// arguments: the host's process id, PROGRAM, open | closed | network, bytes of address space, the
// directory of the control group ("" = none), the file.
#define RLHF__PROGRAM_WORD "program"
enum { RLHF__PROGRAM_WORDS = 6, RLHF__PROGRAM_TOLD = 3 };

// Be the warden of a program: the command `worker HOST program LEVEL BYTES GROUP FILE ARG0 ...`. It
// writes to descriptor RLHF__PROGRAM_TOLD which walls are in force (enum rlhf__confined), in 4
// bytes; and the errno if the program cannot be run. Exit status 2 unless the host has started it.
// [main]
int rlhf__launched(const struct rlhf__env *env, int argc, char **argv);

#endif
