// text_services.h: the tables behind host->service(): "rlhf.classifier/0", "rlhf.tokenizer/0" and
// "rlhf.reward_model/0" (reward_service.h).
#ifndef RLHF_HOST_TEXT_SERVICES_H
#define RLHF_HOST_TEXT_SERVICES_H

#include "model/reward_service.h"

#include <rlhf/service.h>

struct rlhf__text_services;

// Offer the services to env->services. The models opened later use env, which must outlive the
// services. default_classifier, default_reward: the directories of path NULL. Caller owns *out.
// [main]
rlhf_status rlhf__text_services_create(const struct rlhf__model_env *env,
                                       const char *default_classifier, const char *default_reward,
                                       struct rlhf__text_services **out, struct rlhf__error *err);
// Closes what plugins left open. NULL allowed. [main]
void rlhf__text_services_destroy(struct rlhf__text_services *);

// Set the tokenizer that path NULL means; reward models must have its vocabulary. Borrowed, NULL
// until set. [main]
void rlhf__text_services_policy(struct rlhf__text_services *, const struct rlhf__tokenizer *);

// Loads the models of plugins that are on a memory plan. A model that a plugin uses earlier is
// loaded then. Errors: those of rlhf__model_load. [main]
rlhf_status rlhf__text_services_load(struct rlhf__text_services *, struct rlhf__error *err);

// The model of classifier i of those that are open, in a fixed order; NULL past the end. Borrowed.
// [main]
const struct rlhf__model *rlhf__text_services_classifier(const struct rlhf__text_services *,
                                                         size_t i);

// The reward models that plugins opened; borrowed. [main]
struct rlhf__reward_service *rlhf__text_services_reward(const struct rlhf__text_services *);

#endif
