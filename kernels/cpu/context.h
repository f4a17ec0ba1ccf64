// context.h: the state of the CPU backend: threads, instruction set, error text, memory account,
// workspaces, the oneDNN engine and its primitives.
//
// What it is not: it declares no operation; those are in rows.h (row kernels) and products.h.
#ifndef RLHF_CPU_CONTEXT_H
#define RLHF_CPU_CONTEXT_H

#include "hot/hot.h"

#include <rlhf/compute.h>

// Workspaces that live in the context; each grows to the largest size asked for and stays.
enum rlhf__cpu_ws {
    RLHF__WS_SCRATCH, // oneDNN scratchpad
    RLHF__WS_PRODUCT, // converted operands of a product
    RLHF__WS_LOGITS,  // lm_head: f32 logits of a row block
    RLHF__WS_REF,     // lm_head: f32 logits of the reference
    RLHF__WS_DLOGITS, // lm_head_bwd: derivatives in act dtype
    RLHF__WS_ROWS,    // small per-row arrays of the products side
    RLHF__WS_PARTIAL, // partial sums of the row kernels' reductions
    RLHF__WS_ATTN,    // attention blocks
    RLHF__WS_ATTN_BWD,
    RLHF__WS_MUON,
    RLHF__WS_COUNT
};

struct rlhf__buffer {
    void *ptr;
    uint64_t bytes;
};

struct rlhf__product_cache; // products.h

struct rlhf__cpu {
    rlhf_compute table; // what create returns points here
    int threads;
    int isa;               // enum rlhf__isa of hot.h
    int has_bf16;          // AVX512_BF16 products
    struct rlhf__hot hot;  // hot loops of this instruction set
    uint64_t workspace_bytes; // budget of the lm_head workspace
    uint64_t bytes;           // in use
    struct rlhf__block *blocks; // live allocations, for destroy
    struct rlhf__buffer ws[RLHF__WS_COUNT];
    struct rlhf__product_cache *products;
    uint64_t lm_generation; // see lm_head.c
    struct rlhf__lm_kept *lm_kept;
    char error[512];
    char detail[128];
};

// Set the error text and return code. [step]
__attribute__((format(printf, 3, 4))) rlhf_status rlhf__cpu_fail(struct rlhf__cpu *cpu,
                                                                 rlhf_status code, const char *fmt,
                                                                 ...);

// 64-byte aligned zeroed memory that counts in bytes_in_use. [step]
rlhf_status rlhf__cpu_mem_alloc(struct rlhf__cpu *cpu, uint64_t bytes, void **out);
void rlhf__cpu_mem_free(struct rlhf__cpu *cpu, void *ptr); // NULL allowed

// Workspace `which` with at least `bytes` bytes, 64-byte aligned, contents undefined. [step]
rlhf_status rlhf__cpu_workspace(struct rlhf__cpu *cpu, enum rlhf__cpu_ws which, uint64_t bytes,
                                void **out);

// Fills the function pointers of cpu->table. table.c
void rlhf__cpu_fill_table(struct rlhf__cpu *cpu);

#endif
