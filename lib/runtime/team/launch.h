// launch.h: which launcher (mpirun, srun) started this process, according to its environment.
#ifndef RLHF_HOST_TEAM_LAUNCH_H
#define RLHF_HOST_TEAM_LAUNCH_H

#include <stdint.h>

struct rlhf__launch {
    int32_t ranks;        // processes that the launcher started; 0: no launcher; -1: not known
    int32_t rank;         // this process among them, from 0
    const char *launcher; // for messages: "mpirun of Open MPI"; NULL without one
    const char *mpi;      // the launcher's collective: "openmpi" or "mpich"; NULL: unknown
    const char *variable; // the environment variable that shows this
};

// Read the environment. A launcher that started a single process counts as none. [main]
struct rlhf__launch rlhf__launch_read(void);

// Remove the launcher's variables from this process, so that no program that it starts (a worker, a
// program of a reward, a tracker) mistakes itself for a rank. If a collective is needed, call this
// after it is open, otherwise after rlhf__launch_read. [main]
void rlhf__launch_forget(void);

#endif
