// text_services.h: the tables behind host->service(): "rlhf.classifier/0" and "rlhf.tokenizer/0".
#ifndef RLHF_HOST_TEXT_SERVICES_H
#define RLHF_HOST_TEXT_SERVICES_H

#include "model/model.h"

#include <rlhf/service.h>

struct rlhf__text_services;

// The models opened later use env, which must outlive the services. default_classifier: the
// directory of path NULL. Caller owns *out. [main]
rlhf_status rlhf__text_services_create(const struct rlhf__model_env *env,
                                       const char *default_classifier,
                                       struct rlhf__text_services **out, struct rlhf__error *err);
// Closes what plugins left open. NULL allowed. [main]
void rlhf__text_services_destroy(struct rlhf__text_services *);

// The tokenizer of path NULL; borrowed, NULL until set. [main]
void rlhf__text_services_policy(struct rlhf__text_services *, const struct rlhf__tokenizer *);

// For struct rlhf__services.service_failure: the sentence of the last service call that failed.
// [main]
void rlhf__text_services_failure(void *ctx, char *text, size_t cap);

// For struct rlhf__services.service: ctx is the struct rlhf__text_services. [any]
const void *rlhf__text_services_find(void *ctx, const char *id);

#endif
