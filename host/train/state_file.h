// state_file.h: the files of a checkpoint's state/ folder, one function pair each. What is written
// goes into the folder of the checkpoint, what is read comes from the path of its state/.
//
// checkpoint.c decides where and when; here is only what goes into which file.
#ifndef RLHF_HOST_STATE_FILE_H
#define RLHF_HOST_STATE_FILE_H

#include "train/trainer.h"

// run.json: counters and cursors. [main]
rlhf_status rlhf__state_write_run(struct rlhf__trainer *t, const struct rlhf__folder *checkpoint,
                                  struct rlhf__error *err);
rlhf_status rlhf__state_read_run(struct rlhf__trainer *t, const char *dir, struct rlhf__error *err);

// A safetensors file with every tensor of an optimiser, f32; its counters are in run.json. [main]
rlhf_status rlhf__state_write_optim(const struct rlhf__optim *o,
                                    const struct rlhf__folder *checkpoint, const char *name,
                                    struct rlhf__error *err);
rlhf_status rlhf__state_read_optim(struct rlhf__optim *o, const char *path,
                                   struct rlhf__error *err);

// algo.bin, reward_<i>.bin and judge.bin: what the plugins save; absent for plugins without state.
// [main]
rlhf_status rlhf__state_write_plugins(const struct rlhf__trainer *t,
                                      const struct rlhf__folder *checkpoint,
                                      struct rlhf__error *err);
rlhf_status rlhf__state_read_plugins(struct rlhf__trainer *t, const char *dir,
                                     struct rlhf__error *err);

#endif
