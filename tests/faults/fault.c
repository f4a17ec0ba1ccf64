// fault.c: see fault.h.
#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum how { COUNT, KILL, TORN, FAIL, INTERRUPT, STOP };

static int armed;
static enum how how;
static int error, onwards;
static long target;
static pid_t self;
static atomic_long count;
static long log_fd = -1; // FAULT_LOG

__attribute__((constructor)) static void open_log(void) {
    const char *path = getenv("FAULT_LOG");
    if (path)
        log_fd =
            syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    self = getpid();
}

__attribute__((constructor)) static void read_plan(void) {
    const char *plan = getenv("FAULT");
    char how_name[16] = "", more = 0;
    if (!plan || sscanf(plan, "%15[^:]:%ld%c", how_name, &target, &more) < 2) return;
    onwards = more == '+';
    if (strcmp(how_name, "kill") == 0) how = KILL;
    if (strcmp(how_name, "torn") == 0) how = TORN;
    if (strcmp(how_name, "int") == 0) how = INTERRUPT;
    if (strcmp(how_name, "stop") == 0) how = STOP;
    if (strcmp(how_name, "enospc") == 0) error = ENOSPC;
    if (strcmp(how_name, "eio") == 0) error = EIO;
    if (strcmp(how_name, "erofs") == 0) error = EROFS;
    if (strcmp(how_name, "enomem") == 0) error = ENOMEM;
    if (error) how = FAIL;
    self = getpid();
    atomic_store(&count, 0);
    unsetenv("FAULT"); // for programs that this program starts, such as workers
    armed = 1;         // last, so that earlier operations do not count
}

__attribute__((destructor)) static void write_count(void) {
    const char *path = getenv("FAULT_COUNT");
    char text[32];
    if (!path || !armed || getpid() != self) return;
    int n = snprintf(text, sizeof text, "%ld\n", atomic_load(&count));
    long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0) return;
    syscall(SYS_write, fd, text, n);
    syscall(SYS_close, fd);
}

void fault_note(const char *op, int dir, const char *path) {
    char in[4096] = "", link[64], line[8300];
    int saved = errno;
    if (log_fd < 0 || getpid() != self) return;
    if (!path || *path != '/') {
        if (dir == AT_FDCWD)
            snprintf(link, sizeof link, "/proc/self/cwd");
        else
            snprintf(link, sizeof link, "/proc/self/fd/%d", dir);
        long got = syscall(SYS_readlinkat, AT_FDCWD, link, in, sizeof in - 1);
        in[got > 0 ? got : 0] = '\0';
    }
    int n = snprintf(line, sizeof line, "%s %s%s%s\n", op, in, *in && path ? "/" : "",
                     path ? path : "");
    syscall(SYS_write, log_fd, line, (size_t)n);
    errno = saved;
}

static void end(void) {
    syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
    for (;;)
        pause();
}

int fault_strikes(int fd, const void *bytes, size_t n) {
    if (!armed || getpid() != self) return 0;
    long now = atomic_fetch_add(&count, 1) + 1;
    if (how == COUNT || (onwards ? now < target : now != target)) return 0;
    if (how == INTERRUPT) return raise(SIGINT);
    if (how == STOP) return raise(SIGSTOP);
    if (how == TORN && bytes) syscall(SYS_write, fd, bytes, n / 2);
    if (how != FAIL) end();
    errno = error;
    return 1;
}
