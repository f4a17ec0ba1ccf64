// seccomp.c: the system calls that a worker may not make; see confine.h. What is on the list fails
// with EPERM; clone3 with ENOSYS, as its flags cannot be looked at, so that libc takes clone.
//
// It is a list of what is refused: a reward is anybody's code, and which calls its libraries make
// is not known. What rules the machine, looks into other processes or goes around landlock is on
// it.
#include "worker/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

#ifdef ARCH

static const int refused[] = {
#ifndef RLHF_SANITIZED // the leak checker stops its own threads by it
    SYS_ptrace,
#endif
    SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_mount, SYS_umount2, SYS_pivot_root,
    SYS_chroot, SYS_swapon, SYS_swapoff, SYS_reboot, SYS_kexec_load, SYS_init_module,
    SYS_finit_module, SYS_delete_module, SYS_bpf, SYS_perf_event_open, SYS_keyctl, SYS_add_key,
    SYS_request_key, SYS_setns, SYS_unshare, SYS_userfaultfd, SYS_open_by_handle_at, SYS_quotactl,
    SYS_acct, SYS_settimeofday, SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname,
    SYS_setdomainname, SYS_vhangup, SYS_syslog, SYS_personality, SYS_fanotify_init, SYS_mknodat,
    SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr,
    SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_utimensat,
#ifdef SYS_chmod
    SYS_chmod, SYS_chown, SYS_lchown, SYS_mknod, SYS_utime, SYS_utimes, SYS_futimesat, SYS_iopl,
    SYS_ioperm, SYS_modify_ldt,
#endif
    // By their numbers, which are the same everywhere: newer than some headers.
    424,      // pidfd_send_signal
    425, 426, // io_uring_setup, io_uring_enter
    427,      // io_uring_register
    428, 429, // open_tree, move_mount
    430, 431, // fsopen, fsconfig
    432, 433, // fsmount, fspick
    438,      // pidfd_getfd
    440,      // process_madvise
    442,      // mount_setattr
    448,      // process_mrelease
    452,      // fchmodat2
};

enum { N_REFUSED = sizeof refused / sizeof *refused, MOST = 2 * N_REFUSED + 80 };

struct program {
    struct sock_filter op[MOST];
    unsigned short n;
};

static void emit(struct program *p, struct sock_filter op) {
    if (p->n < MOST) p->op[p->n++] = op;
}

static void load(struct program *p, size_t at) {
    emit(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)at));
}

static void give(struct program *p, uint32_t what) {
    emit(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what));
}

// Return `what` when the loaded word is v.
static void give_if(struct program *p, uint32_t v, uint32_t what) {
    emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, v, 0, 1));
    give(p, what);
}

static size_t arg(int i) { return offsetof(struct seccomp_data, args) + 8 * (size_t)i; } // low half

#define REFUSE(e) (SECCOMP_RET_ERRNO | ((uint32_t)(e)&SECCOMP_RET_DATA))

// The call `number` only where its argument i is v, or w.
static void only(struct program *p, int number, int i, uint32_t v, uint32_t w) {
    emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 6));
    load(p, arg(i));
    give_if(p, v, SECCOMP_RET_ALLOW);
    give_if(p, w, SECCOMP_RET_ALLOW);
    give(p, REFUSE(EPERM));
}

// The call `number` only where no bit of mask is set in its argument i.
static void without(struct program *p, int number, int i, uint32_t mask) {
    emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 4));
    load(p, arg(i));
    emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, mask, 0, 1));
    give(p, REFUSE(EPERM));
    give(p, SECCOMP_RET_ALLOW);
}

// Without a PID namespace: to itself and its group alone.
static void only_own_signals(struct program *p) {
    const uint32_t own = (uint32_t)getpid();
    only(p, SYS_kill, 0, own, 0);
    only(p, SYS_tgkill, 0, own, own);
    only(p, SYS_rt_sigqueueinfo, 0, own, own);
    only(p, SYS_rt_tgsigqueueinfo, 0, own, own);
    give_if(p, SYS_tkill, REFUSE(EPERM));
}

static void write_program(struct program *p, int in_space, int network) {
    const uint32_t spaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS |
                            CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    load(p, offsetof(struct seccomp_data, arch));
    emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
    give(p, SECCOMP_RET_KILL_PROCESS);
    load(p, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
    emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1)); // x32
    give(p, REFUSE(ENOSYS));
#endif
    for (size_t i = 0; i < N_REFUSED; i++)
        give_if(p, (uint32_t)refused[i], REFUSE(EPERM));
    give_if(p, 435, REFUSE(ENOSYS)); // clone3
    if (!network) give_if(p, SYS_socket, REFUSE(EACCES));
    without(p, SYS_clone, 0, spaces);
    only(p, SYS_prlimit64, 0, 0, (uint32_t)getpid());
    if (!in_space) only_own_signals(p);
    give(p, SECCOMP_RET_ALLOW);
}

int rlhf__seccomp(int in_space, int network) {
    struct program p = {.n = 0};
    write_program(&p, in_space, network);
    const struct sock_fprog all = {p.n, p.op};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0);
}

#else

int rlhf__seccomp(int in_space, int network) {
    (void)in_space;
    (void)network;
    errno = ENOSYS;
    return -1;
}

#endif
