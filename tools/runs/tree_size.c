// tree_size.c: see tree_size.h.
#include "runs/tree_size.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 16 };

static int64_t bytes_of(int at, const char *name, int depth);

static int64_t bytes_in(DIR *d, int depth) {
    int64_t sum = 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        struct stat s;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        int is_dir = e->d_type == DT_DIR;
        if (e->d_type == DT_REG || e->d_type == DT_UNKNOWN) {
            if (fstatat(dirfd(d), e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0) continue;
            if (S_ISREG(s.st_mode)) sum += (int64_t)s.st_size;
            is_dir = S_ISDIR(s.st_mode);
        }
        if (is_dir) sum += bytes_of(dirfd(d), e->d_name, depth + 1);
    }
    return sum;
}

static int64_t bytes_of(int at, const char *name, int depth) {
    if (depth > DEPTH_MAX) return 0;
    const int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (!d) {
        if (fd >= 0) close(fd);
        return 0;
    }
    const int64_t sum = bytes_in(d, depth);
    closedir(d);
    return sum;
}

int64_t rlhf__tree_bytes(const struct rlhf__folder *in, const char *name) {
    return bytes_of(in->fd, name, 0);
}
