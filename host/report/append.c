// append.c: see append.h.
#include "report/append.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

rlhf_status rlhf__append_buf(int fd, const char *path, const struct rlhf__buf *bytes,
                             struct rlhf__error *err) {
    RLHF_TRY(rlhf__buf_ok(bytes, err));
    const char *p = bytes->data;
    off_t start = lseek(fd, 0, SEEK_END);
    for (size_t n = bytes->len; n > 0;) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            int why = done < 0 ? errno : ENOSPC;
            if (start >= 0 && ftruncate(fd, start) != 0) why = errno; // half a line is left
            return rlhf__fail(err, RLHF_E_IO, "%s: cannot write: %s", path, strerror(why));
        }
        p += done;
        n -= (size_t)done;
    }
    return RLHF_OK;
}

rlhf_status rlhf__append_sync(int fd, const char *path, struct rlhf__error *err) {
    if (fsync(fd) == 0 || errno == EINVAL) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_IO, "%s: cannot sync: %s", path, strerror(errno));
}
