// child.h: runs a function in a child process, so that a broken plugin cannot take the program
// down.
#ifndef RLHF_CORE_SUPERVISE_CHILD_H
#define RLHF_CORE_SUPERVISE_CHILD_H

#include "base/buf.h"

#define RLHF__CHILD_SECONDS 10

// The limits of a child.
struct rlhf__child_limits {
    const char *what; // the path to show in messages
    int32_t seconds;  // limit of the run time; of processor time, 64 s for each
    // 1: the child gets no new privileges, writes no file larger than `file_bytes`, and leaves no
    // core dump. Its standard output is redirected to standard error.
    int32_t confined;
    int64_t file_bytes; // if confined: the largest file that it may write; 0 = it may write no file
};

// How a child ended if it did not answer.
struct rlhf__child_end {
    int32_t answered; // 1: it answered, and the other members are 0
    int32_t signal;   // the signal that ended it; 0: it ended by itself
    int32_t status;
};

// Call work(arg, out) in a child process and wait for it. The child belongs to a warden (warden.h).
// Returns the status of `work`. On success, appends the output of `work` to *out. On failure, that
// output becomes the text of `err`.
//
// When the child or this process ends, the warden ends the child and all processes that the child
// started. If the child crashes, calls exit(), or runs longer than `seconds` (SIGALRM), the
// function returns RLHF_E_INTERNAL; `err` and *end (`end` may be NULL) tell how the child ended. A
// child that disables its alarm is ended 5 s later. A child that sends more than 16 MiB is ended
// immediately.
//
// The text comes from foreign code in the child, so check and escape it before use. [main]
rlhf_status rlhf__child_ask(const struct rlhf__child_limits *limits,
                            rlhf_status (*work)(void *arg, struct rlhf__buf *out), void *arg,
                            struct rlhf__buf *out, struct rlhf__child_end *end,
                            struct rlhf__error *err);

// Like rlhf__child_ask, for work that loads the file `what`. The child is not confined and may run
// for RLHF__CHILD_SECONDS. Messages begin with `what`. [main]
rlhf_status rlhf__child_run(const char *what, rlhf_status (*work)(void *arg, struct rlhf__buf *out),
                            void *arg, struct rlhf__buf *out, struct rlhf__error *err);

#endif
