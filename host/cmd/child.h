// child.h: run a function in a child process, so that a broken plugin cannot take the program down.
#ifndef RLHF_HOST_CHILD_H
#define RLHF_HOST_CHILD_H

#include "base/buf.h"

#define RLHF__CHILD_SECONDS 10

// Forks; the child calls work(arg, out) and what it put into out comes back in *out (appended),
// with its status. A child that fails puts its sentence into out. Killed by a signal, or not done
// within RLHF__CHILD_SECONDS: RLHF_E_INTERNAL with a sentence that names `what` and the signal.
// [main]
rlhf_status rlhf__child_run(const char *what, rlhf_status (*work)(void *arg, struct rlhf__buf *out),
                            void *arg, struct rlhf__buf *out, struct rlhf__error *err);

#endif
