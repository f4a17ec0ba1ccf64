// grown_sink.c: the template of a sink, built with older or longer headers; see test_growth.c.
#include <rlhf/sink.h>

#include "grown.h"

#include <stdio.h>

#include <templates/sink.c>

const rlhf_bundle *rlhf_plugin_v0(void) {
    static rlhf_sink_ops grown;
    grown = ops;
    GROWN_TAIL(&grown, "ops");
    return grown_bundle(grown_descriptor(), &grown);
}
