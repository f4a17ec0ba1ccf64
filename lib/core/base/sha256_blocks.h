// sha256_blocks.h: the compression function of SHA-256, in plain C and by the CPU's instructions.
#ifndef RLHF_CORE_BASE_SHA256_BLOCKS_H
#define RLHF_CORE_BASE_SHA256_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

// 1 if the CPU has instructions for SHA-256: those of x86 or of Armv8. [any]
int rlhf__sha256_has_instructions(void);

// Update the state h with n blocks of 64 bytes. With hardware = 1, which needs
// rlhf__sha256_has_instructions(), it is five to ten times as fast, with the same result. [any]
void rlhf__sha256_blocks(uint32_t h[8], const uint8_t *blocks, size_t n, int hardware);

#endif
