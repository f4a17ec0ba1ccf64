// alternate.c: see alternate.h.
#include "base/alternate.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#define ENTER "\033[?1049h\033[?25l" // show the alternate screen, then hide the cursor
#define LEAVE "\033[?25h\033[?1049l"

static volatile sig_atomic_t kept = -1; // memory file that collects the output; -1: not shown

static int put(int fd, const char *text, size_t n) {
    while (n > 0) {
        const ssize_t done = write(fd, text, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return 0;
        text += done;
        n -= (size_t)done;
    }
    return 1;
}

int rlhf__alternate_open(void) {
    if (kept >= 0) return -1;
    const int fd = memfd_create("rlhf-host-said", MFD_CLOEXEC);
    if (fd < 0) return -1;
    if (!put(STDOUT_FILENO, ENTER, strlen(ENTER))) {
        close(fd);
        return -1;
    }
    kept = fd;
    return fd;
}

void rlhf__alternate_close(void) {
    const int fd = kept;
    char part[4096];
    ssize_t n;
    if (fd < 0) return;
    kept = -1; // so that a handler that interrupts this cannot print the text twice
    put(STDOUT_FILENO, LEAVE, strlen(LEAVE));
    for (off_t at = 0; (n = pread(fd, part, sizeof part, at)) > 0; at += n)
        if (!put(STDOUT_FILENO, part, (size_t)n)) break;
    close(fd);
}

int rlhf__alternate_keep(const char *text) {
    const int fd = kept;
    return fd >= 0 && put(fd, text, strlen(text));
}
