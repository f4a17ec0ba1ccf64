// gemm_pack.h: operands in the layout that our own tiles (gemm.h) read. They are packed from dense
// matrices, or converted from the packed transpose.
#ifndef RLHF_CPU_GEMM_PACK_H
#define RLHF_CPU_GEMM_PACK_H

#include "gemm_job.h"

// Bytes of a packed [k, n] operand.
uint64_t rlhf__gemm_packed_bytes(const struct rlhf__cpu *cpu, int32_t dtype, int64_t k, int64_t n);

// Pack a dense [k, n], which is stored as [n, k] if transposed. For dtype f32, src is f32. For
// dtype bf16, src is bf16 or f32 (rounded to nearest even). later: the result is not read soon, so
// streaming stores bypass the caches if it is larger than a cache. [step]
void rlhf__gemm_pack(const struct rlhf__cpu *cpu, void *dst, int32_t dtype, const void *src,
                     int32_t src_dtype, int64_t k, int64_t n, int transposed, int later);

// True if `rows` rows of A should be packed when `panels` panels read them. [step]
int rlhf__gemm_packs_a(const struct rlhf__gemm_job *j, int64_t rows, int64_t panels);

// Packs rows row .. row + rows - 1 of A, steps j->k0 .. j->k0 + k - 1, into j->a_pack. [step]
void rlhf__gemm_pack_a(const struct rlhf__gemm_job *j, int64_t row, size_t rows, size_t k);

// Bytes of the converted panels of one pass of `step` steps of k, plus those of the second GEMM.
uint64_t rlhf__gemm_turned_bytes(const struct rlhf__gemm_job *j, int64_t step);

// Reserves workspace for the converted panels, and converts the second GEMM's. RLHF_E_NOMEM. [step]
rlhf_status rlhf__gemm_turned_place(struct rlhf__cpu *cpu, struct rlhf__gemm_job *j, int64_t step);

// Convert the panels of steps j->k0 .. j->k1 - 1 from the panels of the transpose. [step]
void rlhf__gemm_turn(const struct rlhf__gemm_job *j);

#endif
