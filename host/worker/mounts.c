// mounts.c: a worker's private view of the file system; see confine.h. All mounts are read-only,
// /dev omits terminals and disks, and /proc shows only the PID namespace's processes.
#include "worker/confine.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// ---- /dev ----

static const char *const devices[] = {"null", "zero", "full", "random", "urandom"};
enum { N_DEVICES = sizeof devices / sizeof *devices };

// Mount what was opened at `from` at `to`, which is not there yet.
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

// ---- /proc ----

// In a container that hides parts of /proc the kernel may refuse one with all of them.
static unsigned own_proc(void) {
    const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY;
    if (mount("proc", "/proc", "proc", flags, NULL) == 0) return RLHF__CONFINED_SIGHT;
    if (mount("proc", "/proc", "proc", flags, "subset=pid") == 0) return RLHF__CONFINED_SIGHT;
    return 0;
}

// ---- all ----

// mount_setattr(), which Debian 12's libc does not have; Linux 5.12.
struct mount_change {
    uint64_t set, clear, propagation, user_fd;
};
enum { MOUNT_SETATTR = 442, READ_ONLY = 1, NO_SUID = 2, NO_DEVICES = 4, RECURSIVE = 0x8000 };

static int change(const char *path, unsigned how, uint64_t set, uint64_t clear) {
    const struct mount_change what = {.set = set, .clear = clear};
    return (int)syscall(MOUNT_SETATTR, AT_FDCWD, path, how, &what, sizeof what);
}

// Makes all mounts read-only; devices open only where own_dev() has put them.
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

unsigned rlhf__mounts(void) {
    if (unshare(CLONE_NEWNS) != 0) return 0;
    // Later mounts outside become visible here; mounts made here stay invisible outside.
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0) return 0;
    unsigned in_force = own_dev();
    in_force |= own_proc();
    return in_force | read_only(in_force & RLHF__CONFINED_DEVICES);
}
