// sample_algo.c: an algorithm plugin that does nothing. It has one required option, a list and no
// create().
#include <rlhf/algo.h>

struct config {
    double rate;
    int64_t steps;
    const char *const *parts;
};

static const char *const parts[] = {"trunk", "head", "adapter", NULL}, *const first[] = {"trunk",
                                                                                         NULL};

static const rlhf_opt opts[] = {
    RLHF_OPT_F64_FLAGS(struct config, rate, RLHF_OPT_REQUIRED | RLHF_OPT_MIN_OPEN, 0, 0, 1,
                       "how fast"),
    RLHF_OPT_I64(struct config, steps, 4, 0, 1000, "how often"),
    RLHF_OPT_LIST(struct config, parts, first, parts, "what it learns"),
};

static rlhf_status plan(void *self, const rlhf_run_info *run, rlhf_plan *out) {
    (void)self;
    (void)run;
    out->source = RLHF_SOURCE_TEXT;
    out->epochs = out->minibatches = out->group_size = 1;
    return RLHF_OK;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    (void)self;
    (void)in;
    out->loss = 0;
    return RLHF_OK;
}

static const rlhf_algo_ops ops = {.size = sizeof ops, .plan = plan, .loss = loss};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .id = "org.example.algo",
    .version = "0.0.1",
    .summary = "does nothing",
    RLHF_OPTIONS(struct config, opts),
    .ops = &ops,
};

RLHF_DEFINE_PLUGIN(plugin)
