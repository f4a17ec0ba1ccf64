// isa.h: the arithmetic of the instruction sets (docs/arithmetic-v1.md). machine/hot.h has the
// function table of each instruction set.
#ifndef RLHF_CPU_ISA_H
#define RLHF_CPU_ISA_H

// Returns the name of the arithmetic of a level's bf16 GEMMs. The arithmetic of f32 GEMMs is v1 at
// every level.
const char *rlhf__isa_arithmetic(int isa);

// Returns the best level up to `isa` whose bf16 GEMMs have the arithmetic named `arithmetic`, or -1
// if such a level does not exist. If `arithmetic` is NULL or "", returns `isa`.
int rlhf__isa_keeping(int isa, const char *arithmetic);

#endif
