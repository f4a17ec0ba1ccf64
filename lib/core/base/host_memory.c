// host_memory.c: see host_memory.h.
#include "base/host_memory.h"

#include "base/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Finds the first line of the file that begins with `key`, and sets *out to the number after `key`.
// If `key` is "", reads the number at the start of the first line. Returns 0 if there is no number
// there, for example because the limit is "max" (unlimited).
static int number_in(const char *path, const char *key, uint64_t *out) {
    char line[512];
    const size_t n = strlen(key);
    int found = 0;
    FILE *f = fopen(path, "r");
    while (f && !found && fgets(line, sizeof line, f))
        found = strncmp(line, key, n) == 0 && sscanf(line + n, "%" SCNu64, out) == 1;
    if (f) fclose(f);
    return found;
}

static void limit(struct rlhf__host_memory *m, uint64_t total, uint64_t left) {
    if (total < m->total) m->total = total;
    if (left < m->left) m->left = left;
}

// Reads the files of one control group. Their names differ between versions 1 and 2. Inactive file
// pages count as available memory.
static void read_group(struct rlhf__host_memory *m, const char *dir, int v2) {
    char path[RLHF__PATH_CAP];
    uint64_t most, used = 0, cached = 0;
    rlhf__path_put(path, "%s/%s", dir, v2 ? "memory.max" : "memory.limit_in_bytes");
    if (!number_in(path, "", &most)) return;
    rlhf__path_put(path, "%s/%s", dir, v2 ? "memory.current" : "memory.usage_in_bytes");
    if (!number_in(path, "", &used)) return;
    rlhf__path_put(path, "%s/memory.stat", dir);
    number_in(path, v2 ? "inactive_file " : "total_inactive_file ", &cached);
    used -= cached < used ? cached : used;
    limit(m, most, most > used ? most - used : 0);
}

// Reads the group and all its parents, because each may have a limit. In a container, `path` may
// belong to another cgroup namespace. In that case, only the group at the top of the mount can be
// read.
static void read_groups(struct rlhf__host_memory *m, const char *top, char *path, int v2) {
    char dir[RLHF__PATH_CAP];
    for (;;) {
        rlhf__path_put(dir, "%s%s", top, path);
        read_group(m, dir, v2);
        char *cut = strrchr(path, '/');
        if (!cut) return;
        *cut = 0;
    }
}

// Reads the lines "0::/a/b" (version 2) and "5:cpu,memory:/a/b" (version 1) of /proc/self/cgroup.
static void read_limits(struct rlhf__host_memory *m, const char *root) {
    char path[RLHF__PATH_CAP], line[RLHF__PATH_CAP], top[RLHF__PATH_CAP];
    FILE *f = fopen(rlhf__path_put(path, "%s/proc/self/cgroup", root), "r");
    while (f && fgets(line, sizeof line, f)) {
        char *kinds = strchr(line, ':'), *at = kinds ? strchr(kinds + 1, ':') : NULL;
        if (!at) continue;
        *at++ = 0;
        at[strcspn(at, "\n")] = 0;
        const int v2 = kinds[1] == 0;
        if (!v2 && !strstr(kinds, "memory")) continue;
        rlhf__path_put(top, v2 ? "%s/sys/fs/cgroup" : "%s/sys/fs/cgroup/memory", root);
        read_groups(m, top, at, v2);
    }
    if (f) fclose(f);
}

struct rlhf__host_memory rlhf__host_memory(const char *root) {
    struct rlhf__host_memory m = {0, 0, 0};
    char path[RLHF__PATH_CAP];
    uint64_t pages = 0, ignored = 0;
    rlhf__path_put(path, "%s/proc/meminfo", root);
    if (!number_in(path, "MemTotal:", &m.total) || !number_in(path, "MemAvailable:", &m.left))
        return (struct rlhf__host_memory){0, 0, 0};
    m.total <<= 10; // /proc/meminfo counts kB
    m.left <<= 10;
    read_limits(&m, root);
    FILE *f = fopen(rlhf__path_put(path, "%s/proc/self/statm", root), "r");
    if (f && fscanf(f, "%" SCNu64 " %" SCNu64, &ignored, &pages) == 2)
        m.own = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    if (f) fclose(f);
    return m;
}
