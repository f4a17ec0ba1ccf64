// probe_files.c: tries to write, create, move and remove the user's files, and to change their
// modes and attributes.
#include "worker/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *in(const struct bait *b, const char *name, char out[600]) {
    snprintf(out, 600, "%s/%s", b->dir, name);
    return out;
}

static int reading(const struct bait *b) { return open(b->file, O_RDONLY | O_CLOEXEC); }

// ---- contents ----

static long writes(const struct bait *b) { return open(b->file, O_WRONLY); }
static long appends(const struct bait *b) { return open(b->file, O_WRONLY | O_APPEND); }
static long cuts(const struct bait *b) { return truncate(b->file, 1); }
static long empties(const struct bait *b) { return open(b->file, O_RDONLY | O_TRUNC); }
static long empties_3(const struct bait *b) { return open(b->file, O_ACCMODE | O_TRUNC); }

static long creates(const struct bait *b) {
    char path[600];
    return open(in(b, "new", path), O_CREAT | O_WRONLY, 0600);
}

static long makes_temporary(const struct bait *b) { return open(b->dir, O_TMPFILE | O_RDWR, 0600); }

static long writes_openat2(const struct bait *b) {
    const uint64_t how[3] = {O_WRONLY, 0, 0};
    return syscall(437, AT_FDCWD, b->file, how, sizeof how);
}

static long writes_io_uring(const struct bait *b) {
    uint32_t parameters[30] = {0};
    (void)b;
    return syscall(425, 1, parameters);
}

static long writes_shm(const struct bait *b) {
    (void)b;
    const int fd = shm_open("/rlhf-probe", O_CREAT | O_RDWR, 0600);
    if (fd >= 0) shm_unlink("/rlhf-probe");
    return fd;
}

static long writes_proc(const struct bait *b) {
    (void)b;
    return open("/proc/self/oom_score_adj", O_WRONLY);
}

// Opens the control-group file by which a process could move itself out of its group.
static long leaves_cgroup(const struct bait *b) {
    (void)b;
    const int fd = open("/sys/fs/cgroup/cgroup.procs", O_WRONLY);
    return fd >= 0 || errno != ENOENT ? fd : open("/sys/fs/cgroup/unified/cgroup.procs", O_WRONLY);
}

static long writes_program(const struct bait *b) {
    char path[600];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    (void)b;
    if (n < 0) return -1;
    path[n] = '\0';
    strcat(path, ".probe");
    const int fd = open(path, O_CREAT | O_WRONLY, 0600); // next to the file
    if (fd >= 0) unlink(path);
    return fd;
}

// ---- names ----

static long removes(const struct bait *b) {
    char path[600];
    return unlink(in(b, "file2", path));
}

static long renames(const struct bait *b) {
    char from[600], to[600];
    return rename(in(b, "file3", from), in(b, "file4", to));
}

static long exchanges(const struct bait *b) {
    char path[600];
    return renameat2(AT_FDCWD, b->file, AT_FDCWD, in(b, "file5", path), RENAME_EXCHANGE);
}

static long links(const struct bait *b) {
    char path[600];
    return link(b->file, in(b, "link", path));
}

static long symlinks(const struct bait *b) {
    char path[600];
    return symlink("file", in(b, "symlink", path));
}

static long makes_directory(const struct bait *b) {
    char path[600];
    return mkdir(in(b, "directory", path), 0700);
}

static long removes_directory(const struct bait *b) {
    char path[600];
    return rmdir(in(b, "sub", path));
}

static long makes_fifo(const struct bait *b) {
    char path[600];
    return mkfifo(in(b, "fifo", path), 0600);
}

static long makes_node(const struct bait *b) {
    char path[600];
    return mknod(in(b, "node", path), S_IFREG | 0600, 0);
}

static const struct probe changing[] = {
    {"write", writes},
    {"append", appends},
    {"truncate", cuts},
    {"open_trunc", empties},
    {"open_trunc_3", empties_3},
    {"create", creates},
    {"tmpfile", makes_temporary},
    {"openat2", writes_openat2},
    {"shm_open", writes_shm},
    {"proc_write", writes_proc},
    {"leave_cgroup", leaves_cgroup},
    {"beside_program", writes_program},
    {"unlink", removes},
    {"rename", renames},
    {"exchange", exchanges},
    {"link", links},
    {"symlink", symlinks},
    {"mkdir", makes_directory},
    {"rmdir", removes_directory},
    {"mkfifo", makes_fifo},
};

// ---- modes and attributes ----

static long sets_mode(const struct bait *b) { return chmod(b->file, 0777); }
static long sets_mode_fd(const struct bait *b) { return fchmod(reading(b), 0777); }

static long sets_mode_2(const struct bait *b) {
    return syscall(452, AT_FDCWD, b->file, 0777, 0); // fchmodat2
}

static long sets_owner(const struct bait *b) { return chown(b->file, geteuid(), getegid()); }

static long sets_times(const struct bait *b) {
    const struct timespec past[2] = {{1, 0}, {1, 0}};
    return utimensat(AT_FDCWD, b->file, past, 0);
}

static long sets_times_fd(const struct bait *b) {
    const struct timespec past[2] = {{1, 0}, {1, 0}};
    return futimens(reading(b), past);
}

static long sets_xattr(const struct bait *b) { return setxattr(b->file, "user.probe", "1", 1, 0); }

static long sets_xattr_fd(const struct bait *b) {
    return fsetxattr(reading(b), "user.probe", "1", 1, 0);
}

static long sets_xattr_at(const struct bait *b) {
    const struct {
        uint64_t value;
        uint32_t size, flags;
    } args = {(uint64_t)(uintptr_t) "1", 1, 0};
    return syscall(463, AT_FDCWD, b->file, 0, "user.probe", &args, sizeof args);
}

// The error "no such attribute" shows that the caller may remove attributes, so it counts as
// success.
static long removed(long got) { return got < 0 && errno == ENODATA ? 0 : got; }

static long removes_xattr(const struct bait *b) {
    return removed(removexattr(b->file, "user.nothing"));
}

static long removes_xattr_at(const struct bait *b) {
    return removed(syscall(466, AT_FDCWD, b->file, 0, "user.nothing"));
}

static long sets_flags(const struct bait *b) {
    int flags = 0x40; // not to be dumped
    return ioctl(reading(b), FS_IOC_SETFLAGS, &flags);
}

static long sets_fsxattr(const struct bait *b) {
    struct fsxattr x = {.fsx_xflags = FS_XFLAG_NODUMP};
    return ioctl(reading(b), FS_IOC_FSSETXATTR, &x);
}

static long sets_file_attr(const struct bait *b) {
    const uint64_t attr[3] = {FS_XFLAG_NODUMP, 0, 0};
    return syscall(469, AT_FDCWD, b->file, attr, sizeof attr, 0);
}

static long opens_tree_attr(const struct bait *b) {
    return syscall(467, AT_FDCWD, b->file, 0, NULL, 0);
}

// Locks a run's file. This would make the run appear to be in use.
static long locks(const struct bait *b) { return flock(reading(b), LOCK_EX | LOCK_NB); }

static long takes_lease(const struct bait *b) { return fcntl(reading(b), F_SETLEASE, F_RDLCK); }

// System calls and ioctls that landlock does not control.
static const struct probe attributes[] = {
    {"chmod", sets_mode},
    {"fchmod", sets_mode_fd},
    {"fchmodat2", sets_mode_2},
    {"chown", sets_owner},
    {"utimensat", sets_times},
    {"futimens", sets_times_fd},
    {"setxattr", sets_xattr},
    {"fsetxattr", sets_xattr_fd},
    {"setxattrat", sets_xattr_at},
    {"removexattr", removes_xattr},
    {"removexattrat", removes_xattr_at},
    {"setflags", sets_flags},
    {"fssetxattr", sets_fsxattr},
    {"file_setattr", sets_file_attr},
    {"open_tree_attr", opens_tree_attr},
    {"lease", takes_lease},
    {"flock", locks},
    {"io_uring", writes_io_uring},
    {"mknod", makes_node},
};

const struct area probe_files[] = {
    AREA(WALL_FILES, changing), AREA(WALL_CALLS, attributes), {0, NULL, 0}};
