// serve.h: `rlhf-host worker`: a process that has one reward plugin open and does what the host
// asks (wire.h) until the host's socket is closed. Started by the host only (process.h).
#ifndef RLHF_HOST_WORKER_SERVE_H
#define RLHF_HOST_WORKER_SERVE_H

#include "base/env.h"

// The command: worker PID closed|network, with the descriptors of wire.h, or for a program that of
// programs.h. Exit status 2 when it was not the host that started it. [main]
int rlhf__cmd_worker(const struct rlhf__env *env, int argc, char **argv);

#endif
