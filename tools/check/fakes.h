// fakes.h: fake services that need no model. The classifier, the tokenizer and the reward model
// (rlhf/test.h) give answers that depend only on their input. The limits service allows everything.
// Only the service that runs programs is real.
#ifndef RLHF_TOOLS_CHECK_FAKES_H
#define RLHF_TOOLS_CHECK_FAKES_H

#include "plugin/services.h"

struct rlhf__check_fakes;

// Offer the fake services. Free *out with rlhf__check_fakes_close. Errors: RLHF_E_NOMEM, and those
// of rlhf__services_offer. [main]
rlhf_status rlhf__check_fakes_open(struct rlhf__services *, const struct rlhf__dirs *dirs,
                                   struct rlhf__check_fakes **out, struct rlhf__error *err);
void rlhf__check_fakes_close(struct rlhf__check_fakes *); // NULL allowed [main]

// An instance of the plugin begins or ends. The end returns how many objects of these services were
// opened and not yet closed, or 0 while another instance, which may have them, still exists. [any]
void rlhf__check_fakes_begin(struct rlhf__check_fakes *);
int32_t rlhf__check_fakes_end(struct rlhf__check_fakes *);

#endif
