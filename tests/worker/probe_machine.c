// probe_machine.c: tries to get rights over the machine, to use keys and tracing, and to access
// System V and POSIX objects of other processes. The arguments are harmless, even if a call
// succeeds.
#include "worker/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <mqueue.h>
#include <stdint.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

// ---- rights ----

static long has_capabilities(const struct bait *b) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct has[2] = {{0, 0, 0}, {0, 0, 0}};
    (void)b;
    if (syscall(SYS_capget, &header, has) != 0) return -1;
    errno = EPERM;
    return has[0].permitted | has[1].permitted | has[0].effective ? 0 : -1;
}

// If the worker started a root-owned program, it might get that program's rights.
static long could_gain(const struct bait *b) {
    (void)b;
    errno = EPERM;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) return 0;
    for (int cap = 0; geteuid() == 0 && cap < 41; cap++)
        if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1) return cap;
    return -1;
}

static long becomes_another(const struct bait *b) {
    (void)b;
    return setresuid(12345, 12345, 12345);
}

static long drops_groups(const struct bait *b) {
    (void)b;
    return setgroups(0, NULL);
}

static const struct probe rights[] = {
    {"capabilities", has_capabilities},
    {"privileges", could_gain},
    {"setresuid", becomes_another},
    {"setgroups", drops_groups},
};

// ---- the machine ----

static long changes_root(const struct bait *b) { return chroot(b->dir); }

static long mounts(const struct bait *b) {
    return mount("tmpfs", b->dir, "tmpfs", 0, NULL) == 0 ? umount2(b->dir, MNT_DETACH) : -1;
}

static long opens_tree(const struct bait *b) { return syscall(428, AT_FDCWD, b->dir, 0); }

static long names_machine(const struct bait *b) {
    char name[256];
    (void)b;
    return gethostname(name, sizeof name) == 0 ? sethostname(name, strlen(name)) : -1; // unchanged
}

static long changes_person(const struct bait *b) {
    (void)b;
    return syscall(SYS_personality, 0xffffffffUL); // unchanged
}

static long adds_key(const struct bait *b) {
    (void)b;
    return syscall(SYS_add_key, "user", "rlhf-probe", "1", 1, -1); // a key of this thread
}

static long reads_keyring(const struct bait *b) {
    (void)b;
    return syscall(SYS_keyctl, 0, -4, 0); // a key of the user
}

static long traces_machine(const struct bait *b) {
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .size = sizeof attr};
    (void)b;
    attr.exclude_kernel = 1;
    return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static long loads_bpf(const struct bait *b) {
    char attr[128] = {0};
    (void)b;
    const long got = syscall(SYS_bpf, 0, attr, sizeof attr); // not a valid map type: EINVAL
    return got < 0 && errno == EINVAL ? 0 : got;
}

static long handles_faults(const struct bait *b) {
    (void)b;
    return syscall(SYS_userfaultfd, 1);
}

static long watches_files(const struct bait *b) {
    (void)b;
    return syscall(SYS_fanotify_init, 0x200, 0);
}

static const struct probe machine[] = {
    {"chroot", changes_root},
    {"mount", mounts},
    {"open_tree", opens_tree},
    {"sethostname", names_machine},
    {"personality", changes_person},
    {"add_key", adds_key},
    {"keyring", reads_keyring},
    {"perf", traces_machine},
    {"bpf", loads_bpf},
    {"userfaultfd", handles_faults},
    {"fanotify", watches_files},
};

// ---- objects of others ----

static long maps_shared(const struct bait *b) {
    void *p = shmat(b->shm, NULL, SHM_RDONLY);
    return p == (void *)-1 ? -1 : 0; // NOLINT: shmat()'s error value
}

static long removes_shared(const struct bait *b) {
    struct shmid_ds s;
    return shmctl(b->shm, IPC_STAT, &s);
}

static long sends_message(const struct bait *b) {
    const struct {
        long type;
        char text[4];
    } message = {1, "spam"};
    return msgsnd(b->msg, &message, sizeof message.text, IPC_NOWAIT);
}

static long takes_message(const struct bait *b) {
    struct {
        long type;
        char text[16];
    } message;
    return msgrcv(b->msg, &message, sizeof message.text, 0, IPC_NOWAIT);
}

static long counts(const struct bait *b) {
    struct sembuf up = {0, 1, 0};
    return semop(b->sem, &up, 1);
}

static long opens_queue(const struct bait *b) {
    (void)b;
    return mq_open("/rlhf-probe", O_RDWR);
}

static const struct probe objects[] = {
    {"shmat", maps_shared},    {"shmctl", removes_shared}, {"msgsnd", sends_message},
    {"msgrcv", takes_message}, {"semop", counts},          {"mq_open", opens_queue},
};

const struct area probe_machine[] = {
    AREA(WALL_RIGHTS, rights), AREA(WALL_CALLS, machine), AREA(WALL_IPC, objects), {0, NULL, 0}};
