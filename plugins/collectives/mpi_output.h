// mpi_output.h: before a rank aborts, give its last lines time to reach the launcher.
#ifndef RLHF_PLUGINS_COLLECTIVES_MPI_OUTPUT_H
#define RLHF_PLUGINS_COLLECTIVES_MPI_OUTPUT_H

// If `fd` is a pipe or a socket, wait until its other end has read everything, at most `seconds`.
// Returns the number of bytes not read, 0 if `fd` is another kind of file. Any thread may call
// this function.
int mpi_output_read(int fd, double seconds);

#endif
