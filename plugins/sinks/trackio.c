// trackio.c: sends the metrics and samples of a run to Trackio, Hugging Face's local tracker,
// through its Python package. See docs/sinks.md.
#include "tracker.h"

#include <stddef.h>

struct config {
    struct rlhf__tracker_config common;
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    const struct config *c = config;
    const struct rlhf__tracker_spec spec = {.package = "trackio", .config = &c->common};
    return rlhf__tracker_open(host, &spec, self);
}

static const rlhf_opt options[] = {
    RLHF__TRACKER_OPTIONS(struct config, "Trackio"),
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_SINK,
    .id = "org.rlhf-host.trackio",
    .version = RLHF_SDK_VERSION,
    .summary = "metrics and samples to Trackio",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct config, options),
    .create = create,
    .destroy = rlhf__tracker_close,
    .ops = &rlhf__tracker_ops,
};
RLHF_DEFINE_PLUGIN(plugin)
