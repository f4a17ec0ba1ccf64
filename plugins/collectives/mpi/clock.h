// clock.h: the clock of the waits and limits.
#ifndef RLHF_COLLECTIVE_MPI_CLOCK_H
#define RLHF_COLLECTIVE_MPI_CLOCK_H

#include <time.h>

// Returns seconds since an arbitrary time.
static inline double mpi_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
