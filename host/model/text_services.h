// text_services.h: implements the services "rlhf.classifier/1" and "rlhf.tokenizer/1", and offers
// "rlhf.reward_model/1" (reward_service.h).
#ifndef RLHF_HOST_MODEL_TEXT_SERVICES_H
#define RLHF_HOST_MODEL_TEXT_SERVICES_H

#include "model/reward_service.h"

#include <rlhf/service.h>

struct rlhf__text_services;

// Offer the services in env->services. Models are opened with env, which must outlive the services.
// `default_classifier` and `default_reward` are the directories that plugins get for the path NULL.
// The caller owns *out. [main]
rlhf_status rlhf__text_services_create(const struct rlhf__model_env *env,
                                       const char *default_classifier, const char *default_reward,
                                       struct rlhf__text_services **out, struct rlhf__error *err);
// Closes models and tokenizers that plugins left open. NULL allowed. [main]
void rlhf__text_services_destroy(struct rlhf__text_services *);

// Set the tokenizer that plugins get for the path NULL (borrowed). Before this call, plugins cannot
// open the path NULL. Reward models must have this tokenizer's vocabulary. [main]
void rlhf__text_services_policy(struct rlhf__text_services *, const struct rlhf__tokenizer *);

// Loads the models that plugins have opened and that are still on a memory plan. A model that is
// used before this call is loaded on first use. Errors: those of rlhf__model_load. [main]
rlhf_status rlhf__text_services_load(struct rlhf__text_services *, struct rlhf__error *err);

// Returns the model of the i-th open classifier, or NULL past the end. The order is fixed. The
// model is borrowed. [main]
const struct rlhf__model *rlhf__text_services_classifier(const struct rlhf__text_services *,
                                                         size_t i);

// Returns the service with the reward models that plugins opened; borrowed. [main]
struct rlhf__reward_service *rlhf__text_services_reward(const struct rlhf__text_services *);

#endif
