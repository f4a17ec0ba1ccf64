// eval_impl.h: the options of `rlhf-host eval`, shared by its files.
#ifndef RLHF_HOST_EVAL_IMPL_H
#define RLHF_HOST_EVAL_IMPL_H

#include "cmd/commands.h"
#include "cmd/flags.h"
#include "data/loading.h"
#include "model/session.h"

#include <jansson.h>

struct rlhf__eval_options {
    const char *model, *data, *reference, *backend, *dtype, *config;
    int64_t limit, n, seed, threads, max_tokens, max_mib;
    int32_t json, reserved;
    struct rlhf__flag_list reward, set;
};

// Print v as one line and release it, also on failure; NULL is RLHF_E_NOMEM (a failed json_pack).
// Errors: RLHF_E_IO. [main]
rlhf_status rlhf__eval_print_new(json_t *v, struct rlhf__error *err);
rlhf_status rlhf__eval_flush(struct rlhf__error *err); // what was printed is out, or RLHF_E_IO

// What bounds the loading of --data. [any]
struct rlhf__loading rlhf__eval_loading(const struct rlhf__eval_options *o,
                                        const struct rlhf__env *env);

// Responses to the prompts of --data, scored by --reward: mean reward, sequence KL to --reference,
// distinct-3. Prints the result. [main]
rlhf_status rlhf__eval_rollout(const struct rlhf__env *env, const struct rlhf__eval_options *o,
                               struct rlhf__error *err);

// Accuracy, margin and loss of a reward model on the preference rows of --data. Prints the result.
// [main]
rlhf_status rlhf__eval_preferences(struct rlhf__session *session, const char *dir,
                                   const struct rlhf__eval_options *o,
                                   const struct rlhf__loading *loading, struct rlhf__error *err);

#endif
