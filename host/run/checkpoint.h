// checkpoint.h: RUN/checkpoints/NNNNNN/, a Hugging Face directory with a state/ folder, written so
// that a crash at any instant leaves the old checkpoints and no half one.
//
// What state/ holds: run.json (counters, cursors), optimizer.safetensors, value_head.safetensors,
// master.safetensors (exact weights, when model.safetensors is bf16), critic.safetensors and
// critic_optimizer.safetensors (value.critic separate), reward_head.json and samples.safetensors (a
// reward model in training: its gain and bias, and what they are fitted on), algo.bin,
// reward_<i>.bin and judge.bin (what plugins saved), and what an outer loop leaves (iteration.h;
// reward_model/ lies beside state/). Nothing in a checkpoint depends on time, threads or place.
#ifndef RLHF_HOST_CHECKPOINT_H
#define RLHF_HOST_CHECKPOINT_H

#include "run/run.h"

// Write the checkpoint of r->boundary (r->count.phase and the weights are those of it), point
// `latest` at it, choose checkpoints/best and remove old ones beyond checkpoint.keep
// (checkpoint_dir.h). Nothing is done when `latest` is of this very phase. RLHF_E_IO (disk full)
// leaves what was there. [main]
rlhf_status rlhf__checkpoint_save(struct rlhf__run *r, struct rlhf__error *err);

// The run ends: remove the checkpoints beyond checkpoint.keep, of which rlhf__checkpoint_save
// leaves at least two. [main]
void rlhf__checkpoint_end(const struct rlhf__run *r);

// A run that goes on: the link `best` is what the state says, and checkpoints of a later phase, if
// phases are to be run, are set aside. [main]
rlhf_status rlhf__checkpoint_mend(const struct rlhf__run *r, struct rlhf__error *err);

// Put a fresh run where the checkpoint r->req->dir->checkpoint left off. [main]
rlhf_status rlhf__checkpoint_load(struct rlhf__run *r, struct rlhf__error *err);

#endif
