// warden.h: the supervisor of foreign code: a process between the host and that code. It forks the
// work, behind walls or not, and ends with everything that the work started when the work ends,
// when it is told to (SIGTERM) or when the host is gone. Its own wait status is the work's.
//
// It has a session of its own, and the work in it a process group of its own. It obeys the host's
// orders: between calls it stops everything that the work started (SIGSTOP), and looks every CHECK
// seconds whether all of it rests. What does not, because something of it has SIGCONT sent to it,
// is ended the third time: SIGXCPU is then the wait status.
//
// Behind walls with a PID namespace there is one process more, the first of it: when that ends, the
// kernel ends all others in there. Behind walls without one the list of system calls keeps them all
// in one process group, which the kernel ends at once, however fast they fork. In all cases the
// warden adopts what is left beside that and ends it.
#ifndef RLHF_SUPERVISE_WARDEN_H
#define RLHF_SUPERVISE_WARDEN_H

#include <stdint.h>

// Orders: a byte each. Everything that the work started stops until the next RLHF__WARDEN_WAKE.
enum { RLHF__WARDEN_REST = 'r', RLHF__WARDEN_WAKE = 'w' };

struct rlhf__warden_rules {
    long host;       // the process that started this one
    int32_t walls;   // 1: in namespaces of its own (confine.h), as far as the kernel has them
    int32_t network; // 1: behind walls it may use the network all the same
    int32_t orders;  // the socket that orders come from, which the warden alone keeps; -1 = none
    int32_t reserved;
};

// Run work(arg, spaces) in a child of this process; its result is the child's exit status. spaces:
// what rlhf__confine is to know. All files of this process but `orders` are the child's. Never
// returns. [main]
_Noreturn void rlhf__warden(const struct rlhf__warden_rules *rules,
                            int (*work)(void *arg, unsigned spaces), void *arg);

#endif
