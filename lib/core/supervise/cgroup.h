// cgroup.h: a worker's control group (cgroup v2). It limits the memory of the worker together with
// everything that the worker starts. The host makes the group, the warden enters it before it
// forks, and the host removes it when the worker has ended.
//
// A group that contains processes cannot give controllers to groups below it. So the worker's group
// is made next to the host's group, below the same parent; if the host is in the root of the
// hierarchy, it is made below the root. This needs permission to write to the parent, and the
// memory controller in the parent's cgroup.subtree_control. The host changes only groups that it
// made.
#ifndef RLHF_SUPERVISE_CGROUP_H
#define RLHF_SUPERVISE_CGROUP_H

#include <stdint.h>

struct rlhf__cgroup {
    char *dir; // of the group, owned; NULL: no group
    int fd;    // of dir; while this process lives, its lock keeps others from removing dir
};

// Whether processes of a group were killed because memory ran out, and which limit was the cause.
enum rlhf__cgroup_end {
    RLHF__CGROUP_FINE,   // not for lack of memory
    RLHF__CGROUP_OWN,    // the group reached its bound
    RLHF__CGROUP_MACHINE // a group above it reached its bound, or the machine ran out of memory
};

// Make a group that may use at most `bytes` of memory, none of it swapped. If the parent has the
// pids controller, the group may have at most RLHF__MOST_PROCESSES processes. Also removes groups
// that hosts of the same user left in the parent when they were killed. root is ""; in tests it is
// a directory that contains a proc/. Returns 0, or -1 with *out zeroed if a group cannot be made.
// [main]
int rlhf__cgroup_make(const char *root, uint64_t bytes, struct rlhf__cgroup *out);

// Put the calling process into the group whose directory is `dir` ("": no group). Returns the
// limits of that group as bits of enum rlhf__confined (RLHF__CONFINED_GROUP, _GROUP_COUNT), or 0
// without limits. [main]
unsigned rlhf__cgroup_enter(const char *dir);

// Kill the processes left in the group and remove it. Returns why the kernel had killed processes
// of the group before this call, if it had. Accepts a zeroed group. [main]
enum rlhf__cgroup_end rlhf__cgroup_close(struct rlhf__cgroup *g);

#endif
