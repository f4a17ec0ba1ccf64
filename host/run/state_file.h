// state_file.h: the files of a checkpoint's state/ folder, one function pair each. What is written
// goes into the folder of the checkpoint, what is read comes from the path of its state/.
//
// checkpoint.c decides where and when; here is only what goes into which file.
#ifndef RLHF_HOST_STATE_FILE_H
#define RLHF_HOST_STATE_FILE_H

#include "run/run.h"

// run.json: counters and cursors. rlhf__state_run makes it (new reference, NULL = out of memory)
// but for the best checkpoint, which is added when it is written. [main]
json_t *rlhf__state_run(struct rlhf__run *t);
rlhf_status rlhf__state_write_run(const struct rlhf__run *t, json_t *run,
                                  const struct rlhf__folder *checkpoint, struct rlhf__error *err);
rlhf_status rlhf__state_read_run(struct rlhf__run *t, const char *dir, struct rlhf__error *err);

// A safetensors file with every tensor of an optimiser, f32; its counters are in run.json. [main]
rlhf_status rlhf__state_write_optim(const struct rlhf__optim *o,
                                    const struct rlhf__folder *checkpoint, const char *name,
                                    struct rlhf__error *err);
rlhf_status rlhf__state_read_optim(struct rlhf__optim *o, const char *path,
                                   struct rlhf__error *err);

// algo.bin, reward_<i>.bin and judge.bin: what the plugins save; absent for plugins without state.
// rlhf__state_save_plugins asks them: (*out)[*n], freed with rlhf__state_plugins_finish. [main]
rlhf_status rlhf__state_save_plugins(const struct rlhf__run *t, struct rlhf__buf **out, size_t *n,
                                     struct rlhf__error *err);
void rlhf__state_plugins_finish(struct rlhf__buf *saved, size_t n); // NULL allowed [any]
rlhf_status rlhf__state_write_plugins(const struct rlhf__run *t, const struct rlhf__buf *saved,
                                      const struct rlhf__folder *checkpoint,
                                      struct rlhf__error *err);
rlhf_status rlhf__state_read_plugins(struct rlhf__run *t, const char *dir, struct rlhf__error *err);

#endif
