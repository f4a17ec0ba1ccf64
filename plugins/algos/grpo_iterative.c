// grpo_iterative.c: the outer loop of group relative policy optimization (Shao et al. 2024,
// DeepSeekMath, algorithm 1). An iteration consists of iteration_phases phases of grpo.so. At the
// end of an iteration:
//
//   replay: train the reward model on the iteration's preference pairs and a share of older pairs
//   reference := policy
//
// With iteration_phases=1 and no replay, this is the two-model variant, in which the reference is
// the policy that sampled. The host keeps the reward model, runs the judge and stores the pairs
// (rlhf/draft/iteration.h). Formulas and sources: docs/algorithms/grpo_iterative.md.
#include "grpo_method.h"

#include <rlhf/draft/iteration.h>
#include <rlhf/log.h>
#include <string.h>

enum { STATE_VERSION = 1, ROUND_BYTES = 24 };

struct iterative_options {
    struct rlhf__grpo_options grpo; // must stay the first member: rlhf__grpo_create reads it there
    int64_t iteration_phases, rm_epochs, rm_batch, replay_history;
    double replay_share, rm_lr;
    int32_t replay, rm_refit;
};

struct iterative {
    struct rlhf__grpo grpo; // must stay the first member
    struct iterative_options opt;
    const rlhf_iteration_service *service;
    // These numbers are saved. phases: number of phases so far in the current iteration; fresh:
    // number of pairs that were collected since the reward model was last trained.
    uint64_t phases, iterations, fresh;
    rlhf_iteration use; // what phase_end() does
};

static const struct rlhf__pg_method method = {
    .name = "grpo_iterative",
    .magic = {'R', 'G', 'I', 'T'},
    .state_version = STATE_VERSION,
    .compare = rlhf__grpo_compare,
    .terms = rlhf__grpo_terms,
};

static rlhf_status it_create(const rlhf_host *host, const void *config, void **self) {
    const struct iterative_options *opt = config;
    const struct rlhf__pg_options *pg = &opt->grpo.pg;
    int32_t moves_reference = pg->kl_placement != RLHF__KL_NOWHERE || pg->kl_measure;
    if (!moves_reference && !opt->replay)
        return host->fail(host, RLHF_E_INVALID,
                          "kl_placement none, kl_measure false and replay false leave nothing to "
                          "iterate: there is no reference to move and no reward model to train");
    const rlhf_iteration_service *s = host->service(host, RLHF_SVC_ITERATION);
    if (!s)
        return host->fail(host, RLHF_E_UNSUPPORTED, "this host has no service " RLHF_SVC_ITERATION);
    RLHF_TRY(rlhf__grpo_create(host, &method, &opt->grpo, sizeof(struct iterative), self));
    struct iterative *it = *self;
    it->opt = *opt;
    it->service = s;
    it->use = (rlhf_iteration){
        .size = sizeof it->use, .reward_model = opt->replay, .moves_reference = moves_reference};
    return RLHF_OK;
}

static const void *it_extension(void *self, const char *id) {
    const struct iterative *it = self;
    return it && strcmp(id, RLHF_EXT_ITERATION) == 0 ? &it->use : NULL;
}

static void report_round(const rlhf_host *h, const rlhf_reward_update_report *r) {
    rlhf_metric_last(h, "reward_model/loss", r->loss);
    rlhf_metric_last(h, "reward_model/accuracy", r->accuracy);
    rlhf_metric_last(h, "reward_model/margin", r->margin);
    rlhf_metric_last(h, "reward_model/fresh_before", r->fresh_before);
    rlhf_metric_last(h, "reward_model/fresh_after", r->fresh_after);
    rlhf_metric_last(h, "reward_model/steps", (double)r->steps);
    rlhf_metric_last(h, "reward_model/fresh", (double)r->fresh);
    rlhf_metric_last(h, "reward_model/replayed", (double)r->replayed);
    rlhf_metric_last(h, "reward_model/history", (double)r->history);
}

// Trains the reward model (algorithm 1, line 12). If the iteration has no new preference pairs,
// only logs a warning.
static rlhf_status train_reward(struct iterative *it, const rlhf_iteration_service *s) {
    const rlhf_host *h = it->grpo.pg.host;
    if (it->fresh == 0) {
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
    RLHF_TRY(s->reward_update(h, &how, &report));
    it->fresh = 0;
    report_round(h, &report);
    return RLHF_OK;
}

static rlhf_status it_phase_end(void *self, const rlhf_phase_info *info) {
    struct iterative *it = self;
    const rlhf_host *h = it->grpo.pg.host;
    const rlhf_iteration_service *s = it->service;
    RLHF_TRY(rlhf__pg_phase_end(self, info));
    if (it->opt.replay) {
        uint32_t added = 0;
        RLHF_TRY(s->collect_pairs(h, &added));
        it->fresh += added;
        rlhf_metric_last(h, "iteration/pairs", (double)added);
    }
    if (++it->phases >= (uint64_t)it->opt.iteration_phases) {
        it->phases = 0;
        it->iterations++;
        if (it->opt.replay) RLHF_TRY(train_reward(it, s));
        if (it->use.moves_reference) RLHF_TRY(s->reference_sync(h));
    }
    rlhf_metric_last(h, "iteration/completed", (double)it->iterations);
    return RLHF_OK;
}

// Saves the state of grpo, then phases, iterations and fresh, little-endian.
static rlhf_status it_save(void *self, const rlhf_ostream *out) {
    const struct iterative *it = self;
    const uint64_t word[] = {it->phases, it->iterations, it->fresh};
    uint8_t bytes[ROUND_BYTES];
    for (int i = 0; i < ROUND_BYTES; i++)
        bytes[i] = (uint8_t)(word[i / 8] >> (8 * (i % 8)));
    RLHF_TRY(rlhf__pg_save(self, out));
    return out->write(out, bytes, sizeof bytes);
}

static rlhf_status it_load(void *self, const rlhf_istream *in, uint32_t state_version) {
    struct iterative *it = self;
    const rlhf_host *h = it->grpo.pg.host;
    uint8_t bytes[ROUND_BYTES];
    uint64_t word[3] = {0};
    RLHF_TRY(rlhf__pg_load(self, in, state_version));
    rlhf_status st = in->read(in, bytes, sizeof bytes);
    if (st < 0) return h->fail(h, st, "the saved state is shorter than 36 bytes");
    for (int i = 0; i < ROUND_BYTES; i++)
        word[i / 8] |= (uint64_t)bytes[i] << (8 * (i % 8));
    it->phases = word[0];
    it->iterations = word[1];
    it->fresh = word[2];
    return RLHF_OK;
}

static const char *it_why_unused(const rlhf_option_in *in) {
    const struct iterative_options *o = in->config;
    static const char *const replay[] = {"replay_share", "replay_history", "rm_epochs",
                                         "rm_batch",     "rm_lr",          "rm_refit"};
    for (size_t i = 0; !o->replay && i < sizeof replay / sizeof *replay; i++)
        if (strcmp(replay[i], in->key) == 0) return "replay is false";
    return rlhf__grpo_why_unused(in);
}

static const rlhf_opt options[] = {
    RLHF_OPT_I64(struct iterative_options, iteration_phases, 1, 1, 1000000,
                 "phases per iteration; at its end the policy becomes the reference. 1: the "
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
    RLHF_OPT_I64(struct iterative_options, rm_batch, 32, 1, 1000000, "pairs per reward-model step"),
    RLHF_OPT_F64_ABOVE(struct iterative_options, rm_lr, 5e-5, 0, 1,
                       "reward-model learning rate, annealed to 0 in each iteration"),
    RLHF_OPT_BOOL(struct iterative_options, rm_refit, 1,
                  "then fit the reward's gain and bias again, to mean 0 and deviation 1 on "
                  "samples of the reference"),
    RLHF_OPT_TABLE(struct iterative_options, grpo, rlhf__grpo_option_table,
                   RLHF__GRPO_OPTION_COUNT),
};
static const rlhf_algo_ops ops = {
    .size = sizeof ops,
    .plan = rlhf__grpo_plan,
    .advantages = rlhf__pg_advantages,
    .loss = rlhf__pg_loss,
    .minibatch_end = rlhf__pg_minibatch_end,
    .phase_end = it_phase_end,
};
static const rlhf_plugin plugin = {
    .size = sizeof plugin,
    .kind = RLHF_KIND_ALGO,
    .state_version = STATE_VERSION,
    .id = "org.rlhf-host.grpo-iterative",
    .version = RLHF_SDK_VERSION,
    .summary = "grpo with a moving reference and a reward model that is trained on",
    .vendor = "rlhf-host",
    .license = "Apache-2.0",
    RLHF_OPTIONS(struct iterative_options, options),
    .create = it_create,
    .destroy = rlhf__pg_destroy,
    .save = it_save,
    .load = it_load,
    .ops = &ops,
    .extension = it_extension,
    .why_unused = it_why_unused,
};
RLHF_DEFINE_PLUGIN(plugin)
