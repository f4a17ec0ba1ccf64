// row_service.h: the table of "rlhf.row/1", which reads values of a data row, so that plugins need
// no JSON parser. The table works with any host, because failures are reported with the caller's
// host->fail.
#ifndef RLHF_HOST_PLUGIN_ROW_SERVICE_H
#define RLHF_HOST_PLUGIN_ROW_SERVICE_H

#include "plugin/services.h"

#include <rlhf/service.h>

// Returns the table to offer as RLHF_SVC_ROW. [any]
const rlhf_row_service *rlhf__row_service(void);

#endif
