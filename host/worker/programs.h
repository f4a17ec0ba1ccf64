// programs.h: the service "rlhf.draft.program/0": programs that the user named, under the
// supervisor that workers have (supervise/warden.h). One that is isolated is behind their walls.
#ifndef RLHF_HOST_WORKER_PROGRAMS_H
#define RLHF_HOST_WORKER_PROGRAMS_H

#include "base/env.h"

#include <rlhf/draft/program.h>

// Walls around the programs of a reward.
struct rlhf__program_walls {
    int32_t network; // 1: the network is open to them all the same
    int32_t reserved;
    // What is in force of the last one that was started, in words: free().
    char *confined;
    const char **told; // = confined when that changes; NULL = nobody
};

struct rlhf__programs {
    rlhf_program_service table; // first; to be offered as RLHF_SVC_PROGRAM
    const char *program;        // the file that is the warden (rlhf__dirs.program), borrowed
    // The walls around the programs of a plugin; NULL, or returns NULL: none.
    struct rlhf__program_walls *(*walls)(const rlhf_host *plugin);
};

// Fill *p, which must stay where it is. [main]
void rlhf__programs_init(struct rlhf__programs *p, const char *program,
                         struct rlhf__program_walls *(*walls)(const rlhf_host *plugin));

// ---- launched.c: the other side ----

// What the host passes to the hidden command `worker` for a program, in front of its arguments:
// the host's number, PROGRAM, open | closed | network, bytes of address space, the directory of its
// control group ("" = none), the file.
#define RLHF__PROGRAM_WORD "program"
enum { RLHF__PROGRAM_WORDS = 6, RLHF__PROGRAM_TOLD = 3 };

// Be the warden of a program: the command `worker HOST program LEVEL BYTES GROUP FILE ARG0 ...`. It
// tells through descriptor RLHF__PROGRAM_TOLD which walls are in force (enum rlhf__confined), as 4
// bytes, and, where the program cannot be run, the errno. Exit status 2 when the host has not
// started it. [main]
int rlhf__launched(const struct rlhf__env *env, int argc, char **argv);

#endif
