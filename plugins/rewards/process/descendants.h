// descendants.h: what a process has started, and its end.
#ifndef RLHF_PLUGINS_PROCESS_DESCENDANTS_H
#define RLHF_PLUGINS_PROCESS_DESCENDANTS_H

#include <sys/types.h>

// Kill every process of the session and group of `leader`, and every one that has the assignment
// `mark` in its environment, wherever it went. lives = 0: the leader has been waited for, so its
// number may be somebody else's, and the mark alone counts. Without /proc: the group. [step]
void rlhf__descendants_kill(pid_t leader, int lives, const char *mark);

#endif
