// sha256.h: SHA-256 (FIPS 180-4), to name plugins and weights in a run's manifest. Not for secrets.
#ifndef RLHF_HOST_SHA256_H
#define RLHF_HOST_SHA256_H

#include "base/error.h"

struct rlhf__sha256 {
    uint32_t h[8];
    uint32_t used;    // bytes in block
    int32_t hardware; // 1: by the instructions of the CPU; 0 gives the same digest, slower
    uint64_t total;   // bytes hashed
    uint8_t block[64];
};

void rlhf__sha256_init(struct rlhf__sha256 *s);                             // [any]
void rlhf__sha256_put(struct rlhf__sha256 *s, const void *bytes, size_t n); // [any]
void rlhf__sha256_finish(struct rlhf__sha256 *s, uint8_t digest[32]);       // [any]

// The digest as 64 hexadecimal digits and a NUL. [any]
void rlhf__sha256_hex(struct rlhf__sha256 *s, char hex[65]);

// Hash of a file as 64 hexadecimal digits and a NUL. [any]
rlhf_status rlhf__sha256_file(const char *path, char hex[65], struct rlhf__error *err);

#endif
