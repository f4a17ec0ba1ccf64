// run_facts.h: the settings of a run that the rules need.
#ifndef RLHF_FORMATS_VERDICT_RUN_FACTS_H
#define RLHF_FORMATS_VERDICT_RUN_FACTS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { RLHF__FACTS_REWARDS = 32 }; // rewards after these are not judged

struct rlhf__paid {
    const char *name; // as in the metric rewards/NAME/mean
    double weight;
    int32_t is_length; // 1: it is length.so
    int32_t is_model;  // 1: it is bt_rm.so, a trained reward model
};

// The facts. A fact is 0 if it is unknown or does not apply.
struct rlhf__run_facts {
    int64_t phases;         // planned number of phases (run.phases)
    int64_t max_new_tokens; // sampling.max_new_tokens
    double kl_limit;        // algo.kl_target if the controller is adaptive, otherwise early_stop.kl
    const char *kl_setting; // the name of that setting
    double max_grad_norm;   // optim.max_grad_norm
    // 1: responses may end before the length limit; -1: they cannot; 0: it depends on the model.
    int32_t may_end;
    int32_t pays_length;         // 1: length.so is one of the rewards
    int32_t plays;               // 1: an environment answers the responses
    int32_t unbound;             // 1: algo.kl_placement=none, so that no penalty holds the policy
    int32_t holds;               // 1: the algorithm has algo.kl_coef
    int32_t goes_on;             // 1: a lost policy does not end the run (run.stop_on)
    double kl_coef, lr, muon_lr; // muon_lr is 0 unless the optimizer is Muon
    int64_t batch_size;
    int32_t stops; // 1: sampling.stop has entries
    struct rlhf__paid reward[RLHF__FACTS_REWARDS];
    size_t n_rewards;
    const char *const *trouble; // sentences about unreadable parts, without a period
    size_t n_trouble;
};

// Read the facts from the object of a run's config.json. If a member is missing or has the wrong
// type, the fact stays 0. Names are borrowed from the object. If `config` is NULL, all facts are 0.
// [any]
void rlhf__run_facts_read(const json_t *config, struct rlhf__run_facts *out);

#endif
