// table_language.h: "rlhf.language_model" for a plugin in a worker. The model is in the host.
#ifndef RLHF_LIB_RUNTIME_WORKER_TABLE_LANGUAGE_H
#define RLHF_LIB_RUNTIME_WORKER_TABLE_LANGUAGE_H

#include "worker/table_calls.h"

void rlhf__table_language(rlhf_language_model_service *out); // fill in the table [main]

#endif
