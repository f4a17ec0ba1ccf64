// folder_remove.c: removing a directory tree by descriptors; see folder.h.
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int remove_at(int dir, const char *name);

// Remove what the directory behind fd holds; takes fd. 0 = all of it went.
static int empty_dir(int fd) {
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return -1;
    }
    int bad = 0;
    struct dirent *e;
    while (!bad && (e = readdir(d)) != NULL)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            bad = remove_at(dirfd(d), e->d_name);
    int why = errno;
    closedir(d);
    errno = why;
    return bad;
}

// 0 when the entry is gone, else -1 with errno.
static int remove_at(int dir, const char *name) {
    if (unlinkat(dir, name, 0) == 0 || errno == ENOENT) return 0;
    if (errno != EISDIR && errno != EPERM) return -1; // EPERM: what POSIX says of a directory
    // Some file systems pass over entries while others are removed: look again.
    for (int tries = 0; tries < 100; tries++) {
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0) return -1;
        if (empty_dir(fd) != 0) return -1;
        if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
        if (errno != ENOTEMPTY && errno != EEXIST) return -1;
    }
    return -1;
}

rlhf_status rlhf__folder_remove(const struct rlhf__folder *in, const char *name,
                                struct rlhf__error *err) {
    if (remove_at(in ? in->fd : AT_FDCWD, name) == 0) return RLHF_OK;
    return rlhf__fail(err, RLHF_E_IO, "%s%s%s: cannot remove: %s", in ? in->path : "",
                      in ? "/" : "", name, strerror(errno));
}
