// ward.h: foreign code as the host has it: a warden (warden.h) that was started from the program's
// own file, and through it everything that the code has started.
#ifndef RLHF_SUPERVISE_WARD_H
#define RLHF_SUPERVISE_WARD_H

#include <sys/types.h>

// The descriptors that a warden is started with are 0 up to this one.
enum { RLHF__WARD_ORDERS = 7, RLHF__WARD_FILES = RLHF__WARD_ORDERS + 1 };

struct rlhf__ward {
    pid_t pid;  // of the warden; 0: it has ended
    int orders; // our end; -1 = none
};

// A copy of fd above RLHF__WARD_FILES, as `given` of rlhf__ward_start wants it; closes fd. -1 when
// fd is -1, or on failure. [any]
int rlhf__ward_file(int fd);

// Start `program`, which is to call rlhf__warden, in a session of its own, with normal signals and
// without other files. given[i]: what is its descriptor i, -1 = nothing; that of its orders is made
// here. All of `given` are closed. env NULL: the environment of this process. Returns 0, or an
// errno. [any]
int rlhf__ward_start(struct rlhf__ward *w, const char *program, char *const *argv, char *const *env,
                     int given[RLHF__WARD_FILES]);

// RLHF__WARDEN_WAKE or RLHF__WARDEN_REST. [any]
void rlhf__ward_order(const struct rlhf__ward *w, char order);

// 1 = its warden has ended; it is still to be waited for. [any]
int rlhf__ward_over(const struct rlhf__ward *w);

// End it with all that the code has started, after `patience` seconds in which it may end by
// itself. Returns 1 when it did, with its wait status; what it left is ended all the same. [any]
int rlhf__ward_end(struct rlhf__ward *w, double patience, int *status);

#endif
