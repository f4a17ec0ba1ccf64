// mpi_slices.h: how soon the system runs MPI's thread on a core that a computation also uses.
#ifndef RLHF_PLUGINS_COLLECTIVES_MPI_SLICES_H
#define RLHF_PLUGINS_COLLECTIVES_MPI_SLICES_H

// Ask Linux for short time slices for the calling thread (6.12 and later; older versions ignore
// this). If a computation uses the same core, the thread then gets the core soon after each nap,
// but no larger share of its time. With a line of 1 Gbit/s, and each rank on a single core, a step
// of the default model took 353 ms instead of 362. Does nothing if the system refuses. Any thread
// may call this function.
void mpi_take_short_slices(void);

#endif
