// row_service.h: the table behind "rlhf.row/0": values of a data row, so that no plugin parses
// JSON.
#ifndef RLHF_HOST_ROW_SERVICE_H
#define RLHF_HOST_ROW_SERVICE_H

#include "plugin/services.h"

#include <rlhf/service.h>

struct rlhf__row_service {
    rlhf_row_service table;
    const struct rlhf__services *services; // told of failures
};

// Offer it. *r must stay where it is; there is nothing to release. Errors as of
// rlhf__services_offer. [main]
rlhf_status rlhf__row_service_init(struct rlhf__row_service *r, struct rlhf__services *,
                                   struct rlhf__error *err);

#endif
