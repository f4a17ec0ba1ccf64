// regular.c: see regular.h.
#include "base/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int rlhf__regular_open(int at, const char *name, int follow) {
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW);
    const int fd = openat(at, name, flags);
    struct stat st;
    if (fd < 0) {
        if (errno == ENXIO) errno = ENOTSUP; // a socket
        return -1;
    }
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) return fd;
    close(fd);
    errno = S_ISDIR(st.st_mode) ? EISDIR : ENOTSUP;
    return -1;
}

rlhf_status rlhf__regular_failed(const char *path, struct rlhf__error *err) {
    const int why = errno;
    if (why == EISDIR)
        return rlhf__fail(err, RLHF_E_INVALID, "%s: is a directory, a file is needed", path);
    if (why == ENOTSUP) return rlhf__fail(err, RLHF_E_INVALID, "%s is not a regular file", path);
    const int wrong =
        why == ENOENT || why == ENOTDIR || why == ENAMETOOLONG || why == EACCES || why == ELOOP;
    return rlhf__fail(err, wrong ? RLHF_E_INVALID : RLHF_E_IO, "%s: cannot open: %s", path,
                      strerror(why));
}
