// safetensors_header.h: parses the JSON header of one safetensors file and checks it against the
// file's size.
//
// It does not map files. Internal to weights/.
#ifndef RLHF_FORMATS_WEIGHTS_SAFETENSORS_HEADER_H
#define RLHF_FORMATS_WEIGHTS_SAFETENSORS_HEADER_H

#include "tensors/tensor.h"

#include <jansson.h>

#define RLHF__SAFETENSORS_HEADER_MAX ((uint64_t)100 << 20) // as in the safetensors library

// Read the length of the JSON text from the first eight bytes of a file of `len` bytes, and check
// it against `len`. Errors: RLHF_E_INVALID. [any]
rlhf_status rlhf__safetensors_size(const uint8_t first[8], uint64_t len, uint64_t *size,
                                   struct rlhf__error *err);

// Parse `text`, the JSON header of a file. data[0..len) are the bytes after the header. The numbers
// in the header are checked against `len`; `data` is not read.
//
// *tensors is a new array of *n entries. The name of an entry points into *header, and its data
// points into `data`. Free *tensors with free() and *header with json_decref. `file` is for
// messages and for tensor.file. *header, `data` and `file` must outlive the tensors. Errors: those
// of rlhf__weights_open, but without the file's name in the message. [main]
rlhf_status rlhf__safetensors_parse(const char *file, const char *text, uint64_t size,
                                    const uint8_t *data, uint64_t len, json_t **header,
                                    struct rlhf__tensor **tensors, size_t *n,
                                    struct rlhf__error *err);

#endif
