// mpi_clock.h: the clock of the waits and limits, and a short wait.
#ifndef RLHF_PLUGINS_COLLECTIVES_MPI_CLOCK_H
#define RLHF_PLUGINS_COLLECTIVES_MPI_CLOCK_H

#include <pthread.h>
#include <time.h>

// Returns seconds since an arbitrary time.
static inline double mpi_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Waits until the condition is signalled, but at most a quarter of a second. Call with the lock
// held.
static inline void mpi_wait_a_moment(pthread_cond_t *condition, pthread_mutex_t *lock) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 250000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(condition, lock, &until);
}

#endif
