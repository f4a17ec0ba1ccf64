// file.c: whole files in, and the small questions about paths; see file.h. The atomic writer is in
// file_writer.c, directories are in folder.c.
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static rlhf_status read_all(int fd, const char *path, uint64_t max_bytes, struct rlhf__buf *out,
                            struct rlhf__error *err) {
    uint64_t total = 0;
    for (;;) {
        char chunk[65536];
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return rlhf__fail(err, RLHF_E_IO, "%s: cannot read: %s", path, strerror(errno));
        if (n == 0) return rlhf__buf_ok(out, err);
        total += (uint64_t)n;
        if (total > max_bytes)
            return rlhf__fail(err, RLHF_E_INVALID, "%s: more than the %llu bytes allowed here",
                              path, (unsigned long long)max_bytes);
        rlhf__buf_put(out, chunk, (size_t)n);
        RLHF_TRY(rlhf__buf_ok(out, err));
    }
}

rlhf_status rlhf__file_read_fd(int fd, const char *path, uint64_t max_bytes, struct rlhf__buf *out,
                               struct rlhf__error *err) {
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        return rlhf__fail(err, RLHF_E_INVALID, "%s: is a directory, a file is needed", path);
    return read_all(fd, path, max_bytes, out, err);
}

rlhf_status rlhf__file_read(const char *path, uint64_t max_bytes, struct rlhf__buf *out,
                            struct rlhf__error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        int wrong = errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG || errno == EACCES;
        return rlhf__fail(err, wrong ? RLHF_E_INVALID : RLHF_E_IO, "%s: cannot open: %s", path,
                          strerror(errno));
    }
    rlhf_status status = rlhf__file_read_fd(fd, path, max_bytes, out, err);
    close(fd);
    return status;
}

int rlhf__is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

int rlhf__is_dir(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

_Static_assert(PATH_MAX <= RLHF__PATH_CAP, "what realpath may write");

char *rlhf__path_real(const char *path, char out[RLHF__PATH_CAP]) { return realpath(path, out); }

const char *rlhf__path_put(char out[RLHF__PATH_CAP], const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(out, RLHF__PATH_CAP, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= RLHF__PATH_CAP) *out = '\0';
    return out;
}

char *rlhf__path_join(const char *a, const char *b) {
    size_t na = strlen(a), nb = strlen(b);
    int slash = na > 0 && a[na - 1] != '/';
    char *out = malloc(na + nb + 2);
    if (!out) return NULL;
    memcpy(out, a, na);
    if (slash) out[na++] = '/';
    memcpy(out + na, b, nb);
    out[na + nb] = '\0';
    return out;
}

const char *rlhf__path_in(char *out, size_t cap, const char *dir, const char *name) {
    snprintf(out, cap, "%s/%s", dir, name);
    return out;
}

const char *rlhf__path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
