// sample.h: what a grader reads of one row: the data row (item) and the response (sample).
//
// A sample is {"output_text", "output_json", "output_tools", "choices"}. output_json is the
// response if it is a JSON object or list, else null. If the data row has "tools", the calls that
// the response makes as <tool_call>{"name", "arguments"}</tool_call> are output_tools, and
// output_text is the rest. The driver of python.so (python/rlhf_host/_driver.py) makes the same
// sample for functions in Python.
#ifndef RLHF_REWARDS_GRADER_SAMPLE_H
#define RLHF_REWARDS_GRADER_SAMPLE_H

#include "grader/template.h"

#include <rlhf/reward.h>

// Zero-initialize.
struct rlhf__grader_sample {
    const rlhf_host *host;
    struct rlhf__template_from from;
    rlhf_row *item, *sample;
    struct rlhf__bytes text; // the sample as JSON
};

// Reads row i. Errors: RLHF_E_NOMEM. Release with rlhf__grader_sample_finish, even after a failure.
// [step]
rlhf_status rlhf__grader_sample_init(struct rlhf__grader_sample *, const rlhf_host *host,
                                     const rlhf_reward_in *, uint32_t i);
void rlhf__grader_sample_finish(struct rlhf__grader_sample *); // [step]

#endif
