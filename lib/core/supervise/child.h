// child.h: run a function in a child process, so that a broken plugin cannot take the program down.
#ifndef RLHF_SUPERVISE_CHILD_H
#define RLHF_SUPERVISE_CHILD_H

#include "base/buf.h"

#define RLHF__CHILD_SECONDS 10

// How a child is held.
struct rlhf__child_limits {
    const char *what; // for messages: a path
    int32_t seconds;  // of its life, and of the processor's
    // 1: no new privileges, no bytes into files, no core dump, standard output where errors go
    int32_t confined;
};

// How a child ended that did not answer.
struct rlhf__child_end {
    int32_t answered; // 1: the rest is 0
    int32_t signal;   // 0: it ended by itself
    int32_t status, reserved;
};

// Forks a warden (warden.h), whose child calls work(arg, out). What it appends to out is appended
// to *out, and its status is returned. A child that fails puts its sentence into out. What it has
// started ends with it, and all of them end with this process. A child that ended otherwise, after
// `seconds` by SIGALRM: RLHF_E_INTERNAL, err says how, and *end too (NULL allowed). [main]
rlhf_status rlhf__child_ask(const struct rlhf__child_limits *limits,
                            rlhf_status (*work)(void *arg, struct rlhf__buf *out), void *arg,
                            struct rlhf__buf *out, struct rlhf__child_end *end,
                            struct rlhf__error *err);

// The same for something that is loaded, within RLHF__CHILD_SECONDS. [main]
rlhf_status rlhf__child_run(const char *what, rlhf_status (*work)(void *arg, struct rlhf__buf *out),
                            void *arg, struct rlhf__buf *out, struct rlhf__error *err);

#endif
