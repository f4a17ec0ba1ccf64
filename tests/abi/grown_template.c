// grown_template.c: the template of a reward, an algorithm, a sink or an environment, for
// test_growth.c. It reads structs in place or, with -DCOPYING, with rlhf_copy_in; it is built with
// the present or with longer headers. Its tables are rlhf_reward_ops, rlhf_algo_ops, rlhf_sink_ops
// and rlhf_environment_ops.
#include GROWN_HEADER

#include "grown.h"

#include GROWN_TEMPLATE

static GROWN_OPS real;

#ifdef COPYING
#include GROWN_COPYING
#else
static void copying(GROWN_OPS *o) { (void)o; }
#endif

#if defined LONGER && defined GROWN_algo
static rlhf_algo_ops template_ops;

// A plan and a loss with a field that the host does not know, set without a look at `size`.
static rlhf_status grown_plan(void *self, const rlhf_run_info *run, rlhf_plan *out) {
    RLHF_TRY(template_ops.plan(self, run, out));
    if (grown_sets("plan")) out->later_number = 1;
    if (grown_sets("plan_size")) out->size = sizeof *out;
    return RLHF_OK;
}

static rlhf_status grown_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    RLHF_TRY(template_ops.loss(self, in, out));
    if (grown_sets("loss")) out->later_number = 1;
    return RLHF_OK;
}
#endif

const rlhf_bundle *rlhf_plugin_v1(void) {
    static GROWN_OPS grown;
    grown = real = ops;
#if defined LONGER && defined GROWN_algo
    template_ops = ops;
    grown.plan = real.plan = grown_plan;
    grown.loss = real.loss = grown_loss;
#endif
    copying(&grown);
    GROWN_TAIL(&grown, "ops");
    return grown_bundle(grown_descriptor(), &grown);
}
