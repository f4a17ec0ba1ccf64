// checkpoint.h: the files of RUN/checkpoints/NNNNNN/, a Hugging Face directory with a state/
// folder. run/saving.h decides when a checkpoint is written. checkpoint_dir.h publishes a
// checkpoint, so that a crash at any time leaves only complete checkpoints. state/ contains:
//
// - run.json (counters, cursors), optimizer.safetensors, value_head.safetensors;
// - master.safetensors: exact weights, if model.safetensors is bf16;
// - critic.safetensors and critic_optimizer.safetensors, if value.critic is `separate`;
// - reward_head.json and samples.safetensors, if the run trains a reward model: gain and bias, and
//   the samples to which they are fitted;
// - algo.bin, reward_<i>.bin and judge.bin: states of plugins;
// - prompts.safetensors (feed/prompt_choice.h), ahead.rows (feed/ahead.h);
// - the state of an outer loop (iteration.h). The loop's reward_model/ is next to state/.
//
// Nothing in a checkpoint depends on time, threads or paths.
#ifndef RLHF_HOST_KEEP_CHECKPOINT_H
#define RLHF_HOST_KEEP_CHECKPOINT_H

#include "base/buf.h"
#include "base/folder.h"
#include "config/config.h"
#include "feed/feed.h"
#include "feed/reward_training.h"
#include "keep/iteration.h"
#include "learn/optim.h"
#include "learn/phase.h"

// ---- states of plugins; only plugins with a state have a file ----

struct rlhf__plugin_state {
    const struct rlhf__instance *plugin;
    char name[40]; // "state/algo.bin"
    struct rlhf__buf bytes;
};

// Zero-initialize; release with rlhf__plugin_states_finish.
struct rlhf__plugin_states {
    struct rlhf__plugin_state *item; // [n]
    size_t n;
};

// Get the state of every plugin of the cast. The caller releases *s, even after a failure. Errors:
// RLHF_E_NOMEM and those of a plugin's save(). [main]
rlhf_status rlhf__plugin_states_save(struct rlhf__plugin_states *s, const struct rlhf__cast *cast,
                                     struct rlhf__error *err);
void rlhf__plugin_states_finish(struct rlhf__plugin_states *s);

// ---- the whole checkpoint ----

// The parts of a run that a checkpoint contains. All pointers are borrowed.
struct rlhf__kept {
    const struct rlhf__config *config;
    const struct rlhf__cast *cast;
    struct rlhf__optim *optim, *critic_optim;      // critic_optim is NULL without a separate critic
    struct rlhf__reward_training *reward_training; // NULL: the run does not train a reward model
    struct rlhf__iteration *iteration;
    struct rlhf__feed *feed;       // with the choice of prompts and the batch in flight
    struct rlhf__digests *digests; // receives the digests of large files; may be NULL
    int32_t resumed;               // 1: the policy was opened from a checkpoint of the same run
};

// Write all files of a checkpoint to the new directory `fresh` in the folder `all`: the weights,
// the plugins' states, and run.json, which contains `state`. Runs no model. After a failure the
// caller removes the directory. [main]
rlhf_status rlhf__checkpoint_write(const struct rlhf__kept *kept,
                                   const struct rlhf__plugin_states *plugins, json_t *state,
                                   const struct rlhf__folder *all, const char *fresh,
                                   struct rlhf__error *err);

// Help rank 0 to write a checkpoint: send this process's parts of the optimizers' states to rank 0,
// even if rank 0 could not write the files. Errors: those of rlhf__optim_give. [main]
rlhf_status rlhf__checkpoint_give(const struct rlhf__kept *k, struct rlhf__error *err);

// Restore all parts from the checkpoint in the directory `dir`, except state/run.json, which the
// caller reads. [main]
rlhf_status rlhf__checkpoint_read(const struct rlhf__kept *kept, const char *dir,
                                  struct rlhf__error *err);

#endif
