// instance.h: one instance of a stand-in: its workers and what they are asked.
#ifndef RLHF_HOST_WORKER_INSTANCE_H
#define RLHF_HOST_WORKER_INSTANCE_H

#include "worker/ask.h"
#include "worker/describe.h"
#include "worker/stand_in.h"

// What is known of the plugin of a file, and how its workers are started.
struct rlhf__stand_in {
    struct rlhf__outside base; // first: load.h gives it back
    struct rlhf__description what;
    rlhf_reward_ops ops;
    struct rlhf__worker_rules rules;
    const char *program;     // of the workers, borrowed
    char *path, *id, *asker; // id NULL: the file's only reward
    char sha256[65];
    char reserved[7];
    char *confined;             // what is in force, in words
    struct rlhf__worker *spare; // has it open and has no instance yet; NULL = none
    struct rlhf__strings said;  // by idle()
};

// A worker with the file open, and what it says of it (NULL: not wanted). Errors: what the worker
// says of the file, RLHF_E_INVALID when it fails. [main]
rlhf_status rlhf__stand_in_worker(struct rlhf__stand_in *s, struct rlhf__worker **out,
                                  struct rlhf__description *what, struct rlhf__error *err);

// The functions of the descriptor and of the ops that a stand-in has. [as rlhf_plugin says]
rlhf_status rlhf__stand_in_create(const rlhf_host *api, const void *config, void **self);
void rlhf__stand_in_destroy(void *self);
rlhf_status rlhf__stand_in_save(void *self, const rlhf_ostream *out);
rlhf_status rlhf__stand_in_load(void *self, const rlhf_istream *in, uint32_t state_version);
rlhf_status rlhf__stand_in_score(void *self, const rlhf_reward_in *in, const rlhf_reward_out *out);
rlhf_status rlhf__stand_in_check_row(void *self, rlhf_str row);

// As struct rlhf__outside says. [as there]
int64_t rlhf__stand_in_ended_at(void *self);
int rlhf__stand_in_asked(void *self, const char *service);

#endif
