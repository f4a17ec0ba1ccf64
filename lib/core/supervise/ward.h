// ward.h: the host's side of foreign code: it starts a warden (warden.h) from the program's own
// file, gives it orders, and ends it with everything that the code has started.
#ifndef RLHF_SUPERVISE_WARD_H
#define RLHF_SUPERVISE_WARD_H

#include <sys/types.h>

// A warden is started with descriptors 0 to RLHF__WARD_ORDERS.
enum { RLHF__WARD_ORDERS = 7, RLHF__WARD_FILES = RLHF__WARD_ORDERS + 1 };

struct rlhf__ward {
    pid_t pid;  // of the warden; 0: it has ended
    int orders; // our end; -1 = none
};

// A copy of fd at or above RLHF__WARD_FILES, as rlhf__ward_start needs it in `given`; closes fd. -1
// if fd is -1, or on failure. [any]
int rlhf__ward_file(int fd);

// Start `program`, which must call rlhf__warden, in a new session, with default signals and without
// other files. given[i] becomes its descriptor i, -1 = closed; the descriptor of its orders is
// created here. All of `given` are closed. env NULL: the environment of this process. Returns 0, or
// an errno. [any]
int rlhf__ward_start(struct rlhf__ward *w, const char *program, char *const *argv, char *const *env,
                     int given[RLHF__WARD_FILES]);

// RLHF__WARDEN_WAKE or RLHF__WARDEN_REST. [any]
void rlhf__ward_order(const struct rlhf__ward *w, char order);

// 1 if the warden has ended but has not been reaped. [any]
int rlhf__ward_over(const struct rlhf__ward *w);

// End the warden and everything that the code has started, after `patience` seconds in which it may
// end by itself. Returns 1 if it did, with its wait status; processes that it left behind are ended
// too. [any]
int rlhf__ward_end(struct rlhf__ward *w, double patience, int *status);

#endif
