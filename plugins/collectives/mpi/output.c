// output.c: see output.h.
#include "output.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>

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
    enum { NAP_MS = 1 };
    const struct timespec nap = {0, NAP_MS * 1000000L};
    int n = unread(fd);
    for (double left = seconds; n > 0 && left > 0; left -= NAP_MS / 1000.0) {
        nanosleep(&nap, NULL);
        n = unread(fd);
    }
    return n;
}
