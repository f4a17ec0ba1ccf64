// language_service.h: implements "rlhf.language_model": language models that plugins open. They
// score given tokens and write responses, with the code that scores and samples for a run.
#ifndef RLHF_HOST_SERVICE_LANGUAGE_SERVICE_H
#define RLHF_HOST_SERVICE_LANGUAGE_SERVICE_H

#include "service/served.h"

struct rlhf__language_service;

// Offer the service in env->services. Models are opened with env, which must outlive the service.
// `default_dir` is the directory that plugins get for the path NULL or "default". The caller owns
// *out. [main]
rlhf_status rlhf__language_service_open(const struct rlhf__model_env *env, const char *default_dir,
                                        struct rlhf__language_service **out,
                                        struct rlhf__error *err);
// Closes models that plugins left open. NULL allowed. [main]
void rlhf__language_service_close(struct rlhf__language_service *);

// Returns the models that plugins have opened. [main]
const struct rlhf__served_list *rlhf__language_service_list(const struct rlhf__language_service *);

#endif
