// file.c: whole files in, and the small questions about paths; see file.h. The atomic writer is in
// file_writer.c.
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
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

rlhf_status rlhf__file_read(const char *path, uint64_t max_bytes, struct rlhf__buf *out,
                            struct rlhf__error *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        int missing = errno == ENOENT || errno == ENOTDIR;
        return rlhf__fail(err, missing ? RLHF_E_INVALID : RLHF_E_IO, "%s: cannot open: %s", path,
                          strerror(errno));
    }
    struct stat st;
    rlhf_status status;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
        status = rlhf__fail(err, RLHF_E_INVALID, "%s: is a directory, a file is needed", path);
    else
        status = read_all(fd, path, max_bytes, out, err);
    close(fd);
    return status;
}

rlhf_status rlhf__make_dirs(const char *path, struct rlhf__error *err) {
    char *copy = strdup(path);
    if (!copy) return rlhf__fail(err, RLHF_E_NOMEM, "%s: out of memory", path);
    rlhf_status status = RLHF_OK;
    for (char *p = copy + 1; *copy && status == RLHF_OK; p++) {
        char c = *p;
        if (c != '/' && c != '\0') continue;
        *p = '\0';
        if (mkdir(copy, 0777) != 0 && !(errno == EEXIST && rlhf__is_dir(copy)))
            status = rlhf__fail(err, RLHF_E_IO, "%s: cannot create the directory: %s", copy,
                                errno == EEXIST ? "a file of that name exists" : strerror(errno));
        *p = c;
        if (c == '\0') break;
    }
    free(copy);
    return status;
}

rlhf_status rlhf__sync_dir(const char *path, struct rlhf__error *err) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return rlhf__fail(err, RLHF_E_IO, "%s: cannot open the directory: %s", path,
                          strerror(errno));
    int failed = fsync(fd);
    int why = errno;
    close(fd);
    // Some file systems cannot sync a directory; the rename is then as durable as it gets.
    if (failed && why != EINVAL && why != ENOTSUP)
        return rlhf__fail(err, RLHF_E_IO, "%s: cannot sync the directory: %s", path, strerror(why));
    return RLHF_OK;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

rlhf_status rlhf__remove_tree(const char *path, struct rlhf__error *err) {
    struct stat st;
    if (lstat(path, &st) != 0 && errno == ENOENT) return RLHF_OK;
    if (nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
        return rlhf__fail(err, RLHF_E_IO, "%s: cannot remove: %s", path, strerror(errno));
    return RLHF_OK;
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

const char *rlhf__path_base(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
