// probe_terminal.c: tries to read the user's keys, to type into the user's shell, and to take over
// or disturb the host's terminal.
#include "worker/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#define NONE (-1)

static long opens(const char *path, int how) {
    if (!*path) {
        errno = ENXIO;
        return NONE;
    }
    return open(path, how | O_NOCTTY | O_NONBLOCK);
}

static long opens_own(const struct bait *b) {
    (void)b;
    return opens("/dev/tty", O_RDWR);
}

static long reads_keys(const struct bait *b) { return opens(b->terminal, O_RDONLY); }
static long draws(const struct bait *b) { return opens(b->terminal, O_WRONLY); }

static long opens_console(const struct bait *b) {
    (void)b;
    return opens("/dev/console", O_RDONLY);
}

static long makes_pty(const struct bait *b) {
    (void)b;
    return opens("/dev/ptmx", O_RDWR);
}

// Opens the terminal without any access right, so that ioctls can be tried. Landlock cannot forbid
// such an open.
static int terminal(const struct bait *b) {
    static const int how[] = {O_RDWR, O_RDONLY, O_WRONLY, O_ACCMODE};
    const char *const paths[] = {b->terminal, "/dev/tty"};
    for (int i = 0; i < 8; i++) {
        const int fd = (int)opens(paths[i / 4], how[i % 4]);
        if (fd >= 0 && isatty(fd)) return fd;
        if (fd >= 0) close(fd);
    }
    return open("/dev/null", O_RDONLY);
}

static const struct probe devices[] = {
    {"tty", opens_own},         {"keys", reads_keys}, {"screen", draws},
    {"console", opens_console}, {"ptmx", makes_pty},
};

// Opens a device node outside /dev, such as a container's directory may contain. Only tests as root
// have such a node.
static long opens_node(const struct bait *b) {
    char path[600];
    snprintf(path, sizeof path, "%s/random", b->dir);
    return open(path, O_RDONLY);
}

static const struct probe nodes[] = {{"node", opens_node}};

// ---- ioctls ----

// Returns success unless the filter refused the ioctl. The filter refuses it on every terminal,
// with ENOTTY. The kernel itself refuses some ioctls of a terminal that is not the caller's own,
// with another errno.
static long by_filter(const struct bait *b, unsigned long request, void *arg) {
    const int fd = terminal(b);
    const long got = ioctl(fd, request, arg);
    return got < 0 && errno != ENOTTY && isatty(fd) ? 0 : got;
}

static long types(const struct bait *b) {
    char key = 'x';
    return by_filter(b, TIOCSTI, &key);
}

static long pastes(const struct bait *b) {
    char selection = 3; // paste
    return ioctl(terminal(b), TIOCLINUX, &selection);
}

static long takes_foreground(const struct bait *b) {
    const pid_t own = getpgrp();
    return ioctl(terminal(b), TIOCSPGRP, &own);
}

static long becomes_controlling(const struct bait *b) { return by_filter(b, TIOCSCTTY, NULL); }
static long leaves(const struct bait *b) { return ioctl(terminal(b), TIOCNOTTY); }

static long sets(const struct bait *b, unsigned long request) {
    struct termios t;
    const int fd = terminal(b);
    if (tcgetattr(fd, &t) != 0) return NONE;
    return ioctl(fd, request, &t); // unchanged: a kernel's struct is shorter
}

static long sets_now(const struct bait *b) { return sets(b, TCSETS); }
static long sets_drained(const struct bait *b) { return sets(b, TCSETSW); }
static long sets_flushed(const struct bait *b) { return sets(b, TCSETSF); }
static long drops_keys(const struct bait *b) { return ioctl(terminal(b), TCFLSH, TCIFLUSH); }
static long holds_output(const struct bait *b) { return ioctl(terminal(b), TCXONC, TCOON); }
static long shuts_others_out(const struct bait *b) { return ioctl(terminal(b), TIOCNXCL); }

static long resizes(const struct bait *b) {
    struct winsize size;
    const int fd = terminal(b);
    if (ioctl(fd, TIOCGWINSZ, &size) != 0) return NONE;
    return ioctl(fd, TIOCSWINSZ, &size);
}

static long changes_discipline(const struct bait *b) {
    const int normal = 0;
    return ioctl(terminal(b), TIOCSETD, &normal);
}

static long opens_peer(const struct bait *b) { return ioctl(terminal(b), TIOCGPTPEER, O_RDWR); }

static const struct probe ioctls[] = {
    {"tiocsti", types},
    {"tioclinux", pastes},
    {"tiocspgrp", takes_foreground},
    {"tiocsctty", becomes_controlling},
    {"tiocnotty", leaves},
    {"tcsets", sets_now},
    {"tcsetsw", sets_drained},
    {"tcsetsf", sets_flushed},
    {"tcflsh", drops_keys},
    {"tcxonc", holds_output},
    {"tiocnxcl", shuts_others_out},
    {"tiocswinsz", resizes},
    {"tiocsetd", changes_discipline},
    {"tiocgptpeer", opens_peer},
};

// ---- the session ----

// Reads the worker's terminal, which is the seventh field of its line in /proc. The worker is the
// parent of this process.
static long has_terminal(const struct bait *b) {
    char path[64], line[512];
    const char *end;
    int number = 1;
    (void)b;
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)getppid());
    FILE *f = fopen(path, "re");
    if (!f || !fgets(line, sizeof line, f) || (end = strrchr(line, ')')) == NULL) return 0;
    sscanf(end + 1, " %*c %*d %*d %*d %d", &number);
    fclose(f);
    errno = ENXIO;
    return number ? 0 : NONE;
}

static const struct probe session[] = {{"session", has_terminal}};

// The host may only inspect the file, in a child. This runs even then.
__attribute__((constructor)) static void when_opened(void) {
    if (getenv("RLHF_PROBE_TERMINAL"))
        fprintf(stderr, open("/dev/tty", O_RDONLY) < 0 ? "no terminal\n" : "has a terminal\n");
    while (getenv("RLHF_PROBE_HANG"))
        pause();
}

const struct area probe_terminal[] = {AREA(WALL_DEVICES, devices),
                                      AREA(WALL_MOUNTS, nodes),
                                      AREA(WALL_CALLS, ioctls),
                                      AREA(WALL_LIMITS, session),
                                      {0, NULL, 0}};
