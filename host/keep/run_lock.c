// run_lock.c: see run_lock.h. The lock is a POSIX record lock, because network file systems support
// such locks, and child processes of a plugin do not inherit them.
#include "keep/run_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME     "lock"
#define UNKNOWN  "unknown" // for a host without a name
#define PAUSE_MS 20

static struct flock whole_file(void) {
    struct flock l;
    memset(&l, 0, sizeof l);
    l.l_type = F_WRLCK;
    l.l_whence = SEEK_SET;
    return l;
}

// Take the lock of the file. Returns 0, or -1 with errno set.
static int take(int fd, int wait_ms) {
    const struct timespec pause = {.tv_nsec = PAUSE_MS * 1000000L};
    struct flock l = whole_file();
    for (int i = 0; fcntl(fd, F_SETLK, &l) != 0; i++) {
        if ((errno != EACCES && errno != EAGAIN) || i * PAUSE_MS >= wait_ms) return -1;
        nanosleep(&pause, NULL);
    }
    return 0;
}

// Describe the process that holds the lock, from the file's text "<pid> <host>\n". A process that
// has just taken the lock may not have written this text yet.
static void name_holder(int fd, char out[RLHF__LOCK_HOLDER]) {
    char text[320] = "", host[256] = "", on[264] = "";
    long pid = 0;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "%ld %255s", &pid, host) == 2) {
        if (strcmp(host, UNKNOWN) != 0) snprintf(on, sizeof on, " on %s", host);
    } else {
        struct flock l = whole_file();
        if (fcntl(fd, F_GETLK, &l) == 0 && l.l_type != F_UNLCK) pid = (long)l.l_pid;
    }
    snprintf(out, RLHF__LOCK_HOLDER, "process %ld%s", pid, on);
}

static rlhf_status taken(const struct rlhf__folder *run, int fd, struct rlhf__error *err) {
    char holder[RLHF__LOCK_HOLDER];
    name_holder(fd, holder);
    return rlhf__fail(err, RLHF_E_INVALID,
                      "--resume %s: the run is alive: %s holds %s/" NAME
                      "; wait until it ends, or stop it, before it is resumed",
                      run->path, holder, run->path);
}

static void say_who(int fd) {
    char host[256] = "", text[320];
    struct stat s;
    // Do not write to a file with several hard links. It may not be a lock at all. If a run was
    // copied with hard links, the file may be the lock of both runs.
    if (fstat(fd, &s) != 0 || s.st_nlink > 1) return;
    gethostname(host, sizeof host - 1);
    int n = snprintf(text, sizeof text, "%ld %s\n", (long)getpid(), *host ? host : UNKNOWN);
    // Ignore errors, because the text is only for messages, and later writes will report a full
    // disk.
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n) return;
}

rlhf_status rlhf__run_lock(const struct rlhf__folder *run, int wait_ms, struct rlhf__log *log,
                           int *fd, struct rlhf__error *err) {
    int got;
    *fd = -1;
    RLHF_TRY(rlhf__folder_append(run, NAME, 0, &got, err));
    if (take(got, wait_ms) == 0) {
        *fd = got;
        say_who(got);
        return RLHF_OK;
    }
    rlhf_status st = RLHF_OK;
    if (errno == EACCES || errno == EAGAIN)
        st = taken(run, got, err);
    else
        rlhf__logf(log, RLHF_LOG_WARN,
                   "%s/" NAME ": cannot lock: %s; nothing keeps a second process from writing to "
                   "this run",
                   run->path, strerror(errno));
    close(got);
    return st;
}

// Opens the lock if another process holds it. Returns -1 if no other process holds it, or if this
// user cannot read the lock.
static int open_held(const struct rlhf__folder *run) {
    struct flock l = whole_file();
    const int fd = openat(run->fd, NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || (fcntl(fd, F_GETLK, &l) == 0 && l.l_type != F_UNLCK)) return fd;
    close(fd);
    return -1;
}

int rlhf__run_lock_holder(const struct rlhf__folder *run, char out[RLHF__LOCK_HOLDER]) {
    const int fd = open_held(run);
    if (fd < 0) return 0;
    name_holder(fd, out);
    close(fd);
    return 1;
}

rlhf_status rlhf__run_lock_probe(const struct rlhf__folder *run, struct rlhf__error *err) {
    const int fd = open_held(run);
    if (fd < 0) return RLHF_OK;
    const rlhf_status st = taken(run, fd, err);
    close(fd);
    return st;
}
