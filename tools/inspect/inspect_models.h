// inspect_models.h: opens the models that the flags of `rlhf-host inspect` name, in f32.
#ifndef RLHF_TOOLS_INSPECT_INSPECT_MODELS_H
#define RLHF_TOOLS_INSPECT_INSPECT_MODELS_H

#include "cmd/command_setup.h"
#include "inspect/subject.h"
#include "model/reward_model.h"

// Models of one command. Zero-initialize. Release with rlhf__inspect_models_finish, even after a
// failure, and before the command's set-up.
struct rlhf__inspect_models {
    struct rlhf__model *model[2], *critic;
    struct rlhf__reward_model *reward[3]; // base, tuned, --reward-model
    char name[4][128];                    // names of the models, for people
};

// Sets `base` to the directory of the model that `tuned` was made from. `under` is the directory of
// the base of tuned's adapter, or NULL without an adapter. `config` has the settings of tuned's
// run, or is NULL if tuned is not from a run. The result is `under` or, if that is NULL, the policy
// that `config` names. Errors: RLHF_E_INVALID if both are NULL. [main]
rlhf_status rlhf__inspect_find_base(const struct rlhf__dirs *, const char *tuned, const char *under,
                                    const json_t *config, char base[RLHF__PATH_CAP],
                                    struct rlhf__error *err);

// Open the models of --base and --tuned, and store them in of[2]. If `base` is NULL, opens the
// model that the tuned model's adapter or run names as its base. *explained is
// RLHF__EXPLAINED_REWARD if both are reward models. Errors: RLHF_E_INVALID, with the flag's name.
// [main]
rlhf_status rlhf__inspect_open_pair(struct rlhf__inspect_models *, struct rlhf__command_setup *,
                                    const char *base, const char *tuned,
                                    struct rlhf__subject_model of[2], int32_t *explained,
                                    struct rlhf__error *err);

// Open the model of --reward-model, and the critic of --critic (a checkpoint with a value head).
// [main]
rlhf_status rlhf__inspect_open_reward(struct rlhf__inspect_models *, struct rlhf__command_setup *,
                                      const char *dir, struct rlhf__subject_model *of,
                                      struct rlhf__error *err);
rlhf_status rlhf__inspect_open_critic(struct rlhf__inspect_models *, struct rlhf__command_setup *,
                                      const char *dir, struct rlhf__subject_model *of,
                                      struct rlhf__error *err);

void rlhf__inspect_models_finish(struct rlhf__inspect_models *); // accepts a zeroed one [any]

#endif
