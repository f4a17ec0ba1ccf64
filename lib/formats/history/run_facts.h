// run_facts.h: the settings of a run that the rules need.
#ifndef RLHF_FORMATS_HISTORY_RUN_FACTS_H
#define RLHF_FORMATS_HISTORY_RUN_FACTS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { RLHF__FACTS_REWARDS = 32 }; // further rewards are not judged

struct rlhf__paid {
    const char *name; // of metrics: rewards/NAME/mean
    double weight;
};

// A warning of a single phase, from events.jsonl, without a period.
struct rlhf__reported {
    const char *text;
    int64_t phase;
};

// Zero: not known, or does not apply.
struct rlhf__run_facts {
    int64_t phases;         // wanted (run.phases)
    int64_t max_new_tokens; // sampling.max_new_tokens
    double kl_limit;        // algo.kl_target of an adaptive controller, else early_stop.kl
    const char *kl_setting; // which of the two
    double max_grad_norm;   // optim.max_grad_norm
    // Whether responses may end before the length limit: 1 yes, -1 no, 0 depends on the model.
    int32_t may_end;
    int32_t pays_length; // 1: a reward is length.so
    int32_t no_kl;       // 1: algo.kl_coef is 0
    int32_t reserved;
    struct rlhf__paid reward[RLHF__FACTS_REWARDS];
    size_t n_rewards;
    const char *const *trouble; // sentences about what could not be read, without a period
    size_t n_trouble;
    const struct rlhf__reported *reported; // findings that no rule of this folder finds again
    size_t n_reported;
};

// Read them from the object of a run's config.json. Members that are missing or have another type
// stay 0. Names are borrowed from the object. NULL: no facts. [any]
void rlhf__run_facts_read(const json_t *config, struct rlhf__run_facts *out);

#endif
