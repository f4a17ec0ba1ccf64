// file_access.c: limits what a worker can do with files; see confine.h. There are two independent
// protections: a private view of the file system (mounts), and landlock. The code uses raw system
// calls, because Debian 12's libc lacks functions for them, and its headers lack landlock's newer
// rights.
#include "supervise/confine.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// ---- mounts: a private /dev ----

static const char *const devices[] = {"null", "zero", "full", "random", "urandom"};
enum { N_DEVICES = sizeof devices / sizeof *devices };

// Mount the open file or directory `from` at the path `to`, which must not exist yet.
static int bind_at(int from, const char *to, int is_dir) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", from);
    if (is_dir && mkdir(to, 0755) != 0) return -1;
    if (!is_dir && mknod(to, S_IFREG | 0644, 0) != 0) return -1;
    return mount(path, to, NULL, MS_BIND | (is_dir ? MS_REC : 0), NULL);
}

static int fill_dev(const int device[N_DEVICES], int shm) {
    char path[64];
    int bad = 0;
    for (int i = 0; i < N_DEVICES; i++) {
        snprintf(path, sizeof path, "/dev/%s", devices[i]);
        if (device[i] >= 0) bad |= bind_at(device[i], path, 0);
    }
    if (shm >= 0) bad |= bind_at(shm, "/dev/shm", 1);
    bad |= symlink("/proc/self/fd", "/dev/fd");
    bad |= symlink("/proc/self/fd/0", "/dev/stdin");
    bad |= symlink("/proc/self/fd/1", "/dev/stdout");
    return bad | symlink("/proc/self/fd/2", "/dev/stderr");
}

// Mounts a tmpfs over /dev with the few devices that programs commonly need.
static unsigned own_dev(void) {
    int device[N_DEVICES];
    char path[64];
    for (int i = 0; i < N_DEVICES; i++) {
        snprintf(path, sizeof path, "/dev/%s", devices[i]);
        device[i] = open(path, O_PATH | O_CLOEXEC);
    }
    const int shm = open("/dev/shm", O_PATH | O_CLOEXEC);
    int bad = mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k") != 0;
    if (!bad && fill_dev(device, shm) != 0) {
        umount2("/dev", MNT_DETACH);
        bad = 1;
    }
    for (int i = 0; i < N_DEVICES; i++)
        if (device[i] >= 0) close(device[i]);
    if (shm >= 0) close(shm);
    return bad ? 0 : RLHF__CONFINED_DEVICES;
}

// ---- mounts: a private /proc ----

// In a container that hides parts of /proc, the kernel may refuse to mount a complete /proc.
static unsigned mount_proc(void) {
    const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY;
    if (mount("proc", "/proc", "proc", flags, NULL) == 0) return RLHF__CONFINED_SIGHT;
    if (mount("proc", "/proc", "proc", flags, "subset=pid") == 0) return RLHF__CONFINED_SIGHT;
    return 0;
}

// ---- mounts: all read-only ----

// The argument of mount_setattr(), a system call of Linux 5.12.
struct mount_change {
    uint64_t set, clear, propagation, user_fd;
};
enum { MOUNT_SETATTR = 442, READ_ONLY = 1, NO_SUID = 2, NO_DEVICES = 4, RECURSIVE = 0x8000 };

static int change(const char *path, unsigned how, uint64_t set, uint64_t clear) {
    const struct mount_change what = {.set = set, .clear = clear};
    return (int)syscall(MOUNT_SETATTR, AT_FDCWD, path, how, &what, sizeof what);
}

// Makes all mounts read-only. If own_dev() has provided devices (has_dev), also forbids opening any
// other device.
static unsigned read_only(int has_dev) {
    char path[64];
    int bad = 0;
    if (change("/", RECURSIVE, READ_ONLY | NO_SUID, 0) != 0) return 0;
    if (!has_dev || change("/", RECURSIVE, NO_DEVICES, 0) != 0) return RLHF__CONFINED_READ_ONLY;
    for (int i = 0; i < N_DEVICES; i++) {
        snprintf(path, sizeof path, "/dev/%s", devices[i]);
        bad |= access(path, F_OK) == 0 && change(path, 0, 0, NO_DEVICES) != 0;
    }
    if (bad) change("/", RECURSIVE, 0, NO_DEVICES);
    return RLHF__CONFINED_READ_ONLY;
}

unsigned rlhf__mounts(const char *writes) {
    if (unshare(CLONE_NEWNS) != 0) return 0;
    // From now on, mounts made outside still appear here, but mounts made here are invisible
    // outside.
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0) return 0;
    unsigned in_force = own_dev();
    in_force |= mount_proc();
    // A separate mount can stay writable.
    const int bound = writes && mount(writes, writes, NULL, MS_BIND, NULL) == 0;
    in_force |= read_only(in_force & RLHF__CONFINED_DEVICES);
    if (bound) change(writes, 0, 0, READ_ONLY);
    return in_force;
}

// ---- landlock ----

// Forbid writing, creating, moving and removing files. Allow reading all files except devices
// (terminals included) and the /proc entries of other processes. A landlock rule can only allow
// access. So the rules list every entry of the root directory except /dev and /proc.

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
    CHANGE = 0x1ff0,        // remove files, and create files of any kind
    REFER = 1 << 13,        // move; since version 2 of landlock
    TRUNCATE = 1 << 14,     // since version 3
    IOCTL_DEV = 1 << 15,    // since version 5
    RESOLVE_UNIX = 1 << 16, // reach a socket by its path; since version 9
    READ = READ_FILE | READ_DIR,
    // Write, make and remove files and directories; but make no links, pipes or sockets.
    WRITE = WRITE_FILE | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | REFER | TRUNCATE
};

// Make a ruleset with every right that this kernel's landlock handles. Version 4 adds TCP; version
// 6 adds signals and abstract sockets. Versions 7, 8 and 10 add nothing that we need. Later
// versions are treated like version 10.
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

// Some rights apply only to directories, and the kernel refuses them for a file.
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

// Returns 1 if *s is /, /dev or /proc, in which some entries are not allowed. *s may have been
// reached through a link, so the devices and inodes are compared, not the paths.
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

// Add the rules for /dev and /proc. `own_proc` is 1 if /proc shows only the worker's own processes.
static void allow_system(int rules, uint64_t handled, int own_proc) {
    static const char *const readable[] = {"/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
    static const char *const told[] = {"/proc/self",    "/proc/cpuinfo", "/proc/filesystems",
                                       "/proc/loadavg", "/proc/meminfo", "/proc/stat",
                                       "/proc/sys",     "/proc/uptime",  "/proc/version"};
    const uint64_t device = READ_FILE | (handled & IOCTL_DEV);
    // Programs write output there to discard it.
    allow(rules, "/dev/null", device | (handled & (WRITE_FILE | TRUNCATE)));
    for (size_t i = 0; i < sizeof readable / sizeof *readable; i++)
        allow(rules, readable[i], device);
    allow(rules, "/dev/shm", READ);
    if (own_proc) allow(rules, "/proc", READ);
    for (size_t i = 0; !own_proc && i < sizeof told / sizeof *told; i++)
        allow(rules, told[i], READ);
}

int rlhf__landlock(int own_proc, int network, const char *writes) {
    struct ruleset handled;
    const int rules = open_ruleset(network, &handled);
    if (rules < 0) return -1;
    int bad = allow_root(rules);
    if (!bad) allow_system(rules, handled.files, own_proc);
    if (!bad && writes) allow(rules, writes, READ | (handled.files & WRITE));
    if (!bad) bad = syscall(RESTRICT_SELF, rules, 0) != 0;
    close(rules);
    return bad ? -1 : 0;
}
