// grown_algo.c: the template of an algorithm, built with older or longer headers; see
// test_growth.c.
#include <rlhf/algo.h>

#include "grown.h"

#include <templates/algo.c>

const rlhf_bundle *rlhf_plugin_v0(void) {
    static rlhf_algo_ops grown;
    grown = ops;
    GROWN_TAIL(&grown, "ops");
    return grown_bundle(grown_descriptor(), &grown);
}
