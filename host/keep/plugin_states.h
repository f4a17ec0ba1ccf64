// plugin_states.h: the states of a run's plugins in a checkpoint: state/algo.bin,
// state/reward_<i>.bin and state/judge.bin; a plugin without state has no file.
#ifndef RLHF_HOST_PLUGIN_STATES_H
#define RLHF_HOST_PLUGIN_STATES_H

#include "base/buf.h"
#include "base/folder.h"
#include "learn/cast.h"

struct rlhf__plugin_state {
    const struct rlhf__instance *plugin;
    char name[40]; // "state/algo.bin"
    struct rlhf__buf bytes;
};

// Zero-initialise; release with rlhf__plugin_states_finish.
struct rlhf__plugin_states {
    struct rlhf__plugin_state *item; // [n]
    size_t n;
};

// Get the state of every plugin of the cast. Errors: RLHF_E_NOMEM and those of a plugin's save().
// Release *s also after a failure. [main]
rlhf_status rlhf__plugin_states_save(struct rlhf__plugin_states *s, const struct rlhf__cast *cast,
                                     struct rlhf__error *err);
void rlhf__plugin_states_finish(struct rlhf__plugin_states *s);

// Write them to the folder of a checkpoint. [main]
rlhf_status rlhf__plugin_states_write(const struct rlhf__plugin_states *s,
                                      const struct rlhf__folder *checkpoint,
                                      struct rlhf__error *err);

// Restore every plugin of the cast from the checkpoint in the directory `dir`. [main]
rlhf_status rlhf__plugin_states_load(const struct rlhf__cast *cast, const char *dir,
                                     struct rlhf__error *err);

#endif
