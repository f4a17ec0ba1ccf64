// descendants.c: see descendants.h. Each call reads /proc only once, however many processes there
// are.
#include "supervise/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_PID = 1 << 22 }; // Linux gives no higher ids

struct process {
    pid_t pid, parent, group, session;
    int zombie;
    uint64_t ticks, started;
};

struct table {
    struct process *item; // [n]
    size_t n, cap;
};

// If the process has ended, all members except `pid` are 0.
static struct process read_one(pid_t pid) {
    struct process p = {.pid = pid};
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (n <= 0) return p;
    text[n] = '\0';
    const char *end = strrchr(text, ')'); // the end of the name, which may contain ')' too
    if (!end || strlen(end) <= 4) return p;
    char *at;
    p.zombie = end[2] == 'Z' || end[2] == 'X';
    p.parent = (pid_t)strtol(end + 4, &at, 10);
    p.group = (pid_t)strtol(at, &at, 10);
    p.session = (pid_t)strtol(at, &at, 10);
    uint64_t field[17]; // for k from 7 to 22, field number k is field[k - 6]
    for (int i = 1; i < 17; i++)
        field[i] = strtoull(at, &at, 10);
    p.ticks = field[14 - 6] + field[15 - 6];
    p.started = field[22 - 6];
    return p;
}

static int is_traced(pid_t pid) {
    char path[64], line[256];
    long tracer = 0;
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f) && sscanf(line, "TracerPid: %ld", &tracer) != 1)
        ;
    if (f) fclose(f);
    return tracer != 0;
}

static int add(struct table *t, pid_t pid) {
    if (t->n == t->cap) {
        const size_t cap = t->cap ? 2 * t->cap : 1024;
        struct process *more = realloc(t->item, cap * sizeof *more);
        if (!more) return -1;
        t->item = more;
        t->cap = cap;
    }
    t->item[t->n++] = read_one(pid);
    return 0;
}

static void read_all(struct table *t) {
    DIR *dir = opendir("/proc");
    const struct dirent *e;
    while (dir && (e = readdir(dir)) != NULL) {
        const long pid = strtol(e->d_name, NULL, 10);
        if (pid > 0 && pid < MOST_PID && add(t, (pid_t)pid) != 0) break;
    }
    if (dir) closedir(dir);
}

// Set found[pid] = 1 for all descendants of `root`. The loop makes at most one pass for each
// generation of the tree, and a last one that finds nothing.
static void find(const struct table *t, pid_t root, uint8_t *found) {
    int more = 1;
    found[root] = 1;
    while (more) {
        more = 0;
        for (size_t i = 0; i < t->n; i++) {
            const struct process *p = &t->item[i];
            if (found[p->pid] || p->parent <= 0 || p->parent >= MOST_PID || !found[p->parent])
                continue;
            found[p->pid] = 1;
            more = 1;
        }
    }
    found[root] = 0;
}

size_t rlhf__descendants_kill(void) {
    struct table t = {NULL, 0, 0};
    uint8_t *found = calloc(MOST_PID, 1);
    size_t n = 0;
    read_all(&t);
    if (found && getpid() < MOST_PID) find(&t, getpid(), found);
    for (size_t i = 0; found && i < t.n; i++)
        if (found[t.item[i].pid] && kill(t.item[i].pid, SIGKILL) == 0) n++;
    free(found);
    free(t.item);
    return n;
}

struct rlhf__process_tree rlhf__descendants_look(pid_t except) {
    struct table t = {NULL, 0, 0};
    struct rlhf__process_tree tree = {0, 0, 0};
    uint8_t *found = calloc(MOST_PID, 1);
    read_all(&t);
    if (found && getpid() < MOST_PID) find(&t, getpid(), found);
    for (size_t i = 0; found && i < t.n; i++) {
        const struct process *p = &t.item[i];
        if (!found[p->pid] || p->pid == except) continue;
        tree.ticks += p->ticks;
        if (p->started > tree.newest) tree.newest = p->started;
        if (is_traced(p->pid)) tree.traced = 1;
    }
    free(found);
    free(t.item);
    return tree;
}

size_t rlhf__session_kill(pid_t session) {
    struct table t = {NULL, 0, 0};
    size_t n = 0;
    read_all(&t);
    for (size_t i = 0; i < t.n; i++) {
        const struct process *p = &t.item[i];
        if (p->session != session || p->group <= 1 || p->group == session || p->zombie) continue;
        kill(-p->group, SIGKILL);
        n++;
    }
    free(t.item);
    return n;
}
