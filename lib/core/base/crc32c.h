// crc32c.h: CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), as TFRecord files and our own
// state files use it.
#ifndef RLHF_HOST_CRC32C_H
#define RLHF_HOST_CRC32C_H

#include <stddef.h>
#include <stdint.h>

// CRC of n bytes appended to data whose CRC is crc (0 at the start). [any]
uint32_t rlhf__crc32c(uint32_t crc, const void *bytes, size_t n);

// TFRecord's masked form: rotated right by 15, plus a constant. [any]
uint32_t rlhf__crc32c_mask(uint32_t crc);

#endif
