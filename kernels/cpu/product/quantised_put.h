// quantised_put.h: stores blocks in the layout of quantised panels.
#ifndef RLHF_CPU_PRODUCT_QUANTISED_PUT_H
#define RLHF_CPU_PRODUCT_QUANTISED_PUT_H

#include <stddef.h>
#include <stdint.h>

// Stores a block in column c of a unit of `width` columns. If `in_pairs` is 0, the layout is that
// of unquantise.h, otherwise that of bf16_unpack.h. [any]
void rlhf__quantised_put(uint8_t *unit, size_t width, size_t c, int32_t format,
                         const uint8_t *block, int in_pairs);

#endif
