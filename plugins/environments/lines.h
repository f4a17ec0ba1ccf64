// lines.h: an environment played by a program that reads and writes lines of JSON.
//
// The program is started once and plays many episodes at a time. The program fails if it exits,
// does not answer in time, or writes an invalid answer. If it fails, the unanswered episodes of the
// current call fail at once. Every other open episode fails when the host next asks about it. The
// next call starts the program again. docs/environments.md describes the lines.
#ifndef RLHF_PLUGINS_ENVIRONMENTS_LINES_H
#define RLHF_PLUGINS_ENVIRONMENTS_LINES_H

#include "lines_hello.h"
#include "lines_reply.h"
#include "process/talk.h"

// Bytes of an episode's state (rlhf_environment_ops.state_size).
struct rlhf__lines_state {
    uint64_t episode; // its number; meaningful if `start` is not 0
    uint64_t start;   // which start of the program plays it, counted from 1
};

enum { RLHF__LINES_SHOWN = 160 }; // bytes of a foreign text in a message

// The user sets `host`, `program` and `doing`; everything else is zero.
struct rlhf__env_lines {
    const rlhf_host *host;
    struct rlhf__program program;
    const char *doing; // shown in messages: "while it imported the file"
    struct rlhf__hello hello;
    struct rlhf__bytes closed; // lines of closed episodes, to send with the next call
    uint64_t starts;
    int64_t phase;                     // the phase whose lines on standard error are shown
    char failed_as[RLHF__LINES_SHOWN]; // why the program last gave up episodes in this phase
};

// Starts the program and reads its first line. If the program fails, returns the status that the
// caller passed. [main]
rlhf_status rlhf__lines_start(struct rlhf__env_lines *, rlhf_status);

// The functions of an environment whose instance begins with a struct rlhf__env_lines.
extern const rlhf_environment_ops rlhf__lines_ops;
const void *rlhf__lines_extension(void *self, const char *id);

// End the program and release everything. [main]
void rlhf__lines_finish(struct rlhf__env_lines *);

#endif
