// cores.c: see cores.h. The formats are described in cgroup(7), and in these files of the kernel's
// Documentation: admin-guide/cgroup-v2.rst (cpu.max), scheduler/sched-bwc.rst (cpu.cfs_quota_us)
// and admin-guide/cputopology.rst.
#include "machine/cores.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- cores ----

// The first processor in a list such as "0-1,8" or "3,7"; -1 if it cannot be read.
static long first_of(const char *root, size_t cpu) {
    char path[PATH_MAX], text[64] = "";
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list",
             root, cpu);
    FILE *f = fopen(path, "r");
    if (!f) return -1;
    if (!fgets(text, sizeof text, f)) text[0] = 0;
    fclose(f);
    char *end;
    const long first = strtol(text, &end, 10);
    return end == text || first < 0 ? -1 : first;
}

// Count the physical cores of the allowed processors. All siblings of a core have the same list. So
// the first processor in the list identifies the core, even if that processor itself is not
// allowed.
static int physical(const char *root, const cpu_set_t *allowed, size_t bytes) {
    const size_t n = bytes * CHAR_BIT;
    unsigned char *seen = calloc(n, 1);
    int count = 0;
    for (size_t i = 0; i < n; i++) {
        if (!CPU_ISSET_S(i, bytes, allowed)) continue;
        const long core = first_of(root, i);
        if (seen && core >= 0 && (size_t)core < n) {
            if (seen[core]) continue;
            seen[core] = 1;
        }
        count++;
    }
    free(seen);
    return count;
}

// ---- quotas ----

// The quota of the group in `dir`, as a number of fully used processors. 0: unlimited or
// unreadable.
static double quota_v2(const char *dir) {
    char path[PATH_MAX + 16];
    double quota = 0, period = 0;
    snprintf(path, sizeof path, "%s/cpu.max", dir);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    const int n = fscanf(f, "%lf %lf", &quota, &period); // "max 100000" yields no number
    fclose(f);
    return n == 2 && quota > 0 && period > 0 ? quota / period : 0;
}

static double number_in(const char *dir, const char *name) {
    char path[PATH_MAX + 32];
    double x = 0;
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    if (fscanf(f, "%lf", &x) != 1) x = 0;
    fclose(f);
    return x;
}

static double quota_v1(const char *dir) {
    const double quota = number_in(dir, "cpu.cfs_quota_us"); // -1: none
    const double period = number_in(dir, "cpu.cfs_period_us");
    return quota > 0 && period > 0 ? quota / period : 0;
}

// Returns the smallest quota of the group at mount + path and its ancestors up to the mount, or 0
// if none has a quota. In a container, `path` may be the group's path on the host. That path does
// not exist in the container, so only the quota of the mount itself is found.
static double least(const char *mount, const char *path, double (*quota)(const char *)) {
    char dir[PATH_MAX];
    double found = 0;
    const size_t top = strlen(mount);
    if (snprintf(dir, sizeof dir, "%s%s", mount, path) >= (int)sizeof dir) return 0;
    for (;;) {
        const double q = quota(dir);
        if (q > 0 && (found == 0 || q < found)) found = q;
        char *slash = strrchr(dir, '/');
        if (!slash || (size_t)(slash - dir) < top) return found;
        *slash = 0;
    }
}

// 1 if a list such as "cpu,cpuacct" contains the controller.
static int names_cpu(const char *list) {
    for (size_t n; *list; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        if (n == 3 && strncmp(list, "cpu", n) == 0) return 1;
    }
    return 0;
}

// Returns the quota of the group that `line` names, or 0 if the group is not limited. `line` is a
// line of /proc/self/cgroup, such as "0::/path" or "4:cpu,cpuacct:/path".
static double quota_of_line(const char *root, char *line) {
    char mount[PATH_MAX];
    char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
    if (!path) return 0;
    *path++ = 0;
    list++;
    path[strcspn(path, "\n")] = 0;
    if (!*list) {
        snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", root);
        return least(mount, path, quota_v2);
    }
    if (!names_cpu(list)) return 0;
    snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/%s", root, list);
    double q = least(mount, path, quota_v1);
    if (q > 0) return q;
    snprintf(mount, sizeof mount, "%s/sys/fs/cgroup/cpu", root);
    return least(mount, path, quota_v1);
}

static double quota(const char *root) {
    char path[PATH_MAX], line[PATH_MAX];
    double found = 0;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        const double q = quota_of_line(root, line);
        if (q > 0 && (found == 0 || q < found)) found = q;
    }
    if (f) fclose(f);
    return found;
}

int rlhf__cores_count(const char *root, const cpu_set_t *allowed, size_t bytes) {
    int n = physical(root, allowed, bytes);
    const double q = quota(root);
    if (q > 0 && q < n) {
        const int whole = (int)q;
        n = whole < q ? whole + 1 : whole;
    }
    return n < 1 ? 1 : n;
}

int rlhf__cores_auto(void) {
    enum { FEW = 1024, MOST = 1 << 16 };
    for (size_t n = FEW; n <= MOST; n *= 2) { // the kernel's mask may be wider than 1024
        cpu_set_t *set = CPU_ALLOC(n);
        const size_t bytes = CPU_ALLOC_SIZE(n);
        if (!set) return 1;
        const int got = sched_getaffinity(0, bytes, set) == 0;
        const int count = got ? rlhf__cores_count("", set, bytes) : 0;
        CPU_FREE(set);
        if (got) return count;
    }
    return 1;
}
