// reward_service.h: the table behind "rlhf.reward_model/0": reward models that plugins opened,
// shared by directory, also with the host, which may train them.
#ifndef RLHF_HOST_REWARD_SERVICE_H
#define RLHF_HOST_REWARD_SERVICE_H

#include "model/reward_model.h"

#include <rlhf/service.h>

struct rlhf__reward_service;

// Offer the service to env->services. Models opened later use env, which must outlive the service;
// default_dir: the directory of path NULL or "default". Caller owns *out. [main]
rlhf_status rlhf__reward_service_create(const struct rlhf__model_env *env, const char *default_dir,
                                        struct rlhf__reward_service **out, struct rlhf__error *err);
// Closes what plugins left open. NULL allowed. [main]
void rlhf__reward_service_destroy(struct rlhf__reward_service *);

// Set what models opened later are checked against, both borrowed: the vocabulary (NULL: not
// checked), and the longest prompt + response in tokens (0: not known). The
// third function says whether they can be trained. [main]
void rlhf__reward_service_policy(struct rlhf__reward_service *, const struct rlhf__tokenizer *tok);
void rlhf__reward_service_longest(struct rlhf__reward_service *, int32_t longest);
void rlhf__reward_service_trainable(struct rlhf__reward_service *, int32_t trainable);

// Model i of those that are open, in the order they were opened; NULL past the end. *users (NULL
// allowed) = how often it is open: a plugin whose create() raised it uses this model. Borrowed,
// until its last user closes it. [main]
struct rlhf__reward_model *rlhf__reward_service_at(const struct rlhf__reward_service *, size_t i,
                                                   int64_t *users);

#endif
