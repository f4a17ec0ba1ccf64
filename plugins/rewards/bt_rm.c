// bt_rm.c: the reward is a reward model's score: gain * score + bias. The score is pooled over the
// response's tokens or given for each token. bradley_terry.so trains such models.
//
// The model reads the policy's token ids, so it must have the policy's vocabulary. The service
// (rlhf.reward_model/1) checks the vocabulary and the model's context length when it opens the
// model.
#include <rlhf/reward.h>
#include <rlhf/service.h>
#include <string.h>

enum { POOLING_TRAINED = 0, POOLING_MEAN = 1, POOLING_LAST = 2 };

struct bt_rm_config {
    const char *model;
    int32_t pooling, per_token;
};

struct bt_rm {
    const rlhf_host *host;
    const struct bt_rm_config *config;
    const rlhf_reward_model_service *svc;
    rlhf_reward_model *model;
    int32_t pooling; // enum rlhf_pool, 0 = the pooling of the model's training
};

static void bt_rm_destroy(void *self) {
    struct bt_rm *r = self;
    if (!r) return;
    if (r->model) r->svc->close(r->host, r->model);
    r->host->free(r->host, r);
}

static rlhf_status bt_rm_open(struct bt_rm *r) {
    static const int32_t pools[] = {0, RLHF_POOL_MEAN, RLHF_POOL_LAST};
    const rlhf_host *h = r->host;
    r->pooling = pools[r->config->pooling];
    if (r->config->per_token && r->pooling == RLHF_POOL_LAST)
        return h->fail(h, RLHF_E_INVALID,
                       "per_token hands out the mean over tokens; with pooling=last there is one "
                       "reward, that of the last token");
    if (r->config->per_token) r->pooling = RLHF_POOL_MEAN;
    r->svc = h->service(h, RLHF_SVC_REWARD_MODEL);
    if (!r->svc)
        return h->fail(h, RLHF_E_UNSUPPORTED, "this host does not offer " RLHF_SVC_REWARD_MODEL);
    const rlhf_reward_model_open how = {.size = sizeof how, .path = r->config->model};
    return r->svc->open(h, &how, &r->model);
}

static rlhf_status bt_rm_create(const rlhf_host *host, const void *config, void **self) {
    struct bt_rm *r = host->alloc(host, sizeof *r);
    if (!r) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    r->host = host;
    r->config = config;
    rlhf_status st = bt_rm_open(r);
    if (st < 0) {
        bt_rm_destroy(r);
        return st;
    }
    *self = r;
    return RLHF_OK;
}

// With per_token, divides the reward of each token by the number of tokens in the response, and
// sets the sequence's reward to 0. So a row's total is the mean of its tokens' rewards. A row
// without a response keeps the sequence's reward.
static void hand_out(const rlhf_reward_in *in, float *seq, float *token) {
    for (uint32_t i = 0; i < in->n; i++) {
        int32_t begin = in->offset[i] + in->prompt_len[i], end = in->offset[i + 1];
        for (int32_t k = begin; k < end; k++)
            token[k] /= (float)(end - begin);
        if (begin < end) seq[i] = 0;
    }
}

static rlhf_status bt_rm_score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out) {
    const struct bt_rm *r = self;
    if (in->n == 0) return RLHF_OK;
    if (r->config->per_token && !out->token)
        return r->host->fail(r->host, RLHF_E_INTERNAL, "the array of token rewards is missing");
    const rlhf_reward_model_in rows = {.size = sizeof rows,
                                       .n = in->n,
                                       .ids = in->ids,
                                       .offset = in->offset,
                                       .prompt_len = in->prompt_len,
                                       .pooling = r->pooling};
    const rlhf_reward_model_out to = {
        .size = sizeof to, .seq = out->seq, .token = r->config->per_token ? out->token : NULL};
    RLHF_TRY(r->svc->score(r->host, r->model, &rows, &to));
    if (r->config->per_token) hand_out(in, out->seq, out->token);
    return RLHF_OK;
}

static const char *bt_rm_why_unused(const rlhf_option_in *in) {
    const struct bt_rm_config *c = in->config;
    return c->per_token && strcmp(in->key, "pooling") == 0 ? "per_token pays out the mean" : NULL;
}

static const char *const pooling_names[] = {"trained", "mean", "last", NULL};
static const rlhf_opt options[] = {
    RLHF_OPT_PATH(struct bt_rm_config, model, "default",
                  "reward model directory; default: the one that comes with rlhf-host"),
    RLHF_OPT_ENUM(struct bt_rm_config, pooling, POOLING_TRAINED, pooling_names,
                  "a response's reward: mean over its tokens, or that of the last one; trained: as "
                  "the model was trained"),
    RLHF_OPT_BOOL(struct bt_rm_config, per_token, 0,
                  "pay every token its share of the mean, instead of the whole at the end"),
};
static const rlhf_reward_ops ops = {
    .size = sizeof ops,
    .flags = RLHF_REWARD_PER_TOKEN | RLHF_REWARD_FUNCTION,
    .score = bt_rm_score,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_REWARD,
    .id = "org.rlhf-host.bt-rm",
    .version = RLHF_SDK_VERSION,
    .summary = "reward model trained on preferences: mean or last token, or token by token",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct bt_rm_config, options),
    .create = bt_rm_create,
    .destroy = bt_rm_destroy,
    .ops = &ops,
    .why_unused = bt_rm_why_unused,
};
RLHF_DEFINE_PLUGIN(plugin)
