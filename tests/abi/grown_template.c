// grown_template.c: the template of a reward, an algorithm or a sink, built with older or longer
// headers; see test_growth.c.
#if defined GROWN_reward
#include <rlhf/reward.h>
typedef rlhf_reward_ops grown_ops;
#elif defined GROWN_algo
#include <rlhf/algo.h>
typedef rlhf_algo_ops grown_ops;
#else
#include <rlhf/sink.h>
typedef rlhf_sink_ops grown_ops;
#endif

#include "grown.h"

#include <stdio.h>

#if defined GROWN_reward
#include <templates/reward.c>
#elif defined GROWN_algo
#include <templates/algo.c>
#else
#include <templates/sink.c>
#endif

const rlhf_bundle *rlhf_plugin_v1(void) {
    static grown_ops grown;
    grown = ops;
    GROWN_TAIL(&grown, "ops");
    return grown_bundle(grown_descriptor(), &grown);
}
