// mpi_output.c: see mpi_output.h.
#include "mpi_output.h"

#include "mpi_clock.h"

#include <sys/ioctl.h>
#include <sys/stat.h>

static int unread(int fd) {
    struct stat s;
    int n = 0;
    if (fstat(fd, &s) != 0) return 0;
    // Linux counts the bytes in a pipe with FIONREAD at either end.
    if (S_ISFIFO(s.st_mode) && ioctl(fd, FIONREAD, &n) == 0) return n;
    if (S_ISSOCK(s.st_mode) && ioctl(fd, TIOCOUTQ, &n) == 0) return n;
    return 0;
}

int mpi_output_read(int fd, double seconds) {
    const struct timespec nap = {0, 1000000};
    const double until = mpi_seconds() + seconds;
    int n;
    while ((n = unread(fd)) > 0 && mpi_seconds() < until)
        nanosleep(&nap, NULL);
    return n;
}
