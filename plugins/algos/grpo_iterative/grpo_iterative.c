// grpo_iterative.c: the outer loop of group relative policy optimisation (Shao et al. 2024,
// DeepSeekMath, algorithm 1). An iteration is iteration_phases phases of grpo.so; at its end
//
//   replay: train the reward model on the iteration's preference pairs and a share of history
//   reference := policy
//
// With iteration_phases 1 and no replay this is the two-model variant: the reference is the policy
// that sampled. What it is not: it holds no reward model, judges nothing and keeps no pairs; the
// host does, behind rlhf/iteration.h. Formulas and sources: docs/algorithms/grpo_iterative.md.
#include "grpo/core.h"
#include "grpo_iterative/round.h"

#include <rlhf/iteration.h>
#include <rlhf/log.h>

static const char magic[4] = {'R', 'G', 'I', 'T'};
enum { STATE_VERSION = 1 };

struct iterative_options {
    struct rlhf__grpo_options grpo; // must stay the first member: its option rows say so
    int64_t iteration_phases, rm_epochs, rm_batch, replay_history;
    double replay_share, rm_lr;
    int32_t replay, rm_refit;
};

struct iterative {
    struct rlhf__grpo grpo;
    struct iterative_options opt;
    struct rlhf__round round;
    int32_t moves_reference; // the plan asked for a reference
    int32_t reserved;
};

static rlhf_status it_create(const rlhf_host *host, const void *config, void **self) {
    const struct iterative_options *opt = config;
    struct iterative *it = host->alloc(host, sizeof *it);
    if (!it) return host->fail(host, RLHF_E_NOMEM, "out of memory");
    it->opt = *opt;
    rlhf_status st = rlhf__grpo_init(&it->grpo, host, &opt->grpo);
    it->moves_reference = opt->grpo.kl_placement != RLHF__KL_NOWHERE || opt->grpo.kl_measure;
    if (st == RLHF_OK && !it->moves_reference && !opt->replay)
        st = host->fail(host, RLHF_E_INVALID,
                        "kl_placement none, kl_measure false and replay false leave nothing to "
                        "iterate: there is no reference to move and no reward model to train");
    if (st < 0)
        host->free(host, it);
    else
        *self = it;
    return st;
}

static void it_destroy(void *self) {
    struct iterative *it = self;
    if (!it) return;
    const rlhf_host *host = it->grpo.host;
    rlhf__grpo_finish(&it->grpo);
    host->free(host, it);
}

static rlhf_status it_plan(void *self, const rlhf_run_info *info, rlhf_plan *out) {
    const struct iterative *it = self;
    RLHF_TRY(rlhf__grpo_plan(&it->grpo, info, out));
    if (it->opt.replay) out->flags |= RLHF_PLAN_REWARD_MODEL;
    if (it->moves_reference) out->flags |= RLHF_PLAN_MOVES_REFERENCE;
    return RLHF_OK;
}

static rlhf_status it_advantages(void *self, const rlhf_rollout *in) {
    struct iterative *it = self;
    return rlhf__grpo_advantages(&it->grpo, in);
}

static rlhf_status it_loss(void *self, const rlhf_loss_in *in, rlhf_loss_out *out) {
    struct iterative *it = self;
    return rlhf__grpo_loss(&it->grpo, in, out);
}

static rlhf_status it_minibatch_end(void *self, int32_t *stop) {
    struct iterative *it = self;
    rlhf__grpo_minibatch_end(&it->grpo, stop);
    return RLHF_OK;
}

static void report_round(const rlhf_host *h, const rlhf_reward_update_report *r) {
    h->metric(h, "reward_model/loss", r->loss);
    h->metric(h, "reward_model/accuracy", r->accuracy);
    h->metric(h, "reward_model/margin", r->margin);
    h->metric(h, "reward_model/fresh_before", r->fresh_before);
    h->metric(h, "reward_model/fresh_after", r->fresh_after);
    h->metric(h, "reward_model/steps", (double)r->steps);
    h->metric(h, "reward_model/fresh", (double)r->fresh);
    h->metric(h, "reward_model/replayed", (double)r->replayed);
    h->metric(h, "reward_model/history", (double)r->history);
}

// Algorithm 1, line 12. Without a single fresh pair (the judge saw no differences) there is nothing
// to learn from and the round is left out.
static rlhf_status train_reward(struct iterative *it, const rlhf_iteration_service *s) {
    const rlhf_host *h = it->grpo.host;
    if (it->round.fresh == 0) {
        h->log(h, RLHF_LOG_WARN,
               "no preference pairs in this iteration: the reward model stays as it is");
        return RLHF_OK;
    }
    rlhf_reward_update how = {.size = sizeof how,
                              .epochs = (int32_t)it->opt.rm_epochs,
                              .batch_pairs = (int32_t)it->opt.rm_batch,
                              .refit = it->opt.rm_refit,
                              .lr = it->opt.rm_lr,
                              .replay_share = it->opt.replay_share,
                              .history_max = it->opt.replay_history};
    rlhf_reward_update_report report = {.size = sizeof report};
    RLHF_TRY(s->reward_update(s->host, &how, &report));
    it->round.fresh = 0;
    report_round(h, &report);
    return RLHF_OK;
}

static rlhf_status it_phase_end(void *self, uint64_t phase) {
    struct iterative *it = self;
    const rlhf_host *h = it->grpo.host;
    const rlhf_iteration_service *s = h->service(h, RLHF_SVC_ITERATION);
    (void)phase;
    if (!s) return h->fail(h, RLHF_E_UNSUPPORTED, "this host has no service " RLHF_SVC_ITERATION);
    rlhf__grpo_phase_end(&it->grpo);
    if (it->opt.replay) {
        uint32_t added = 0;
        RLHF_TRY(s->collect_pairs(s->host, &added));
        it->round.fresh += added;
        h->metric(h, "iteration/pairs", (double)added);
    }
    if (rlhf__round_step(&it->round, it->opt.iteration_phases)) {
        if (it->opt.replay) RLHF_TRY(train_reward(it, s));
        if (it->moves_reference) RLHF_TRY(s->reference_sync(s->host));
    }
    h->metric(h, "iteration/completed", (double)it->round.iterations);
    return RLHF_OK;
}

static rlhf_status it_save(void *self, const rlhf_ostream *out) {
    const struct iterative *it = self;
    RLHF_TRY(rlhf__kl_control_save(&it->grpo.kl, magic, out));
    return rlhf__round_save(&it->round, out);
}

static rlhf_status it_load(void *self, const rlhf_istream *in, uint32_t state_version) {
    struct iterative *it = self;
    const rlhf_host *h = it->grpo.host;
    if (state_version != STATE_VERSION)
        return rlhf_failf(h, RLHF_E_UNSUPPORTED,
                          "state version %u; this grpo_iterative reads version %d",
                          (unsigned)state_version, STATE_VERSION);
    RLHF_TRY(rlhf__kl_control_load(h, &it->grpo.kl, magic, in));
    return rlhf__round_load(h, &it->round, in);
}

static const rlhf_opt options[] = {
    RLHF_OPT_I64(struct iterative_options, iteration_phases, 1, 1, 1000000,
                 "phases an iteration; at its end the policy becomes the reference. 1: the "
                 "two-model variant"),
    RLHF_OPT_BOOL(struct iterative_options, replay, 0,
                  "train the reward model at the end of an iteration, on pairs that the run's "
                  "judge makes of the iteration's responses"),
    RLHF_OPT_F64(struct iterative_options, replay_share, 0.1, 0, 1,
                 "share of the pairs of a reward-model step that come from earlier iterations"),
    RLHF_OPT_I64(struct iterative_options, replay_history, 20000, 0, 1 << 30,
                 "newest pairs of earlier iterations to keep; 0: all"),
    RLHF_OPT_I64(struct iterative_options, rm_epochs, 1, 1, 1000,
                 "passes over the iteration's pairs"),
    RLHF_OPT_I64(struct iterative_options, rm_batch, 32, 1, 1000000, "pairs a reward-model step"),
    {"rm_lr", "reward-model learning rate, annealed to 0 in each iteration", RLHF_T_F64,
     RLHF_OPT_MIN_OPEN, offsetof(struct iterative_options, rm_lr), 0, 0, 0, 0, 5e-5, 0, 1, NULL,
     NULL},
    RLHF_OPT_BOOL(struct iterative_options, rm_refit, 1,
                  "then fit the reward's gain and bias again, to mean 0 and deviation 1 on "
                  "samples of the reference"),
    RLHF__GRPO_OPTION_ROWS(struct rlhf__grpo_options),
};
static const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = it_plan,
    .advantages = it_advantages,
    .loss = it_loss,
    .minibatch_end = it_minibatch_end,
    .phase_end = it_phase_end,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .state_version = STATE_VERSION,
    .id = "org.rlhf-host.grpo-iterative",
    .version = RLHF_SDK_VERSION,
    .summary = "grpo with a moving reference and a reward model that is trained on",
    .opts = options,
    .n_opts = sizeof options / sizeof *options,
    .opt_stride = sizeof *options,
    .config_size = sizeof(struct iterative_options),
    .create = it_create,
    .destroy = it_destroy,
    .save = it_save,
    .load = it_load,
    .ops = &ops,
};
RLHF_DEFINE_PLUGIN(plugin)
