// gemm_pack.h: operands in the layout that our own tiles (gemm.h) read. They are packed from dense
// matrices, or converted from the packed transpose.
#ifndef RLHF_CPU_GEMM_PACK_H
#define RLHF_CPU_GEMM_PACK_H

#include "product/gemm_job.h"

// The size of a packed [k, n] operand in bytes.
uint64_t rlhf__gemm_packed_bytes(const struct rlhf__cpu *cpu, int32_t dtype, int64_t k, int64_t n);

// Pack a dense [k, n], which is stored as [n, k] if `transposed` is set. For dtype f32, src is f32.
// For dtype bf16, src is bf16 or f32 (rounded to nearest even). Set `later` if the result is not
// read soon. A result that is larger than a cache is then written with streaming stores, which
// bypass the caches. [step]
void rlhf__gemm_pack(const struct rlhf__cpu *cpu, void *dst, int32_t dtype, const void *src,
                     int32_t src_dtype, int64_t k, int64_t n, int transposed, int later);

// True if a block of A with `rows` rows should be packed, given that `panels` panels read it.
// [step]
int rlhf__gemm_packs_a(const struct rlhf__gemm_job *j, int64_t rows, int64_t panels);

// Packs rows `row` .. `row` + rows - 1 of A into j->a_pack, for the steps j->k0 .. j->k0 + k - 1.
// [step]
void rlhf__gemm_pack_a(const struct rlhf__gemm_job *j, int64_t row, size_t rows, size_t k);

// Returns the size in bytes of the converted panels that are stored at the same time: the first
// GEMM's panels for one pass (`step` is its number of steps of k), and all panels of the second
// GEMM.
uint64_t rlhf__gemm_turned_bytes(const struct rlhf__gemm_job *j, int64_t step);

// Reserves workspace for the converted panels (RLHF_E_NOMEM if memory runs out), and converts the
// panels of the second GEMM. [step]
rlhf_status rlhf__gemm_turned_place(struct rlhf__cpu *cpu, struct rlhf__gemm_job *j, int64_t step);

// Convert the panels for steps j->k0 .. j->k1 - 1 of k from the panels of the transpose. [step]
void rlhf__gemm_turn(const struct rlhf__gemm_job *j);

#endif
