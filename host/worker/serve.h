// serve.h: `rlhf-host worker`: a process that has one reward plugin open and serves the host's
// requests (wire.h) until the host closes its socket. Started only by the host (process.h).
#ifndef RLHF_HOST_WORKER_SERVE_H
#define RLHF_HOST_WORKER_SERVE_H

#include "base/env.h"

// The command: worker PID closed|network, with the descriptors of wire.h. For a program: the
// arguments and descriptor of programs.h. Exit status 2 unless the host started it. [main]
int rlhf__cmd_worker(const struct rlhf__env *env, int argc, char **argv);

#endif
