// generate_stop.h: --stop and --stop-id of `rlhf-host generate` as response rules.
#ifndef RLHF_HOST_GENERATE_STOP_H
#define RLHF_HOST_GENERATE_STOP_H

#include "cmd/flags.h"
#include "sample/response_rules.h"

// Rules of the texts and ids that were typed; *out is destroyed by the caller. Errors:
// RLHF_E_INVALID (an empty text, an id that is no token), RLHF_E_NOMEM. [main]
rlhf_status rlhf__typed_stops(const struct rlhf__flag_list *texts,
                              const struct rlhf__flag_list *ids, const struct rlhf__tokenizer *tok,
                              struct rlhf__response_rules **out, struct rlhf__error *err);

#endif
