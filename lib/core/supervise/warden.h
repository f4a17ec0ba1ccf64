// warden.h: the supervisor of foreign code. The warden is a process between the host and that code.
// It forks another process, called the work, which runs the foreign code and may be confined. When
// the work ends, when the host ends, or on SIGTERM, the warden ends everything that the work has
// started. Finally the warden itself ends, with the wait status of the work.
//
// The warden leads a new session, in which the work leads a new process group. Between calls, the
// host orders the warden to suspend (SIGSTOP) all processes that the work started. Every CHECK
// seconds, the warden checks that these processes are still suspended. If it finds them running for
// the third time, it ends them and then itself, with the signal SIGXCPU.
//
// With a PID namespace there is one more process, the first one in the namespace. When it ends, the
// kernel kills all other processes of the namespace. Without a PID namespace, the seccomp filter
// keeps confined work in one process group, and one kill() ends that whole group, however fast the
// work forks. Unconfined work may leave its group. The warden adopts and ends the processes that
// do.
#ifndef RLHF_CORE_SUPERVISE_WARDEN_H
#define RLHF_CORE_SUPERVISE_WARDEN_H

#include <stdint.h>
#include <sys/types.h>

// ---- in the warden ----

// Orders, one byte each. RLHF__WARDEN_REST suspends everything that the work started, until the
// next RLHF__WARDEN_WAKE.
enum { RLHF__WARDEN_REST = 'r', RLHF__WARDEN_WAKE = 'w' };

struct rlhf__warden_rules {
    long host;       // the process that started this one
    int32_t walls;   // 1: the work runs in new namespaces (confine.h), as far as the kernel allows
    int32_t network; // 1: the work may use the network although it is confined
    int32_t orders;  // the socket that orders arrive on; only the warden keeps it; -1 = none
    const char *writes; // the directory in which confined work may write; NULL = none
};

// Run work(arg, spaces) in a child process. The result of `work` is the child's exit status. If
// `work` calls rlhf__confine, it must pass `spaces` to that function. The child inherits all open
// files of this process except `orders`. Never returns. [main]
_Noreturn void rlhf__warden(const struct rlhf__warden_rules *rules,
                            int (*work)(void *arg, unsigned spaces), void *arg);

// ---- in the host: starting a warden, giving it orders, ending it ----

// A warden is started with the descriptors 0 to RLHF__WARD_ORDERS.
enum { RLHF__WARD_ORDERS = 7, RLHF__WARD_FILES = RLHF__WARD_ORDERS + 1 };

struct rlhf__ward {
    pid_t pid;  // of the warden; 0 after it has ended
    int orders; // our end of the socket; -1 = none
};

// Move `fd` to a number of at least RLHF__WARD_FILES, as rlhf__ward_start requires of the
// descriptors in `given`. Returns the new descriptor and closes `fd`. Returns -1 on failure, or if
// `fd` is -1. [any]
int rlhf__ward_file(int fd);

// Start `program` in a new session with default signals. The program must call
// rlhf__ward_close_others at once, and then rlhf__warden. It inherits given[i] as descriptor i; if
// given[i] is -1, descriptor i is closed. It also inherits the socket on which orders arrive, which
// this function creates. This function
// closes all descriptors in `given`. If `env` is NULL, the program gets the environment of this
// process. Returns 0 or an errno. [any]
int rlhf__ward_start(struct rlhf__ward *w, const char *program, char *const *argv, char *const *env,
                     int given[RLHF__WARD_FILES]);

// Close all files of this process but the descriptors 0 to RLHF__WARD_ORDERS. It may have inherited
// files that a thread of the host had open. [main]
void rlhf__ward_close_others(void);

// Send the order RLHF__WARDEN_WAKE or RLHF__WARDEN_REST. [any]
void rlhf__ward_order(const struct rlhf__ward *w, char order);

// 1 if the warden has ended but has not been reaped. [any]
int rlhf__ward_over(const struct rlhf__ward *w);

// End the warden and everything that the foreign code has started. The warden first has `patience`
// seconds to end by itself. If it ends in that time, returns 1 and sets *status to its wait status.
// Otherwise ends the warden and returns 0. In both cases, the remaining processes of the foreign
// code are ended too. [any]
int rlhf__ward_end(struct rlhf__ward *w, double patience, int *status);

#endif
