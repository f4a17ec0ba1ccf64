// curriculum.c: REINFORCE (see reinforce.c) that chooses its prompts. It prefers prompts whose last
// score was near the mean, because the policy learns little from prompts that always succeed or
// always fail (Florensa et al. 2018, "Automatic Goal Generation for Reinforcement Learning
// Agents").
//
//   weight of a prompt = 0.05 + exp(-((last score - mean last score) / width)^2)
//
// A prompt that was not used yet counts as if its last score were the mean. Prompts are drawn by
// weight, without replacement, with a random stream whose counter is saved, so that a resumed run
// draws the same prompts. The host keeps the last scores.
#include <rlhf/algo.h>

#include <math.h>

struct config {
    double width;
};

struct state {
    const rlhf_host *host;
    struct config config;
    rlhf_rng rng; // saved: its counter
};

static rlhf_status create(const rlhf_host *host, const void *config, void **self) {
    struct state *s = host->alloc(host, sizeof *s); // zeroed
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->config = *(const struct config *)config;
    host->rng(host, "prompts", &s->rng);
    *self = s;
    return RLHF_OK;
}

static void destroy(void *self) {
    struct state *s = self;
    if (s) s->host->free(s->host, s);
}

static rlhf_status plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    (void)self;
    (void)info;
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP;
    out->epochs = out->minibatches = out->group_size = 1;
    return RLHF_OK;
}

// ---- the choice ----

static void fill_weights(const struct state *s, const rlhf_prompts *in, double *weights) {
    double sum = 0, used = 0;
    for (int64_t i = 0; i < in->n; i++)
        if (!isnan(in->last_score[i])) {
            sum += (double)in->last_score[i];
            used++;
        }
    for (int64_t i = 0; i < in->n; i++) {
        const float last = in->last_score[i];
        const double far = isnan(last) ? 0 : ((double)last - sum / used) / s->config.width;
        weights[i] = 0.05 + exp(-far * far);
    }
}

// Draws one of the prompts whose weight is not 0, and sets its weight to 0.
static int64_t draw(struct state *s, double *weights, int64_t n) {
    double total = 0;
    int64_t last = 0;
    for (int64_t i = 0; i < n; i++)
        total += weights[i];
    double at = rlhf_rng_next(&s->rng) * total;
    for (int64_t i = 0; i < n; i++) {
        if (weights[i] <= 0) continue;
        last = i; // also if rounding leaves `at` above 0 at the end
        at -= weights[i];
        if (at < 0) break;
    }
    weights[last] = 0;
    return last;
}

static rlhf_status choose_prompts(void *self, const rlhf_prompts *in, rlhf_choice *out) {
    struct state *s = self;
    double *weights = s->host->alloc(s->host, (uint64_t)in->n * sizeof *weights);
    if (!weights) return s->host->fail(s->host, RLHF_E_NOMEM, "out of memory");
    for (uint32_t k = 0; k < in->n_choose; k++) {
        if (k % (uint64_t)in->n == 0) fill_weights(s, in, weights); // again if there are too few
        out->prompt[k] = draw(s, weights, in->n);
    }
    s->host->free(s->host, weights);
    return RLHF_OK;
}

// ---- REINFORCE ----

static rlhf_status advantages(void *self, const rlhf_rollout *in, rlhf_advantages *out) {
    double mean = 0;
    (void)self;
    for (uint32_t i = 0; i < in->n; i++)
        mean += (double)in->score[i] / (double)in->n;
    for (uint32_t i = 0; i < in->n; i++)
        for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++)
            out->advantage[t] = (float)((double)in->score[i] - mean);
    return RLHF_OK;
}

static rlhf_status loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    (void)self;
    for (uint32_t i = 0; i < in->n; i++)
        for (int32_t t = in->offset[i] + in->prompt_len[i]; t < in->offset[i + 1]; t++) {
            const double w = (double)in->advantage[t] / (double)in->batch_tokens;
            out->loss -= w * (double)in->heads->logp[t];
            out->d_heads->logp[t] = (float)-w;
        }
    return RLHF_OK;
}

// ---- what a resumed run needs, the same bytes on every machine ----

static rlhf_status save(void *self, const rlhf_ostream *out) {
    const struct state *s = self;
    uint8_t bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(s->rng.counter >> (8 * i));
    return out->write(out, bytes, sizeof bytes);
}

static rlhf_status load(void *self, const rlhf_istream *in, uint32_t state_version) {
    struct state *s = self;
    uint8_t bytes[8];
    if (state_version != 1 || in->left(in) != sizeof bytes)
        return s->host->fail(s->host, RLHF_E_UNSUPPORTED, "a state of another version");
    RLHF_TRY(in->read(in, bytes, sizeof bytes));
    s->rng.counter = 0;
    for (int i = 0; i < 8; i++)
        s->rng.counter |= (uint64_t)bytes[i] << (8 * i);
    return RLHF_OK;
}

static const rlhf_opt options[] = {
    RLHF_OPT_F64_ABOVE(struct config, width, 0.25, 0, 1e6,
                       "how far from the middle a score may be and still be preferred"),
};
static const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = plan,
    .advantages = advantages,
    .loss = loss,
    .choose_prompts = choose_prompts,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .id = "org.example.curriculum",
    .version = "1.0.0",
    .summary = "REINFORCE that prefers prompts with middling scores",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct config, options),
    .state_version = 1, // of the bytes of save()
    .create = create,
    .destroy = destroy,
    .save = save,
    .load = load,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
