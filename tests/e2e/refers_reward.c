// refers_reward.c: rewards a response with its log-prob under the sampler minus its log-prob under
// the reference, summed over its tokens. Built with OUTSIDE, it declares that it may be called
// early. Built with BLIND, it requests no log-probs, checks that it gets none, and returns 0.
#include "support/plugin.h"

#include <rlhf/reward.h>

struct config {
    int64_t marks;
};

static const rlhf_opt opts[] = {
    RLHF_OPT_I64(struct config, marks, 0, 0, 1000,
                 "n > 0: in its first calls of a process, row n - 1 is marked as failed"),
};

struct self {
    const rlhf_host *host;
    const struct config *config;
    int64_t calls;
};

TEST_INSTANCE(struct self)

static rlhf_status score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    struct self *s = self;
#ifdef BLIND
    if (in->logp_sampled || in->logp_ref)
        return s->host->fail(s->host, RLHF_E_INTERNAL, "log-probs that it did not ask for");
#else
    if (!in->logp_sampled || !in->logp_ref)
        return s->host->fail(s->host, RLHF_E_INTERNAL, "no log-probs");
#endif
    for (uint32_t i = 0; i < in->n; i++) {
        double sum = 0;
        for (int32_t t = in->offset[i]; in->logp_ref && t < in->offset[i + 1]; t++) {
            const double both = (double)in->logp_sampled[t] - (double)in->logp_ref[t];
            if (t < in->offset[i] + in->prompt_len[i] && both != 0)
                return s->host->fail(s->host, RLHF_E_INTERNAL, "a prompt has log-probs");
            sum += both;
        }
        out->seq[i] = (float)sum;
        if (s->calls == 0 && (int64_t)i + 1 == s->config->marks) out->failed[i] = 1;
    }
    s->calls++;
    return RLHF_OK;
}

#ifdef BLIND
enum { FLAGS = 0 };
#define ID "blind"
#elif defined OUTSIDE
enum { FLAGS = RLHF_REWARD_LOGP_SAMPLED | RLHF_REWARD_LOGP_REF | RLHF_REWARD_EXTERNAL };
#define ID "refers_outside"
#else
enum { FLAGS = RLHF_REWARD_LOGP_SAMPLED | RLHF_REWARD_LOGP_REF };
#define ID "refers"
#endif
static const rlhf_reward_ops ops = {.size = sizeof ops, .flags = FLAGS, .score = score};

TEST_PLUGIN(RLHF_KIND_REWARD, ID, .summary = "compares with the reference", TEST_OPTIONS(opts),
            TEST_INSTANCES)
