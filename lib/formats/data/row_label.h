// row_label.h: the label of a row: an integer, or a name that the model has for it. Internal to
// data/.
#ifndef RLHF_HOST_DATA_ROW_LABEL_H
#define RLHF_HOST_DATA_ROW_LABEL_H

#include "data/dataset.h"

// The label that stands in the field called name. Errors: RLHF_E_INVALID, without file and line
// (wrong type, out of range, no label of the model). [any]
rlhf_status rlhf__row_label_read(const struct rlhf__dataset_opts *opts, const char *name,
                                 const json_t *v, int32_t *out, struct rlhf__error *err);

#endif
