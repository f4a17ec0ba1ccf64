// landlock.c: what a worker may do with files, by landlock; see confine.h. It uses raw system
// calls: Debian 12's libc lacks functions for them, and its headers lack the later rights.
//
// Forbids writing, creating, moving and removing files. Allows reading all files except devices,
// including terminals, and /proc entries about other processes: landlock can only list what is
// allowed, so the rules list every entry of the root directory except these two.
#include "worker/confine.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct ruleset {
    uint64_t files, network, scoped;
};

struct __attribute__((packed)) rule_beneath {
    uint64_t allowed;
    int32_t fd;
};

enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446, VERSION = 1, PATH_BENEATH = 1 };

// Rights over files.
enum {
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    CHANGE = 0x1ff0,        // remove and make, by kind
    REFER = 1 << 13,        // from version 2 on: move
    TRUNCATE = 1 << 14,     // 3
    IOCTL_DEV = 1 << 15,    // 5
    RESOLVE_UNIX = 1 << 16, // 9: reach a socket by its path
    READ = READ_FILE | READ_DIR
};

// What the rules of this kernel can be about. Version 4 knows TCP, 6 keeps signals and abstract
// sockets in. 7, 8 and 10 bring nothing that is needed here; a later one is taken as 10.
static int open_ruleset(int network, struct ruleset *rules) {
    const long version = syscall(CREATE_RULESET, NULL, 0, VERSION);
    if (version < 1) return -1;
    *rules = (struct ruleset){.files = WRITE_FILE | READ | CHANGE};
    if (version >= 2) rules->files |= REFER;
    if (version >= 3) rules->files |= TRUNCATE;
    if (version >= 4 && !network) rules->network = 3;
    if (version >= 5) rules->files |= IOCTL_DEV;
    if (version >= 6) rules->scoped = 3;
    if (version >= 9) rules->files |= RESOLVE_UNIX;
    const size_t known = version >= 6 ? sizeof *rules : version >= 4 ? 16 : 8;
    return (int)syscall(CREATE_RULESET, rules, known, 0);
}

// Of a file the rights of directories cannot be given.
static void allow_fd(int rules, int fd, const struct stat *s, uint64_t rights) {
    struct rule_beneath rule = {rights, fd};
    if (!S_ISDIR(s->st_mode)) rule.allowed &= ~(uint64_t)READ_DIR;
    syscall(ADD_RULE, rules, PATH_BENEATH, &rule, 0);
}

static void allow(int rules, const char *path, uint64_t rights) {
    struct stat s;
    const int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &s) == 0) allow_fd(rules, fd, &s, rights);
    if (fd >= 0) close(fd);
}

// Whether it is one of the directories of which only parts are allowed: a link may lead to one.
static int is_apart(const struct stat *s) {
    static const char *const apart[] = {"/", "/dev", "/proc"};
    struct stat other;
    for (size_t i = 0; i < sizeof apart / sizeof *apart; i++)
        if (stat(apart[i], &other) == 0 && other.st_dev == s->st_dev && other.st_ino == s->st_ino)
            return 1;
    return 0;
}

static int allow_root(int rules) {
    DIR *dir = opendir("/");
    const struct dirent *e;
    if (!dir) return -1;
    while ((e = readdir(dir)) != NULL) {
        struct stat s;
        const int fd = openat(dirfd(dir), e->d_name, O_PATH | O_CLOEXEC);
        if (fd >= 0 && fstat(fd, &s) == 0 && !is_apart(&s)) allow_fd(rules, fd, &s, READ);
        if (fd >= 0) close(fd);
    }
    closedir(dir);
    return 0;
}

// own_proc 1: what is there is of the worker's own processes.
static void allow_system(int rules, uint64_t handled, int own_proc) {
    static const char *const devices[] = {"/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
    static const char *const told[] = {"/proc/self",    "/proc/cpuinfo", "/proc/filesystems",
                                       "/proc/loadavg", "/proc/meminfo", "/proc/stat",
                                       "/proc/sys",     "/proc/uptime",  "/proc/version"};
    const uint64_t device = READ_FILE | (handled & IOCTL_DEV);
    // Programs discard output there.
    allow(rules, "/dev/null", device | (handled & (WRITE_FILE | TRUNCATE)));
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        allow(rules, devices[i], device);
    allow(rules, "/dev/shm", READ);
    if (own_proc) allow(rules, "/proc", READ);
    for (size_t i = 0; !own_proc && i < sizeof told / sizeof *told; i++)
        allow(rules, told[i], READ);
}

int rlhf__landlock(int own_proc, int network) {
    struct ruleset handled;
    const int rules = open_ruleset(network, &handled);
    if (rules < 0) return -1;
    int bad = allow_root(rules);
    if (!bad) allow_system(rules, handled.files, own_proc);
    if (!bad) bad = syscall(RESTRICT_SELF, rules, 0) != 0;
    close(rules);
    return bad ? -1 : 0;
}
