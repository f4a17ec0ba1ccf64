// model_heads.h: tests of a model's heads other than log-probs, its adapters and bf16.
#ifndef RLHF_HOST_CHECK_MODEL_HEADS_H
#define RLHF_HOST_CHECK_MODEL_HEADS_H

#include "check/probe.h"

// A step of a case (cases.h). [main]
int rlhf__try_heads(struct rlhf__check *c, int32_t step);

#endif
