// text_services.h: all services that run models for plugins. Implements "rlhf.classifier" and
// "rlhf.tokenizer", and offers "rlhf.reward_model" (reward_service.h) and "rlhf.language_model"
// (language_service.h).
#ifndef RLHF_HOST_SERVICE_TEXT_SERVICES_H
#define RLHF_HOST_SERVICE_TEXT_SERVICES_H

#include "base/dirs.h"
#include "service/reward_service.h"

#include <rlhf/service.h>

struct rlhf__text_services;

// Offer the services in env->services. Models are opened with env, which must outlive the services.
// The paths NULL and "default" mean the models that ship in `dirs`. The caller owns *out. [main]
rlhf_status rlhf__text_services_open(const struct rlhf__model_env *env,
                                     const struct rlhf__dirs *dirs,
                                     struct rlhf__text_services **out, struct rlhf__error *err);
// Closes models and tokenizers that plugins left open. NULL allowed. [main]
void rlhf__text_services_close(struct rlhf__text_services *);

// Set the tokenizer that plugins get for the path NULL (borrowed). Before this call, plugins cannot
// open the path NULL. Reward models must have this tokenizer's vocabulary. [main]
void rlhf__text_services_policy(struct rlhf__text_services *, const struct rlhf__tokenizer *);

// Loads the models that plugins have opened and that are still on a memory plan. A model that is
// used before this call is loaded on first use. Errors: those of rlhf__model_load. [main]
rlhf_status rlhf__text_services_load(struct rlhf__text_services *, struct rlhf__error *err);

// Returns the i-th model that plugins have opened through any of the services, or NULL past the
// end. The order is fixed. [main]
struct rlhf__served *rlhf__text_services_at(const struct rlhf__text_services *, size_t i);

// Returns the service with the reward models that plugins opened; borrowed. [main]
struct rlhf__reward_service *rlhf__text_services_reward(const struct rlhf__text_services *);

#endif
