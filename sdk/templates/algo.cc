// algo.cc: REINFORCE with the batch mean as its baseline, the smallest algorithm that learns, in
// C++20.
//
//   advantage of row i = score_i - mean score;  L = -(1/N) sum_it advantage_i * logp_it
//
// N is the number of response tokens of the whole minibatch, so the loss does not depend on how the
// host splits it into microbatches. The host is written in C, so no exception may leave a function.
// Things to change: config, plan(), advantages(), loss(), the id.
#include <rlhf/algo.h>

namespace {

struct config {
    double scale;
};

struct state {
    const rlhf_host *host;
    const config *options; // outlive the instance
    double loss;           // sum over this phase
    int64_t updates;       // minibatches of this phase
};

state &of(void *self) { return *static_cast<state *>(self); }

rlhf_status create(const rlhf_host *host, const void *options, void **self) {
    auto *s = static_cast<state *>(host->alloc(host, sizeof(state))); // zeroed
    if (!s) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    s->host = host;
    s->options = static_cast<const config *>(options);
    *self = s;
    return RLHF_OK;
}

void destroy(void *self) {
    if (self) of(self).host->free(of(self).host, self);
}

// Tells the host what to sample and which heads to compute.
rlhf_status plan(void *, const rlhf_run_info *, rlhf_plan *out) noexcept {
    out->source = RLHF_SOURCE_ROLLOUT;
    out->heads = RLHF_HEAD_LOGP;
    out->epochs = out->minibatches = out->group_size = 1;
    return RLHF_OK;
}

// Calls f(row, t) for each response token.
template <class Rows, class F> void each_token(const Rows &in, F f) {
    for (uint32_t i = 0; i < in.n; i++)
        for (int32_t t = in.offset[i] + in.prompt_len[i]; t < in.offset[i + 1]; t++)
            f(i, t);
}

// Called once in each phase: turns scores into an advantage for each response token.
rlhf_status advantages(void *self, const rlhf_rollout *in, rlhf_advantages *out) noexcept {
    double mean = 0;
    for (uint32_t i = 0; i < in->n; i++)
        mean += static_cast<double>(in->score[i]) / in->n;
    const double scale = of(self).options->scale;
    each_token(*in, [&](uint32_t i, int32_t t) {
        out->advantage[t] = static_cast<float>(scale * (static_cast<double>(in->score[i]) - mean));
    });
    return RLHF_OK;
}

// Called for each microbatch: computes the microbatch's share of the loss, and the derivative of
// that share with respect to each log-prob.
rlhf_status loss(void *, const rlhf_loss_in *in, rlhf_loss_out *out) noexcept {
    each_token(*in, [&](uint32_t, int32_t t) {
        const double w =
            static_cast<double>(in->advantage[t]) / static_cast<double>(in->batch_tokens);
        out->loss -= w * static_cast<double>(in->heads->logp[t]);
        out->d_heads->logp[t] = static_cast<float>(-w);
    });
    return RLHF_OK;
}

rlhf_status minibatch_end(void *self, const rlhf_step_info *step, rlhf_step_out *) noexcept {
    of(self).loss += step->loss;
    of(self).updates++;
    return RLHF_OK;
}

rlhf_status phase_end(void *self, const rlhf_phase_info *) noexcept {
    state &s = of(self);
    if (s.updates)
        rlhf_metric_last(s.host, "objective/loss", s.loss / static_cast<double>(s.updates));
    s.loss = 0;
    s.updates = 0;
    return RLHF_OK;
}

const rlhf_opt options[] = {
    RLHF_OPT_F64(config, scale, 1, 0, 1000, "factor of the advantage"),
};
const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = plan,
    .advantages = advantages,
    .loss = loss,
    .minibatch_end = minibatch_end,
    .phase_end = phase_end,
};
const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .id = "org.example.my_algo", // reverse DNS; must be unique
    .version = "1.0.0",
    .summary = "REINFORCE with a batch baseline",
    RLHF_OPTIONS(config, options),
    .create = create,
    .destroy = destroy,
    .ops = &ops,
};

} // namespace

RLHF_DEFINE_PLUGIN(plugin)
