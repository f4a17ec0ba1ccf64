// small_steps.c: rlhf__say_small_steps of setup.h.
#include "setup/setup.h"

#include "learn/schedule.h"

// A bf16 number w has 8 significant bits, and half the distance to its neighbour is at least
// w / 512. So if a weight above 512 u changes by u, it is rounded to the same bf16 number as
// before. Most weights of published models are below TYPICAL.
enum { ROUNDED = 512 };
#define TYPICAL 0.1

// How far AdamW moves a weight in the whole run, about: the learning rate in each step.
static double travel(const struct rlhf__run *r) {
    const struct rlhf__optim_config *c = &r->config->optim;
    const double steps = (double)r->cast.plan.epochs * (double)r->cast.plan.minibatches;
    double sum = 0;
    for (int64_t i = 0; i < r->count.phases && sum * ROUNDED < TYPICAL; i++)
        sum += c->lr * rlhf__schedule_factor(c, i, r->count.horizon) * steps;
    return sum;
}

void rlhf__say_small_steps(const struct rlhf__run *r) {
    const struct rlhf__config *c = r->config;
    if (r->req->resume || r->req->recorded || r->session.models.dtype != RLHF_BF16) return;
    if (c->policy.adapter_rank > 0 || c->policy.adapter_path[0] ||
        c->policy.init != RLHF__INIT_PRETRAINED)
        return;
    if (c->optim.kind != RLHF__OPTIM_ADAMW || c->optim.lr <= 0 || r->count.phases <= 0) return;
    const double u = travel(r);
    if (u * ROUNDED >= TYPICAL) return;
    rlhf__logf(r->report.log, RLHF_LOG_INFO,
               "optim.lr=%g moves a weight by about %.2g in %lld phases; if the weights of the "
               "file are bf16 numbers, as those of most published models are, products in bf16 "
               "use the old value of every weight above %.2g, and compute.dtype=f32 uses the new "
               "ones (docs/your-chat-model.md)",
               c->optim.lr, u, (long long)r->count.phases, u * ROUNDED);
}
