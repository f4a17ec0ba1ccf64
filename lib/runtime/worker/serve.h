// serve.h: `rlhf-host worker`: a process that opens one reward, environment or sink and serves the
// host's requests (wire.h) until the host closes its socket. Only the host starts it (process.h).
#ifndef RLHF_HOST_WORKER_SERVE_H
#define RLHF_HOST_WORKER_SERVE_H

#include "base/env.h"

// The command `worker PID closed|network GROUP DIR`, which uses the descriptors listed in wire.h.
// GROUP is the directory of its control group, DIR that in which it may write; "" = none. To start
// a program, it takes the arguments and the descriptor in programs.h instead. The exit status is 2
// if someone other than the host started it. [main]
int rlhf__cmd_worker(const struct rlhf__env *env, int argc, char **argv);

#endif
