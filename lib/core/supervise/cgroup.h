// cgroup.h: a worker's control group (cgroup v2). It limits the total memory of the worker and of
// everything that the worker starts. The host makes the group. The warden enters the group before
// it forks the worker. After the worker has ended, the host removes the group.
//
// A group that contains processes cannot pass controllers to groups below it. So the worker's group
// is made next to the host's group, below the same parent. If the host is in the root of the
// hierarchy, the worker's group is made below the root. To make the group, the host needs
// permission to write to the parent, and the parent's cgroup.subtree_control must have the memory
// controller. The host changes only groups that it made.
#ifndef RLHF_CORE_SUPERVISE_CGROUP_H
#define RLHF_CORE_SUPERVISE_CGROUP_H

#include <stdint.h>

struct rlhf__cgroup {
    char *dir; // directory of the group, owned; NULL if not created
    int fd;    // open descriptor of dir; its lock keeps others from removing dir
};

// Whether the kernel killed processes of a group for lack of memory, and if so, which limit was the
// cause.
enum rlhf__cgroup_end {
    RLHF__CGROUP_FINE,   // none were killed for lack of memory
    RLHF__CGROUP_OWN,    // the group reached its limit
    RLHF__CGROUP_MACHINE // a parent group reached its limit, or the machine ran out of memory
};

// Make a group that may use at most `bytes` of memory, and no swap. If the parent has the pids
// controller, the group may have at most RLHF__MOST_PROCESSES processes. Also removes the groups
// that hosts of the same user left in the parent when they were killed. `root` is "" or, in tests,
// a directory that contains proc/. Returns 0, or -1 with *out zeroed if a group cannot be made.
// [main]
int rlhf__cgroup_make(const char *root, uint64_t bytes, struct rlhf__cgroup *out);

// Put the calling process into the group whose directory is `dir` ("": no group). Returns the
// limits that the group sets, as bits of enum rlhf__confined (RLHF__CONFINED_GROUP, _GROUP_COUNT),
// or 0 if it sets none. [main]
unsigned rlhf__cgroup_enter(const char *dir);

// Kill the processes left in the group and remove the group. Returns whether the kernel had killed
// processes of the group, and because of which limit. Accepts a zeroed group. [main]
enum rlhf__cgroup_end rlhf__cgroup_close(struct rlhf__cgroup *g);

#endif
