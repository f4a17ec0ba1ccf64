// feed.c: see feed.h.
#include "feed/feed.h"

void rlhf__feed_close(struct rlhf__feed *f) {
    if (f) f->ops->destroy(f);
}

#define LOOK_AHEAD 64 // phases

rlhf_status rlhf__feed_largest(struct rlhf__feed *f, struct rlhf__experience *x,
                               struct rlhf__error *err) {
    struct rlhf__order *order = f->ops->order(f);
    const uint64_t pass = order->pass;
    const int64_t pos = order->pos;
    rlhf_status st = RLHF_OK;
    double phases = 0, tokens = 0;
    for (int i = 0; st == RLHF_OK && i < LOOK_AHEAD; i++) {
        struct rlhf__experience next = {0}, less = {0};
        st = f->ops->next(f, 0, 0, &next, err);
        const int more = next.rows.total > x->rows.total;
        phases += next.rows.n > 0;
        tokens += next.rows.total;
        less = more ? *x : next;
        if (more) *x = next;
        const int end = less.rows.n == 0 && !more;
        rlhf__experience_finish(&less);
        if (end) break;
    }
    if (x->rows.total > 0) f->typical = tokens / phases / x->rows.total;
    const rlhf_status back = rlhf__order_seek(order, pass, pos, st == RLHF_OK ? err : NULL);
    return st == RLHF_OK ? back : st;
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

void rlhf__feed_few_rows(const struct rlhf__feed_env *env, int64_t rows, int64_t phases) {
    const struct rlhf__config *c = env->config;
    if (c->data.batch_tokens > 0 || rows >= c->batch.size) return;
    rlhf__logf(env->log, RLHF_LOG_WARN,
               "data: %lld row%s %s fewer than batch.size=%lld, so the run takes %lld optimizer "
               "step%s; a smaller batch.size or more data.epochs gives more",
               (long long)rows, rows == 1 ? "" : "s", rows == 1 ? "is" : "are",
               (long long)c->batch.size, (long long)phases, phases == 1 ? "" : "s");
}
