// context.h: the state of the CPU backend: threads, instruction set, error text, number of bytes in
// use, and workspaces.
//
// Operations are declared in table.h.
#ifndef RLHF_CPU_MACHINE_CONTEXT_H
#define RLHF_CPU_MACHINE_CONTEXT_H

#include "hot.h"

#include <rlhf/compute.h>

// Workspaces of the context. Each grows to the largest size requested and is kept.
enum rlhf__cpu_ws {
    RLHF__WS_SCRATCH, // packed rows of A
    RLHF__WS_PRODUCT, // operands of a GEMM on our tiles; rounded weights
    RLHF__WS_WIDEN,   // bf16 operands as f32
    RLHF__WS_LOGITS,  // lm_head: f32 logits of a row block
    RLHF__WS_REF,     // lm_head: f32 logits of the reference
    RLHF__WS_KEEP,    // top-k and top-p: one row of logits per thread
    RLHF__WS_ROWS,    // small per-row arrays of the GEMM side
    RLHF__WS_PARTIAL, // partial sums of the row kernels' reductions
    RLHF__WS_ATTN,    // attention blocks
    RLHF__WS_ATTN_BWD,
    RLHF__WS_ATTN_RUNS, // where attention's runs of rows start
    RLHF__WS_MUON,
    RLHF__WS_STATE, // layers with a state
    RLHF__WS_SUM,   // f32 sums that are finally rounded or scattered
    RLHF__WS_COUNT
};

// Convert between a device address and a pointer (NULL becomes NULL). Only these functions of this
// backend know what an rlhf_dev is.
static inline void *rlhf__cpu_mem(rlhf_dev p) { return p; }
static inline rlhf_dev rlhf__cpu_dev(const void *p) { return (rlhf_dev)(uintptr_t)p; }
static inline float *rlhf__cpu_f32(rlhf_dev p) { return rlhf__cpu_mem(p); }
static inline const int32_t *rlhf__cpu_i32(rlhf_dev p) { return rlhf__cpu_mem(p); }

struct rlhf__buffer {
    void *ptr;
    uint64_t bytes;
};

// For each workspace, the smallest size with which a call can run. The function workspace_bytes of
// the table returns these sizes. For every file whose ops use workspaces, table.h declares a
// function that adds the sizes for these ops. It computes them with the same helpers as the ops.
struct rlhf__cpu_needs {
    uint64_t bytes[RLHF__WS_COUNT];
};
_Static_assert((int)RLHF__WS_COUNT <= RLHF_WORKSPACES, "workspace_bytes can report all of them");

static inline void rlhf__cpu_need(struct rlhf__cpu_needs *n, enum rlhf__cpu_ws which,
                                  uint64_t bytes) {
    if (n->bytes[which] < bytes) n->bytes[which] = bytes;
}

// Describes the logits that lm_head left in RLHF__WS_LOGITS and RLHF__WS_REF: those of the first
// `block` of its rows. lm_head_bwd uses these logits only if its inputs are the same as those of
// lm_head, with the same contents. Otherwise it recomputes the logits.
struct rlhf__lm_kept {
    uint32_t valid, rows, block;
    int32_t with_ref, with_entropy, with_support, divergence;
    double beta; // divergence_beta
    const rlhf_weight *weight, *ref_weight;
    rlhf_dist dist;
    struct rlhf__head_map map, ref_map;
    uint64_t generation, hidden_hash, ref_hash, support_hash;
};

struct rlhf__cpu {
    rlhf_compute table; // open() returns a pointer to this
    int threads;
    struct rlhf__threads *workers;       // NULL if there is only one thread
    int isa;                             // enum rlhf__isa of hot.h
    const struct rlhf__bf16_gemms *bf16; // NULL: f32 GEMMs are used instead of bf16 GEMMs
    int bf16_weights;           // 1: a bf16 weight exists, so the run is in bf16 (for Muon)
    int64_t half_l2;            // half of a core's L2 cache, in bytes
    struct rlhf__hot hot;       // hot loops of this instruction set
    uint64_t workspace_bytes;   // budget of the lm_head workspace; 0: the default
    uint64_t bytes;             // bytes of memory in use
    uint64_t tickets;           // number of tickets that mark has issued
    void *blocks;               // allocations that are not freed yet; for memory.c; freed by close
    struct rlhf__chunk *chunks; // smaller allocations are cut from these
    struct rlhf__buffer ws[RLHF__WS_COUNT];
    uint64_t weight_generation; // incremented by weight_pack and weight_destroy
    struct rlhf__lm_kept lm_kept;
    const rlhf_host *host; // gets the messages; NULL during describe(): only `error` has them
    char error[512];
    char detail[128];
};

// Passes the text to the host and returns `code`. [step]
__attribute__((format(printf, 3, 4))) rlhf_status
rlhf__cpu_fail(struct rlhf__cpu *cpu, rlhf_status code, const char *fmt, ...);

// Like rlhf_copy_in, but sets an error text. [step]
rlhf_status rlhf__cpu_copy_in(struct rlhf__cpu *cpu, const char *op, void *dst, uint32_t own,
                              const void *src, uint32_t first);

// Allocate zeroed memory, aligned to 64 bytes. The memory counts in bytes_in_use. [step]
rlhf_status rlhf__cpu_mem_alloc(struct rlhf__cpu *cpu, uint64_t bytes, void **out);
void rlhf__cpu_mem_free(struct rlhf__cpu *cpu, void *ptr); // NULL allowed
void rlhf__cpu_mem_free_all(struct rlhf__cpu *cpu);        // for close

// Get workspace `which`, of at least this size. It is aligned to 64 bytes, and its contents are
// undefined. [step]
rlhf_status rlhf__cpu_workspace(struct rlhf__cpu *cpu, enum rlhf__cpu_ws which, uint64_t bytes,
                                void **out);

#endif
