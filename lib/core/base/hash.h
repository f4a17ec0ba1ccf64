// hash.h: checksums of files and of state: SHA-256 and CRC-32C.
#ifndef RLHF_CORE_BASE_HASH_H
#define RLHF_CORE_BASE_HASH_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

// ---- SHA-256 (FIPS 180-4): identifies plugins and weights in a manifest; not for secrets ----

struct rlhf__sha256 {
    uint32_t h[8];
    uint32_t used;    // bytes in block
    int32_t hardware; // 1: use the CPU's SHA instructions; 0: slower, with the same digest
    uint64_t total;   // bytes hashed
    uint8_t block[64];
};

void rlhf__sha256_init(struct rlhf__sha256 *s);                             // [any]
void rlhf__sha256_put(struct rlhf__sha256 *s, const void *bytes, size_t n); // [any]
void rlhf__sha256_finish(struct rlhf__sha256 *s, uint8_t digest[32]);       // [any]

// Finish, and write the digest as 64 hexadecimal digits and a NUL. [any]
void rlhf__sha256_hex(struct rlhf__sha256 *s, char hex[65]);

// Write the SHA-256 of a regular file as 64 hexadecimal digits and a NUL. [any]
rlhf_status rlhf__sha256_file(const char *path, char hex[65], struct rlhf__error *err);

// ---- CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), as TFRecord files use it ----

// Returns the CRC of the earlier data and these `n` bytes together. `crc` is the CRC of the earlier
// data, or 0 if there is none. [any]
uint32_t rlhf__crc32c(uint32_t crc, const void *bytes, size_t n);

// Returns the masked form of a CRC, as TFRecord files store it: the CRC rotated right by 15 bits,
// plus a constant. [any]
uint32_t rlhf__crc32c_mask(uint32_t crc);

#endif
