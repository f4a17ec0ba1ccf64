// impl.h: the options of `rlhf-host eval`, shared by its files.
#ifndef RLHF_HOST_EVAL_IMPL_H
#define RLHF_HOST_EVAL_IMPL_H

#include "cmd/command_setup.h"
#include "cmd/commands.h"
#include "cmd/given_settings.h"
#include "cmd/program.h"

struct rlhf__eval_options {
    const char *model, *reference, *config, *tokens, *compare, *environment;
    struct rlhf__chat_choice chat;
    const char *rows; // the file of --data that is measured now
    json_t *results;  // NULL: JSON is printed; otherwise an array that receives it
    int64_t limit, n, seed, max_tokens, max_mib;
    int64_t per_prompt; // 0: not given
    double beta;        // 0: not given
    double pass;        // NaN: not given
    int32_t json, bos, save;
    struct rlhf__flag_list data, reward, set;
    struct rlhf__decoding_flags decoding;
    struct rlhf__command_setup_flags at;
};

// Sample responses to the prompts of each --data file, score them with --reward, and print the
// means with their standard errors, and pass@k. With --compare, also do this for the model that
// --compare names. [main]
rlhf_status rlhf__eval_rewards(const struct rlhf__env *env, const struct rlhf__eval_options *o,
                               struct rlhf__error *err);

// Print the new object `v` as JSON or, if o->results is not NULL, append it there. Takes the
// reference. If `v` is NULL, returns RLHF_E_NOMEM. [main]
rlhf_status rlhf__eval_json_new(const struct rlhf__eval_options *o, json_t *v,
                                struct rlhf__error *err);

// Print the accuracy, margin and loss of a reward model on the preference rows of --data. [main]
rlhf_status rlhf__eval_preferences(struct rlhf__command_setup *, const char *dir,
                                   const struct rlhf__eval_options *o, struct rlhf__error *err);

// Print the accuracy, margin and log-probs of a policy on the preference rows of --data. With
// --reference, a response's implicit reward is beta * (log p - log p_ref). Without it, the reward
// is log p. [main]
rlhf_status rlhf__eval_policy_preferences(struct rlhf__command_setup *, const char *dir,
                                          const struct rlhf__eval_options *o,
                                          struct rlhf__error *err);

// For rows of a prompt, a completion and a label, print the log-probs of a policy minus those of
// --reference, separately for wanted and unwanted completions. [main]
rlhf_status rlhf__eval_completions(struct rlhf__command_setup *, const char *dir,
                                   const struct rlhf__eval_options *o, struct rlhf__error *err);

#endif
