// reward_service.h: implements "rlhf.reward_model/1": reward models that plugins open. Plugins that
// open the same directory share one model. The host uses this same model, and may train it.
#ifndef RLHF_HOST_SERVICE_REWARD_SERVICE_H
#define RLHF_HOST_SERVICE_REWARD_SERVICE_H

#include "model/reward_model.h"
#include "service/served.h"

#include <rlhf/service.h>

struct rlhf__reward_service;

// Offer the service in env->services. Models are opened with env, which must outlive the service.
// `default_dir` is the directory that plugins get for the path NULL or "default". The caller owns
// *out. [main]
rlhf_status rlhf__reward_service_open(const struct rlhf__model_env *env, const char *default_dir,
                                      struct rlhf__reward_service **out, struct rlhf__error *err);
// Closes models that plugins left open. NULL allowed. [main]
void rlhf__reward_service_close(struct rlhf__reward_service *);

// These functions affect models that are opened later. _policy sets the policy's tokenizer; the
// models must share its vocabulary (borrowed; NULL = not checked). _longest sets the maximum number
// of tokens in a prompt with its response (0 = not known). _trainable sets whether the models can
// be trained. [main]
void rlhf__reward_service_policy(struct rlhf__reward_service *, const struct rlhf__tokenizer *tok);
void rlhf__reward_service_longest(struct rlhf__reward_service *, int32_t longest);
void rlhf__reward_service_trainable(struct rlhf__reward_service *, int32_t trainable);

// Returns the i-th open model, in the order of opening, or NULL past the end. The model is borrowed
// until its last user closes it. *users receives the number of users; `users` may be NULL. To see
// whether a plugin uses the model, compare this number before and after the plugin's create().
// [main]
struct rlhf__reward_model *rlhf__reward_service_at(const struct rlhf__reward_service *, size_t i,
                                                   int64_t *users);

// Returns the same models. [main]
const struct rlhf__served_list *rlhf__reward_service_list(const struct rlhf__reward_service *);

#endif
