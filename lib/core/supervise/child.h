// child.h: runs a function in a child process, so that a broken plugin cannot take the program
// down.
#ifndef RLHF_CORE_SUPERVISE_CHILD_H
#define RLHF_CORE_SUPERVISE_CHILD_H

#include "base/buf.h"

#define RLHF__CHILD_SECONDS 10

// The limits of a child.
struct rlhf__child_limits {
    const char *what; // the path to show in messages
    int32_t seconds;  // limit of the run time, and of the processor time
    // 1: the child gets no new privileges, cannot write to files and leaves no core dump. Text that
    // it prints on standard output goes to standard error.
    int32_t confined;
    int64_t file_bytes; // if confined: the largest file that it may write; 0 = it may write no file
};

// How a child ended if it did not answer.
struct rlhf__child_end {
    int32_t answered; // 1: it answered, and the other members are 0
    int32_t signal;   // the signal that ended it; 0: it ended by itself
    int32_t status, reserved;
};

// Call work(arg, out) in a child process and wait for it. The child belongs to a warden (warden.h).
// Returns the status of `work`. On success, appends the output of `work` to *out. On failure, that
// output becomes the text of `err`.
//
// When the child ends, the processes that it started are ended too. If this process ends, the child
// and those processes are ended as well. If the child crashes, exits or runs longer than `seconds`
// (SIGALRM), the function returns RLHF_E_INTERNAL; `err` and *end say how the child ended; `end`
// may be NULL. A child that disables its alarm is ended 5 s later. A child that sends more than 16
// MiB is ended immediately.
//
// Foreign code in the child can send any text, so check and escape the text before use. [main]
rlhf_status rlhf__child_ask(const struct rlhf__child_limits *limits,
                            rlhf_status (*work)(void *arg, struct rlhf__buf *out), void *arg,
                            struct rlhf__buf *out, struct rlhf__child_end *end,
                            struct rlhf__error *err);

// Calls `work` in a child process that loads the file `what`, as rlhf__child_ask does. The child is
// not confined and may run for RLHF__CHILD_SECONDS. Messages begin with `what`. [main]
rlhf_status rlhf__child_run(const char *what, rlhf_status (*work)(void *arg, struct rlhf__buf *out),
                            void *arg, struct rlhf__buf *out, struct rlhf__error *err);

#endif
