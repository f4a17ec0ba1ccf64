// row_service.h: the table of "rlhf.row/0": reads values of a data row, so that plugins need no
// JSON parser.
#ifndef RLHF_HOST_ROW_SERVICE_H
#define RLHF_HOST_ROW_SERVICE_H

#include "plugin/services.h"

#include <rlhf/service.h>

struct rlhf__row_service {
    rlhf_row_service table;
    const struct rlhf__services *services; // receive failures
};

// Offer it. *r must not move; there is nothing to release. Errors: those of rlhf__services_offer.
// [main]
rlhf_status rlhf__row_service_init(struct rlhf__row_service *r, struct rlhf__services *,
                                   struct rlhf__error *err);

#endif
