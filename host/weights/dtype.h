// dtype.h: conversions between f32 and the 16-bit floats of weight files, and dtype names.
//
// What it is not: compute kernels; these run once per load or save. Internal to weights/.
#ifndef RLHF_HOST_WEIGHTS_DTYPE_H
#define RLHF_HOST_WEIGHTS_DTYPE_H

#include "weights/safetensors.h"

// Bytes an element takes. [any]
uint64_t rlhf__tensor_dtype_size(int32_t dtype);

// Dtype by its spelling, -1 = unknown. [any]
int32_t rlhf__tensor_dtype_find(const char *name);

// f32 to bf16 and f16, round to nearest even; NaN stays NaN, too large becomes infinity. [any]
uint16_t rlhf__f32_to_bf16(float x);
uint16_t rlhf__f32_to_f16(float x);

// The exact value. [any]
float rlhf__bf16_to_f32(uint16_t h);
float rlhf__f16_to_f32(uint16_t h);

#endif
