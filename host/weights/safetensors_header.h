// safetensors_header.h: the JSON header of one safetensors file, checked against the file's size.
//
// What it is not: it maps no file; internal to weights/.
#ifndef RLHF_HOST_WEIGHTS_SAFETENSORS_HEADER_H
#define RLHF_HOST_WEIGHTS_SAFETENSORS_HEADER_H

#include "weights/tensor.h"

#include <jansson.h>

#define RLHF__SAFETENSORS_HEADER_MAX ((uint64_t)100 << 20) // as the format's own library

// Parse and check bytes[0..len), a whole file. *tensors is a fresh array of *n entries whose name
// points into *header and whose data points into bytes; free it with free() and *header with
// json_decref. file is for messages and for tensor.file; all three must outlive the tensors.
// Errors: as rlhf__weights_open, without the file's name in front. [main]
rlhf_status rlhf__safetensors_parse(const char *file, const uint8_t *bytes, uint64_t len,
                                    json_t **header, struct rlhf__tensor **tensors, size_t *n,
                                    struct rlhf__error *err);

#endif
