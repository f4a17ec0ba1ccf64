// feed.c: see feed.h.
#include "run/feed.h"

void rlhf__feed_destroy(struct rlhf__feed *f) {
    if (f) f->ops->destroy(f);
}

rlhf_status rlhf__feed_max_tokens(const struct rlhf__feed_env *env, int32_t *out,
                                  struct rlhf__error *err) {
    const struct rlhf__model *policy = env->cast->policy;
    int64_t max = env->config->data.max_tokens;
    if (max > policy->info.n_ctx)
        return rlhf__fail(err, RLHF_E_INVALID,
                          "data.max_tokens is %lld, but the context of '%s' is %d tokens",
                          (long long)max, policy->dir, policy->info.n_ctx);
    *out = max > 0 ? (int32_t)max : policy->info.n_ctx;
    return RLHF_OK;
}
