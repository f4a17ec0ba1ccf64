// disk_space.c: see disk_space.h.
#include "base/disk_space.h"

#include "base/file.h"

#include <string.h>
#include <sys/statvfs.h>

// A file system that does not know its size reports 0 blocks.
static int take(int status, const struct statvfs *s, uint64_t *bytes) {
    if (status != 0 || s->f_blocks == 0) return 0;
    *bytes = (uint64_t)s->f_bavail * s->f_frsize;
    return 1;
}

int rlhf__disk_space_of(int fd, uint64_t *bytes) {
    struct statvfs s;
    return take(fstatvfs(fd, &s), &s, bytes);
}

int rlhf__disk_space_at(const char *path, uint64_t *bytes) {
    char at[RLHF__PATH_CAP];
    struct statvfs s;
    const size_t n = strlen(path);
    if (n >= sizeof at) return 0;
    memcpy(at, path, n + 1);
    while (!rlhf__is_dir(*at ? at : ".")) {
        char *slash = strrchr(at, '/');
        if (!*at || slash == at) break;
        *(slash ? slash : at) = '\0';
    }
    return take(statvfs(*at == '\0' ? "." : at, &s), &s, bytes);
}
