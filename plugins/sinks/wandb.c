// wandb.c: sends the metrics and samples of a run to Weights & Biases, through its Python package.
// See docs/sinks.md.
#include "tracker.h"

#include <stddef.h>

struct config {
    struct rlhf__tracker_config common;
    const char *entity;
    int32_t mode;
};

static const char *const modes[] = {"online", "offline", NULL};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    const struct config *c = config;
    const struct rlhf__tracker_spec spec = {
        .package = "wandb",
        .config = &c->common,
        .more = {{"entity", *c->entity ? c->entity : NULL}, {"mode", modes[c->mode]}}};
    return rlhf__tracker_open(host, &spec, self);
}

static const rlhf_opt options[] = {
    RLHF__TRACKER_OPTIONS(struct config, "Weights & Biases"),
    {.key = "entity",
     .help = "the user or team that the project belongs to; empty: the key's own",
     .type = RLHF_T_STR,
     .flags = RLHF_OPT_TRUSTED,
     .offset = offsetof(struct config, entity),
     .s_def = ""},
    RLHF_OPT_ENUM(struct config, mode, 0, modes,
                  "offline: keep everything in ./wandb, for wandb sync"),
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_SINK,
    .id = "org.rlhf-host.wandb",
    .version = RLHF_SDK_VERSION,
    .summary = "metrics and samples to Weights & Biases",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct config, options),
    .create = create,
    .destroy = rlhf__tracker_close,
    .ops = &rlhf__tracker_ops,
};
RLHF_DEFINE_PLUGIN(plugin)
