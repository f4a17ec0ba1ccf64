// launch.h: the step from "is to run" to "runs": pipes, fork, exec.
#ifndef RLHF_PLUGINS_PROCESS_LAUNCH_H
#define RLHF_PLUGINS_PROCESS_LAUNCH_H

#include "process/program.h"

// Start p->path with p->argv, the user's environment, p->env and p->mark; fills pid, in, out and
// err, which do not block. RLHF_E_NOMEM, RLHF_E_IO, RLHF_E_INVALID (the system does not take it for
// a program): nothing is left. [step]
rlhf_status rlhf__program_launch(struct rlhf__program *);

#endif
