// warden.h: the supervisor of foreign code: a process between the host and that code. It forks the
// work, confined or not. When the work ends, on SIGTERM, or when the host has ended, it ends
// everything that the work started and then itself, with the wait status of the work.
//
// It leads a new session, in which the work leads a new process group. It obeys the host's orders:
// between calls it stops everything that the work started (SIGSTOP) and checks every CHECK seconds
// that all of it stays stopped. If something sends SIGCONT to it, the tree is ended the third time,
// and the wait status is SIGXCPU.
//
// With a PID namespace there is one process more, the first one in it: when it ends, the kernel
// ends all others there. Confined work without a PID namespace is kept in one process group by the
// list of system calls, and the kernel ends a group at once, however fast it forks. In all cases
// the warden adopts remaining processes and ends them.
#ifndef RLHF_SUPERVISE_WARDEN_H
#define RLHF_SUPERVISE_WARDEN_H

#include <stdint.h>

// Orders: a byte each. Everything that the work started stops until the next RLHF__WARDEN_WAKE.
enum { RLHF__WARDEN_REST = 'r', RLHF__WARDEN_WAKE = 'w' };

struct rlhf__warden_rules {
    long host;       // the process that started this one
    int32_t walls;   // 1: in new namespaces (confine.h), as far as the kernel allows
    int32_t network; // 1: it may use the network although it is confined
    int32_t orders;  // the socket of the orders, which only the warden keeps open; -1 = none
    int32_t reserved;
};

// Run work(arg, spaces) in a child of this process; its result is the child's exit status. spaces:
// for rlhf__confine. The child inherits all files of this process but `orders`. Never returns.
// [main]
_Noreturn void rlhf__warden(const struct rlhf__warden_rules *rules,
                            int (*work)(void *arg, unsigned spaces), void *arg);

#endif
