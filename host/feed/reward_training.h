// reward_training.h: what reward-model training needs in addition to the learner. This is the gain
// and the bias of the head, and the samples of the reference policy to which both are fitted.
//
// The gain and the bias of a new head are set before the first step, and training does not change
// them. The config.json of a checkpoint gets a different gain and bias. These are fitted to the
// checkpoint's weights, so that rewards on the samples have mean 0 and standard deviation 1
// (Stiennon et al. 2020; Ziegler et al. 2019, section 2.1). The samples are drawn once, from the
// starting weights (or reference.path), and saved with the checkpoint.
#ifndef RLHF_HOST_FEED_REWARD_TRAINING_H
#define RLHF_HOST_FEED_REWARD_TRAINING_H

#include "feed/feed.h"
#include "model/reward_model.h"

#include <signal.h>

struct rlhf__preferences;

struct rlhf__reward_training {
    struct rlhf__model *model;        // borrowed
    struct rlhf__reward_head head;    // used in training steps
    struct rlhf__reward_head written; // written to checkpoints: the newest gain and bias
    struct rlhf__rows samples;        // n = 0: gain and bias are not fitted
    int64_t calibrated;               // phases done when `written` was fitted; -1 = never
};

// Turn the config of the cast's policy into the config of a reward model. The policy must be open.
// For a new run with score.calibrate > 0, also sample responses to the prompts of `rows`, in a
// random order. If the head is new, fit it to these responses. A resumed run must call
// rlhf__reward_training_load instead. The caller owns *out. Errors: RLHF_E_INVALID (score.pooling
// is `first`; the initial model cannot be sampled from; no prompt leaves room for a response).
// [main]
rlhf_status rlhf__reward_training_open(const struct rlhf__feed_env *env,
                                       const struct rlhf__model_env *models,
                                       const volatile sig_atomic_t *cancelled, int resumed,
                                       const struct rlhf__preferences *rows,
                                       struct rlhf__reward_training **out, struct rlhf__error *err);
void rlhf__reward_training_close(struct rlhf__reward_training *); // NULL allowed [main]

// Returns the head that the learner pools with, or NULL if the argument is NULL. [any]
const struct rlhf__reward_head *rlhf__reward_training_head(const struct rlhf__reward_training *);

// Put `written`, the gain and bias for a checkpoint, into the model's config. Fits `written` first,
// unless it was already fitted to the current weights. `phase` is the number of phases done. [step]
rlhf_status rlhf__reward_training_calibrate(struct rlhf__reward_training *, int64_t phase,
                                            struct rlhf__error *err);

// rlhf__reward_training_save writes the gain, the bias and the samples to the files
// state/reward_head.json and state/samples.safetensors of a checkpoint. rlhf__reward_training_load
// reads these files. [main]
rlhf_status rlhf__reward_training_save(const struct rlhf__reward_training *,
                                       const struct rlhf__folder *checkpoint,
                                       struct rlhf__error *err);
rlhf_status rlhf__reward_training_load(struct rlhf__reward_training *, const char *checkpoint,
                                       struct rlhf__error *err);

#endif
