// algo_state.h: whether what an algorithm learns from one phase for the next is in what it saves.
#ifndef RLHF_HOST_CHECK_ALGO_STATE_H
#define RLHF_HOST_CHECK_ALGO_STATE_H

#include "check/watched.h"

// A phase, another, and the first again, by one instance: what is said of it then, and was not
// before, is a state, which save() must write. A step (cases.h) of which there is one. [main]
int rlhf__algo_running(struct rlhf__check *c, int32_t step);

#endif
