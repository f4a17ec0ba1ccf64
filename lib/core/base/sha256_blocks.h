// sha256_blocks.h: the compression function of SHA-256, in plain C and with the CPU's SHA
// instructions.
#ifndef RLHF_CORE_BASE_SHA256_BLOCKS_H
#define RLHF_CORE_BASE_SHA256_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

// Returns 1 if the CPU has instructions for SHA-256 (x86 or Armv8). [any]
int rlhf__sha256_has_instructions(void);

// Update the state `h` with `n` blocks of 64 bytes. If `hardware` is 1, uses the CPU's SHA
// instructions, which are five to ten times as fast and give the same result. `hardware` may be 1
// only if rlhf__sha256_has_instructions() returns 1. [any]
void rlhf__sha256_blocks(uint32_t h[8], const uint8_t *blocks, size_t n, int hardware);

#endif
