// descendants.c: see descendants.h.
#include "process/descendants.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ROUNDS = 100, MOST_ENV = 1 << 20 };

static size_t read_file(const char *path, char *to, size_t cap) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    if (fd < 0) return 0;
    while (len < cap) {
        const ssize_t n = read(fd, to + len, cap - len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        len += (size_t)n;
    }
    close(fd);
    return len;
}

// "pid (name) state parent group session ...": a name may have anything in it but ends at the last
// parenthesis.
static int is_of_session(const char *proc, pid_t session) {
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%.20s/stat", proc);
    const size_t n = read_file(path, text, sizeof text - 1);
    text[n] = 0;
    const char *end = strrchr(text, ')');
    long parent, group, its;
    char state;
    return end && sscanf(end + 1, " %c %ld %ld %ld", &state, &parent, &group, &its) == 4 &&
           its == session && state != 'Z';
}

// env: room for MOST_ENV bytes. Processes that end have no environment any more.
static int is_marked(const char *proc, const char *mark, char *env) {
    char path[64];
    const size_t len = strlen(mark) + 1; // with its NUL
    snprintf(path, sizeof path, "/proc/%.20s/environ", proc);
    const size_t n = read_file(path, env, MOST_ENV);
    const char *at = n ? memmem(env, n, mark, len) : NULL;
    return at && (at == env || at[-1] == 0);
}

// Kills what is found; returns how many that were.
static int kill_round(pid_t leader, int lives, const char *mark, char *env) {
    int killed = 0;
    DIR *all = opendir("/proc");
    if (!all) return 0;
    for (const struct dirent *e; (e = readdir(all));) {
        if (!isdigit((unsigned char)e->d_name[0])) continue;
        const pid_t pid = (pid_t)atol(e->d_name);
        if (pid == getpid() || pid <= 1) continue;
        if ((lives && is_of_session(e->d_name, leader)) || is_marked(e->d_name, mark, env))
            killed += kill(pid, SIGKILL) == 0;
    }
    closedir(all);
    return killed;
}

void rlhf__descendants_kill(pid_t leader, int lives, const char *mark) {
    if (lives) kill(-leader, SIGKILL); // at once, so that a group that forks comes to an end
    char *env = malloc(MOST_ENV);
    // A process that was killed may take a moment to go; one that forks is caught by the next
    // round.
    for (int round = 0; env && round < MAX_ROUNDS; round++) {
        if (!kill_round(leader, lives, mark, env)) break;
        usleep(2000);
    }
    free(env);
}
