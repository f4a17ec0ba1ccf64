// print.h: results on standard output, of which a command must know that they are out.
#ifndef RLHF_HOST_PRINT_H
#define RLHF_HOST_PRINT_H

#include "base/error.h"

#include <jansson.h>

// What was printed is out, or RLHF_E_IO. [main]
rlhf_status rlhf__print_flush(struct rlhf__error *err);

// Print v as one line and release it, also on failure; NULL is RLHF_E_NOMEM (a failed json_pack).
// Errors: RLHF_E_IO. [main]
rlhf_status rlhf__print_json_new(json_t *v, struct rlhf__error *err);

#endif
