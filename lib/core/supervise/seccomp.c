// seccomp.c: refuses system calls that a worker may not make; see confine.h. Most refused calls
// fail with EPERM, but socket calls, and open() with O_TRUNC for reading, fail with EACCES, and
// ioctl() fails with ENOTTY. Calls for which programs have an older alternative fail with ENOSYS,
// so that the programs use the alternative.
//
// A reward can be any code, and we do not know in advance which calls its libraries make. So most
// of this file is a list of refused calls, and other calls are allowed. The refused calls
// administer the machine, reach other processes, or change files in ways that landlock does not
// see. Three other lists name what is allowed: ioctls, kinds of sockets, and the numbers of newer
// system calls. A call whose number is higher than the last one that we have examined fails with
// ENOSYS.
#include "supervise/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
enum { OLDER_END = 337 }; // the number after uprobe
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
enum { OLDER_END = 295 }; // the number after kexec_file_load
#endif

#ifdef ARCH

// From 424 on, call numbers are the same on every machine. 471 is rseq_slice_yield of Linux 7.0.
enum { NEWER = 424, NEWER_END = 472 };

static const int refused[] = {
#ifndef __SANITIZE_ADDRESS__ // because its leak checker stops its own threads by ptrace
    SYS_ptrace,
#endif
    // Calls that reach other processes or administer the machine.
    SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_get_robust_list, SYS_mount,
    SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_swapon, SYS_swapoff, SYS_reboot, SYS_kexec_load,
    SYS_kexec_file_load, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_bpf,
    SYS_perf_event_open, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_setns, SYS_unshare,
    SYS_userfaultfd, SYS_open_by_handle_at, SYS_quotactl, SYS_acct, SYS_settimeofday,
    SYS_clock_settime, SYS_clock_adjtime, SYS_adjtimex, SYS_sethostname, SYS_setdomainname,
    SYS_vhangup, SYS_syslog, SYS_personality, SYS_fanotify_init, SYS_lookup_dcookie, SYS_nfsservctl,
    // Calls that change the modes, owners, times or attributes of files, or take the host's locks
    // of directories (flock). Also truncate(), which landlock does not see before Linux 6.2.
    SYS_mknodat, SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_setxattr, SYS_lsetxattr,
    SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, SYS_utimensat, SYS_truncate,
    SYS_flock,
#ifdef SYS_chmod
    SYS_chmod, SYS_chown, SYS_lchown, SYS_mknod, SYS_utime, SYS_utimes, SYS_futimesat, SYS_iopl,
    SYS_ioperm, SYS_modify_ldt, SYS_uselib,
#endif
    // Newer calls, listed by number because the installed headers may be older.
    424,           // pidfd_send_signal: the filter cannot see whom it signals
    425, 426, 427, // io_uring: makes calls that no filter sees
    428, 429, 430, // open_tree, move_mount, fsopen
    431, 432, 433, // fsconfig, fsmount, fspick
    438,           // pidfd_getfd: files of other processes
    440,           // process_madvise: memory of other processes
    442, 443,      // mount_setattr, quotactl_fd
    448,           // process_mrelease
    452,           // fchmodat2
    460,           // lsm_set_self_attr: does what writing to /proc/self/attr does
    463, 466, 467, // setxattrat, removexattrat, open_tree_attr
    469,           // file_setattr
    470,           // listns: namespaces of other processes
};
// Calls 424 to 471 are refused except the following:
//   434 pidfd_open lets a program wait for a child; sending signals through it is refused.
//   436 close_range, 439 faccessat2, 441 epoll_pwait2, 449 futex_waitv, 454 to 456 futex_wake,
//   futex_wait, futex_requeue and 471 rseq_slice_yield are newer forms of common calls.
//   444 to 446 landlock_* can only remove more rights.
//   447 memfd_secret, 450 set_mempolicy_home_node, 453 map_shadow_stack and 462 mseal affect only
//   the memory of the calling process.
//   451 cachestat reads statistics of open files.
//   457 statmount, 458 listmount, 459 lsm_get_self_attr and 461 lsm_list_modules report the same as
//   /proc/self.
//   464 getxattrat, 465 listxattrat and 468 file_getattr read attributes of readable files.
//   435 clone3 and 437 openat2 fail with ENOSYS (see below).

// System V shared memory, queues and semaphores, and POSIX queues. Some of these belong to the
// whole machine, and others use memory that no limit counts.
static const int shared_ipc[] = {
    SYS_shmget, SYS_shmat, SYS_shmctl, SYS_msgget,  SYS_msgsnd,    SYS_msgrcv,     SYS_msgctl,
    SYS_semget, SYS_semop, SYS_semctl, SYS_mq_open, SYS_mq_unlink, SYS_semtimedop,
};

// Refused if the worker has no network. socketpair needs no network and stays allowed.
static const int sockets[] = {SYS_socket, SYS_connect, SYS_bind,
                              SYS_listen, SYS_accept,  SYS_accept4};

// The allowed ioctls. All others are refused, in particular those that
//   change a terminal, type into it or take control of it (TIOCSTI, TIOCLINUX, TIOCSPGRP,
//       TIOCSCTTY, TCSETS, ...)
//   set attributes of files (FS_IOC_SETFLAGS, FS_IOC_FSSETXATTR)
//   choose which process gets signals (FIOSETOWN)
//   belong to drivers
static const uint32_t ioctls[] = {
    0x5450,     0x5451,     0x5421,     0x541b, // FIONCLEX, FIOCLEX, FIONBIO, FIONREAD
    0x5411,     0x5460,     0x0002,             // TIOCOUTQ, FIOQSIZE, FIGETBSZ
    0x5401,     0x802c542a, 0x5413,             // TCGETS, TCGETS2, TIOCGWINSZ
    0x540f,     0x5429,                         // TIOCGPGRP, TIOCGSID
    0xc020660b, 0x80086601, 0x801c581f,         // FIEMAP, FS_IOC_GETFLAGS, FS_IOC_FSGETXATTR
    0x8905,     0x8910,     0x8912,     0x8913, // SIOCATMARK, SIOCGIFNAME, ...CONF, ...FLAGS
    0x8915,     0x8919,     0x891b,     0x8921, // ...ADDR, ...BRDADDR, ...NETMASK, ...MTU
    0x8927,     0x8933,                         // ...HWADDR, ...INDEX
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

enum { MOST = 1024 };

struct program {
    struct sock_filter op[MOST];
    unsigned short n;
};

#define REFUSE(e) (SECCOMP_RET_ERRNO | ((uint32_t)(e)&SECCOMP_RET_DATA))

// ---- instructions ----

static void emit(struct program *p, struct sock_filter op) {
    if (p->n < MOST) p->op[p->n++] = op;
}

static void load(struct program *p, size_t at) {
    emit(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)at));
}

// Load the low half of argument `i`. Of an argument that is an int, the kernel uses only this half.
static void load_arg(struct program *p, int i) {
    load(p, offsetof(struct seccomp_data, args) + 8 * (size_t)i);
}

static void keep_bits(struct program *p, uint32_t mask) {
    emit(p, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
}

static void give(struct program *p, uint32_t what) {
    emit(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what));
}

// Return `what` if the loaded word is `v`.
static void give_if(struct program *p, uint32_t v, uint32_t what) {
    emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, v, 0, 1));
    give(p, what);
}

static void give_from(struct program *p, uint32_t from, uint32_t end, uint32_t what) {
    emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, from, 0, 2));
    emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, end, 1, 0));
    give(p, what);
}

static void give_list(struct program *p, const int *list, size_t n, uint32_t what) {
    for (size_t i = 0; i < n; i++)
        give_if(p, (uint32_t)list[i], what);
}

// The instructions between begin() and end() apply only to the call `number`. If none of them
// returns a result, the filter returns `otherwise`.
static size_t begin(struct program *p, int number) {
    emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 0));
    return p->n - (size_t)1;
}

static void end(struct program *p, size_t at, uint32_t otherwise) {
    give(p, otherwise);
    p->op[at].jf = (uint8_t)(p->n - at - 1);
}

// ---- calls whose arguments decide ----

// Allow the call `number` only if its argument `i` is `v` or `w`.
static void only(struct program *p, int number, int i, uint32_t v, uint32_t w) {
    const size_t at = begin(p, number);
    load_arg(p, i);
    give_if(p, v, SECCOMP_RET_ALLOW);
    give_if(p, w, SECCOMP_RET_ALLOW);
    end(p, at, REFUSE(EPERM));
}

// Without a PID namespace, calls that take a process id may act only on the caller. In calls that
// set priorities, the argument `who` is a process id only if argument 0 has a certain value.
static void only_itself(struct program *p) {
    static const int by_first[] = {SYS_sched_setaffinity, SYS_sched_setscheduler,
                                   SYS_sched_setparam,    SYS_sched_setattr,
                                   SYS_move_pages,        SYS_migrate_pages};
    const uint32_t own = (uint32_t)getpid();
    only(p, SYS_kill, 0, own, 0);
    only(p, SYS_tgkill, 0, own, own);
    only(p, SYS_rt_sigqueueinfo, 0, own, own);
    only(p, SYS_rt_tgsigqueueinfo, 0, own, own);
    give_if(p, SYS_tkill, REFUSE(EPERM));
    // No process may leave the worker's group or session, because the warden and the host use these
    // to end the worker. In another group, the worker's kill(0) would also reach foreign processes.
    give_if(p, SYS_setpgid, REFUSE(EPERM));
    give_if(p, SYS_setsid, REFUSE(EPERM));
    for (size_t i = 0; i < COUNT(by_first); i++)
        only(p, by_first[i], 0, 0, own);
    const int by_who[] = {SYS_setpriority, SYS_ioprio_set};
    for (size_t i = 0; i < COUNT(by_who); i++) {
        const size_t at = begin(p, by_who[i]);
        load_arg(p, 1);
        emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0));
        emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, own, 1, 0));
        give(p, REFUSE(EPERM));
        load_arg(p, 0);
        give_if(p, i == 0 ? 0 : 1, SECCOMP_RET_ALLOW); // PRIO_PROCESS, IOPRIO_WHO_PROCESS
        end(p, at, REFUSE(EPERM));
    }
}

static void some_ioctls(struct program *p) {
    const size_t at = begin(p, SYS_ioctl);
    load_arg(p, 1);
    for (size_t i = 0; i < COUNT(ioctls); i++)
        give_if(p, ioctls[i], SECCOMP_RET_ALLOW);
    end(p, at, REFUSE(ENOTTY));
}

// Refuse the fcntl commands that
//   choose which process gets signals (F_SETOWN, F_SETSIG, F_SETOWN_EX)
//   take a lease, for which other processes must wait (F_SETLEASE)
//   watch a directory (F_NOTIFY)
//   enlarge a pipe, whose memory no limit counts (F_SETPIPE_SZ)
static void some_fcntls(struct program *p) {
    static const uint32_t no[] = {8,    10,   15,    // F_SETOWN, F_SETSIG, F_SETOWN_EX
                                  1024, 1026, 1031}; // F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ
    const size_t at = begin(p, SYS_fcntl);
    load_arg(p, 1);
    for (size_t i = 0; i < COUNT(no); i++)
        give_if(p, no[i], REFUSE(EPERM));
    end(p, at, SECCOMP_RET_ALLOW);
}

// Refuse PR_SCHED_CORE, which can change the core scheduling of any process.
static void some_prctls(struct program *p) {
    const size_t at = begin(p, SYS_prctl);
    load_arg(p, 0);
    give_if(p, 62, REFUSE(EPERM));
    end(p, at, SECCOMP_RET_ALLOW);
}

// Refuse to open a file with O_TRUNC but without write access. The call would empty the file, and
// landlock does not see that before Linux 6.2.
static void no_emptying(struct program *p, int number, int flags) {
    const size_t at = begin(p, number);
    load_arg(p, flags);
    keep_bits(p, O_TRUNC | O_ACCMODE);
    give_if(p, O_TRUNC, REFUSE(EACCES));
    give_if(p, O_TRUNC | O_ACCMODE, REFUSE(EACCES));
    end(p, at, SECCOMP_RET_ALLOW);
}

// Allow only pairs of stream or seqpacket sockets, because the two sockets of such a pair can reach
// only each other. A datagram socket could send to any other socket by its path.
static void some_pairs(struct program *p) {
    const size_t at = begin(p, SYS_socketpair);
    load_arg(p, 0);
    emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0));
    give(p, REFUSE(EACCES));
    load_arg(p, 1);
    keep_bits(p, 0xf); // ignore SOCK_CLOEXEC and SOCK_NONBLOCK
    give_if(p, SOCK_STREAM, SECCOMP_RET_ALLOW);
    give_if(p, SOCK_SEQPACKET, SECCOMP_RET_ALLOW);
    end(p, at, REFUSE(EACCES));
}

// Refuse local (AF_UNIX) sockets even if the network is allowed. A session bus or a Docker daemon
// that listens on a local socket would execute any request that a process of the same user sends.
static void some_sockets(struct program *p) {
    const size_t at = begin(p, SYS_socket);
    load_arg(p, 0);
    give_if(p, AF_INET, SECCOMP_RET_ALLOW);
    give_if(p, AF_INET6, SECCOMP_RET_ALLOW);
    emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_NETLINK, 1, 0));
    give(p, REFUSE(EACCES));
    load_arg(p, 2);
    give_if(p, 0, SECCOMP_RET_ALLOW); // NETLINK_ROUTE, for reading the addresses of the interfaces
    end(p, at, REFUSE(EACCES));
}

// ---- all ----

static void write_program(struct program *p, int own_processes, int network) {
    const uint32_t spaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS |
                            CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    load(p, offsetof(struct seccomp_data, arch));
    emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0));
    give(p, SECCOMP_RET_KILL_PROCESS);
    load(p, offsetof(struct seccomp_data, nr));
    give_from(p, OLDER_END, NEWER, REFUSE(ENOSYS));
    give_from(p, NEWER_END, UINT32_MAX, REFUSE(ENOSYS)); // including the calls of x32
    give_list(p, refused, COUNT(refused), REFUSE(EPERM));
    give_if(p, 435, REFUSE(ENOSYS)); // clone3 and openat2: a filter cannot read their flags
    give_if(p, 437, REFUSE(ENOSYS));
    if (!network) give_list(p, sockets, COUNT(sockets), REFUSE(EACCES));
    give_list(p, shared_ipc, COUNT(shared_ipc), REFUSE(EPERM));
    if (network) some_sockets(p);
    some_pairs(p);
    some_ioctls(p);
    some_fcntls(p);
    some_prctls(p);
    no_emptying(p, SYS_openat, 2);
#ifdef SYS_open
    no_emptying(p, SYS_open, 1);
#endif
    const size_t at = begin(p, SYS_clone);
    load_arg(p, 0);
    keep_bits(p, spaces);
    give_if(p, 0, SECCOMP_RET_ALLOW);
    end(p, at, REFUSE(EPERM));
    only(p, SYS_prlimit64, 0, 0, (uint32_t)getpid());
    if (!own_processes) only_itself(p);
    give(p, SECCOMP_RET_ALLOW);
}

int rlhf__seccomp(int own_processes, int network) {
    struct program p = {.n = 0};
    write_program(&p, own_processes, network);
    const struct sock_fprog all = {p.n, p.op};
    if (p.n == MOST) return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0);
}

#else

int rlhf__seccomp(int own_processes, int network) {
    (void)own_processes;
    (void)network;
    errno = ENOSYS;
    return -1;
}

#endif
