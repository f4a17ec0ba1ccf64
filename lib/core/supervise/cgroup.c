// cgroup.c: see cgroup.h. The formats are described in proc(5) (mountinfo), cgroup_namespaces(7)
// and Documentation/admin-guide/cgroup-v2.rst of Linux.
#include "supervise/cgroup.h"

#include "base/clock.h"
#include "base/file.h"
#include "supervise/confine.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX      "rlhf-host-"
#define PATIENCE    1.0  // seconds in which the killed processes of a group should disappear
#define PATIENCE_OF 0.05 // the same, for a group that another host left
enum { MOST_NAMES = 100 };

// ---- files of a group ----

// Returns all of a small file, or NULL if it cannot be read.
static const char *get(int dir, const char *name, char text[1024]) {
    const int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, 1023);
    if (fd >= 0) close(fd);
    if (n < 0) return NULL;
    text[n] = '\0';
    return text;
}

static int put(int dir, const char *name, const char *text) {
    const int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
    const size_t n = strlen(text);
    const int bad = fd < 0 || write(fd, text, n) != (ssize_t)n;
    if (fd >= 0) close(fd);
    return bad ? -1 : 0;
}

static int put_number(int dir, const char *name, uint64_t v) {
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, v);
    return put(dir, name, text);
}

static int has_word(const char *list, const char *word) {
    const size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += n)
        if ((at == list || at[-1] == ' ') && strchr(" \n", at[n])) return 1;
    return 0;
}

// Returns the number in the line "key 5", or 0 if there is no such line.
static uint64_t number_of(const char *text, const char *key) {
    const size_t n = strlen(key);
    for (const char *at = text; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, key, n) == 0 && at[n] == ' ') return strtoull(at + n, NULL, 10);
    }
    return 0;
}

// ---- where groups can be made ----

// Finds the control group of this process, "/a/b", as its cgroup namespace shows it. Returns -1 if
// the group is outside of the namespace, where the kernel shows it as "/../b".
static int own_group(const char *root, char out[RLHF__PATH_CAP]) {
    char line[RLHF__PATH_CAP];
    int found = 0;
    FILE *f = fopen(rlhf__path_put(line, "%s/proc/self/cgroup", root), "re");
    while (f && !found && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        found = strncmp(line, "0::/", 4) == 0 && !strstr(line, "/..");
        if (found) rlhf__path_put(out, "%s", line + 3);
    }
    if (f) fclose(f);
    return found ? 0 : -1;
}

// Decodes the escapes in a path of mountinfo, in place. For example, "\040" becomes a blank.
static void unescape(char *path) {
    char *to = path;
    for (const char *at = path; *at; at++) {
        unsigned c;
        if (*at == '\\' && sscanf(at + 1, "%3o", &c) == 1) {
            *to++ = (char)c;
            at += 3;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

// Returns the rest of `path` after `top`, or NULL if `path` does not begin with `top`.
static const char *below(const char *path, const char *top) {
    const size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);
    if (strncmp(path, top, n) != 0 || (path[n] && path[n] != '/')) return NULL;
    return strcmp(path + n, "/") == 0 ? "" : path + n;
}

// Reads a line of mountinfo: "31 23 0:28 <root> <mount point> rw,... - cgroup2 ...". Sets `point`
// to the mount point. Returns the path of `group` relative to <root>. Returns NULL if the line is
// not a mount of cgroup2, or if `group` is not below <root>.
static const char *mounted(const char *line, const char *group, char point[RLHF__PATH_CAP]) {
    char top[RLHF__PATH_CAP];
    if (!strstr(line, " - cgroup2 ") || strlen(line) >= RLHF__PATH_CAP) return NULL;
    if (sscanf(line, "%*s %*s %*s %4095s %4095s", top, point) != 2) return NULL;
    unescape(top);
    unescape(point);
    return below(group, top);
}

// Find the directory of `group`. Sets *is_top to 1 if `group` is the topmost visible group.
static int find_dir(const char *root, const char *group, char out[RLHF__PATH_CAP], int *is_top) {
    char path[RLHF__PATH_CAP], point[RLHF__PATH_CAP], *line = NULL;
    size_t cap = 0;
    int found = 0;
    FILE *f = fopen(rlhf__path_put(path, "%s/proc/self/mountinfo", root), "re");
    while (f && !found && getline(&line, &cap, f) > 0) {
        const char *rest = mounted(line, group, point);
        if (!rest) continue;
        rlhf__path_put(out, "%s%s%s", root, point, rest);
        *is_top = !*rest;
        found = rlhf__is_dir(out);
    }
    free(line);
    if (f) fclose(f);
    return found ? 0 : -1;
}

// Opens the directory in which groups can be made, and writes its path to `out`. If the process's
// group is the root of the hierarchy, this directory is the root itself, because only the root may
// contain both processes and groups with controllers. Otherwise it is the parent of the process's
// group. The root is the group that lacks the file cgroup.type. Returns -1 if groups cannot be
// made.
static int open_parent(const char *root, char out[RLHF__PATH_CAP]) {
    char group[RLHF__PATH_CAP], text[1024];
    int is_top = 0;
    if (own_group(root, group) != 0 || find_dir(root, group, out, &is_top) != 0) return -1;
    if (!is_top) *strrchr(out, '/') = '\0';
    const int fd = open(out, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int no_root = fd >= 0 && is_top && faccessat(fd, "cgroup.type", F_OK, 0) == 0;
    if (fd >= 0 && !no_root && get(fd, "cgroup.subtree_control", text) && has_word(text, "memory"))
        return fd;
    if (fd >= 0) close(fd);
    return -1;
}

// ---- the end ----

// Writing to cgroup.kill kills all processes of the group. Linux has this file since version 5.14.
// On older kernels, the group can be removed only after the warden has ended the group's processes.
// A killed process remains in the group for a moment, so removing the group is tried repeatedly.
static void end_group(int parent, const char *name, int fd, double patience) {
    const struct timespec pause = {0, 1000000};
    const double until = rlhf__seconds() + patience;
    put(fd, "cgroup.kill", "1");
    while (unlinkat(parent, name, AT_REMOVEDIR) != 0 && errno == EBUSY && rlhf__seconds() < until)
        nanosleep(&pause, NULL);
}

// A host holds the lock of its group as long as the host lives. So a group without a lock belongs
// to a host that has ended. This works across PID namespaces.
static void end_old(int parent, const char *name) {
    struct stat s;
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return;
    if (fstat(fd, &s) == 0 && s.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)
        end_group(parent, name, fd, PATIENCE_OF);
    close(fd);
}

static int is_ours(const char *name) {
    unsigned long host;
    unsigned i;
    int n = 0;
    return sscanf(name, PREFIX "%lu-%u%n", &host, &i, &n) == 2 && n > 0 && !name[n];
}

static void end_all_old(int parent) {
    const int copy = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    const struct dirent *e;
    if (!dir && copy >= 0) close(copy);
    while (dir && (e = readdir(dir)) != NULL)
        if (is_ours(e->d_name)) end_old(parent, e->d_name);
    if (dir) closedir(dir);
}

enum rlhf__cgroup_end rlhf__cgroup_close(struct rlhf__cgroup *g) {
    char text[1024];
    if (!g->dir) return RLHF__CGROUP_FINE;
    const char *events = get(g->fd, "memory.events", text);
    const int killed = events && number_of(events, "oom_kill") > 0;
    const int own = killed && number_of(events, "oom") > 0;
    end_group(AT_FDCWD, g->dir, g->fd, PATIENCE);
    close(g->fd);
    free(g->dir);
    *g = (struct rlhf__cgroup){NULL, 0};
    return own ? RLHF__CGROUP_OWN : killed ? RLHF__CGROUP_MACHINE : RLHF__CGROUP_FINE;
}

// ---- making one ----

// Makes a new directory, locks it and stores its path in `dir`. Returns its descriptor, or -1. If
// another host is removing the groups of ended hosts, it may remove the new directory before the
// directory is locked. In that case the loop tries another name.
static int make_dir(int parent, const char *path, char dir[RLHF__PATH_CAP]) {
    char name[64];
    for (unsigned i = 0; i < MOST_NAMES; i++) {
        snprintf(name, sizeof name, PREFIX "%ld-%u", (long)getpid(), i);
        if (mkdirat(parent, name, 0755) != 0) {
            if (errno == EEXIST) continue;
            return -1;
        }
        const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
            rlhf__path_put(dir, "%s/%s", path, name);
            return fd;
        }
        unlinkat(parent, name, AT_REMOVEDIR);
        if (fd >= 0) close(fd);
    }
    return -1;
}

static int set_bounds(int fd, uint64_t bytes) {
    if (put_number(fd, "memory.max", bytes) != 0) return -1;
    if (put(fd, "memory.oom.group", "1") != 0) return -1; // if memory runs out, kill all
    put(fd, "memory.swap.max", "0");                      // works if the kernel counts swap
    put_number(fd, "pids.max", RLHF__MOST_PROCESSES);     // works if the parent has the controller
    return 0;
}

int rlhf__cgroup_make(const char *root, uint64_t bytes, struct rlhf__cgroup *out) {
    char path[RLHF__PATH_CAP], dir[RLHF__PATH_CAP] = "";
    *out = (struct rlhf__cgroup){NULL, 0};
    const int parent = open_parent(root, path);
    if (parent < 0) return -1;
    end_all_old(parent);
    const int fd = make_dir(parent, path, dir);
    close(parent);
    if (fd < 0) return -1;
    const int bad = set_bounds(fd, bytes) != 0;
    if (!bad) *out = (struct rlhf__cgroup){strdup(dir), fd};
    if (out->dir) return 0;
    unlinkat(AT_FDCWD, dir, AT_REMOVEDIR);
    close(fd);
    *out = (struct rlhf__cgroup){NULL, 0};
    return -1;
}

unsigned rlhf__cgroup_enter(const char *dir) {
    char text[1024];
    unsigned in_force = 0;
    const int fd = *dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd < 0) return 0;
    if (put(fd, "cgroup.procs", "0") == 0) {
        if (get(fd, "memory.max", text) && strcmp(text, "max\n") != 0)
            in_force |= RLHF__CONFINED_GROUP;
        if (get(fd, "pids.max", text) && strcmp(text, "max\n") != 0)
            in_force |= RLHF__CONFINED_GROUP_COUNT;
    }
    close(fd);
    return in_force;
}
