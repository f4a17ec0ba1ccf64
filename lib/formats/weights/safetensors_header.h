// safetensors_header.h: the JSON header of one safetensors file, checked against the file's size.
//
// What it is not: it maps no file; internal to weights/.
#ifndef RLHF_HOST_WEIGHTS_SAFETENSORS_HEADER_H
#define RLHF_HOST_WEIGHTS_SAFETENSORS_HEADER_H

#include "weights/tensor.h"

#include <jansson.h>

#define RLHF__SAFETENSORS_HEADER_MAX ((uint64_t)100 << 20) // as in the safetensors library

// The length of the JSON text, read from the first eight bytes of a file of `len` bytes, and
// checked against `len`. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__safetensors_size(const uint8_t first[8], uint64_t len, uint64_t *size,
                                   struct rlhf__error *err);

// Parse text, the JSON of a file. Check it against the size of data[0..len), the bytes that follow
// it; these are not read. *tensors is a fresh array of *n entries. An entry's name points into
// *header, and its data points into data. Free *tensors with free() and *header with json_decref.
// file is for messages and for tensor.file. *header, data and file must outlive the tensors.
// Errors: those of rlhf__weights_open, without the file's name in front. [main]
rlhf_status rlhf__safetensors_parse(const char *file, const char *text, uint64_t size,
                                    const uint8_t *data, uint64_t len, json_t **header,
                                    struct rlhf__tensor **tensors, size_t *n,
                                    struct rlhf__error *err);

#endif
