// run_facts.h: the settings of a run that the rules need.
#ifndef RLHF_FORMATS_HISTORY_RUN_FACTS_H
#define RLHF_FORMATS_HISTORY_RUN_FACTS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum { RLHF__FACTS_REWARDS = 32 }; // rewards after these are not judged

struct rlhf__paid {
    const char *name; // as in the metric rewards/NAME/mean
    double weight;
    int32_t is_length, reserved; // is_length 1: it is length.so
};

// A warning about a single phase, from events.jsonl, without a period at the end.
struct rlhf__reported {
    const char *text;
    int64_t phase;
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
    int32_t pays_length; // 1: length.so is one of the rewards
    int32_t no_kl;       // 1: algo.kl_coef is 0
    int32_t reserved;
    struct rlhf__paid reward[RLHF__FACTS_REWARDS];
    size_t n_rewards;
    const char *const *trouble; // sentences about unreadable parts, without a period
    size_t n_trouble;
    const struct rlhf__reported *reported; // findings that the rules of this folder cannot find
    size_t n_reported;
};

// Read the facts from the object of a run's config.json. If a member is missing or has the wrong
// type, the fact stays 0. Names are borrowed from the object. If `config` is NULL, all facts are 0.
// [any]
void rlhf__run_facts_read(const json_t *config, struct rlhf__run_facts *out);

#endif
