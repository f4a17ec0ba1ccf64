// dnnl_shim.h: the part of oneDNN that this backend uses, with the same interface for oneDNN 2.6
// and 3.x: one engine, plain and packed 2-d operands, reorder, matmul.
//
// onednn.c decides which objects are created and cached.
#ifndef RLHF_CPU_DNNL_SHIM_H
#define RLHF_CPU_DNNL_SHIM_H

#include "product/matmul.h"

#include <rlhf/compute.h>

struct rlhf__dnnl;        // engine and stream
struct rlhf__dnnl_layout; // memory layout of a 2-d operand
struct rlhf__dnnl_mem;    // a layout with an address
struct rlhf__dnnl_op;     // a primitive

#define RLHF__DNNL_NOMEM 1 // the library's out-of-memory status

// All functions below return 0 or the library's status (> 0). Each object is freed by the matching
// destroy function, which accepts NULL. All functions are [step].
int rlhf__dnnl_create(struct rlhf__dnnl **out);
void rlhf__dnnl_destroy(struct rlhf__dnnl *d);
void rlhf__dnnl_version(int out[3]);

// Limit the library to the instructions of level `isa` (enum rlhf__isa of hot/hot.h). The library
// accepts a limit only once per process, before the first primitive. Fails if the library already
// has a higher limit.
int rlhf__dnnl_cap(int isa);

// A dense [rows, cols] operand. If `transposed` is set, it is stored as [cols, rows].
int rlhf__dnnl_layout_plain(int64_t rows, int64_t cols, int32_t dtype, int transposed,
                            struct rlhf__dnnl_layout **out);
void rlhf__dnnl_layout_destroy(struct rlhf__dnnl_layout *l);
uint64_t rlhf__dnnl_layout_bytes(const struct rlhf__dnnl_layout *l);

int rlhf__dnnl_mem_create(struct rlhf__dnnl *d, const struct rlhf__dnnl_layout *l, void *ptr,
                          struct rlhf__dnnl_mem **out);
void rlhf__dnnl_mem_destroy(struct rlhf__dnnl_mem *m);
int rlhf__dnnl_mem_point(struct rlhf__dnnl_mem *m, void *ptr); // moves a plain operand to ptr

// Copy src to dst and convert it to the layout and dtype of dst.
int rlhf__dnnl_reorder_create(struct rlhf__dnnl *d, const struct rlhf__dnnl_layout *src,
                              const struct rlhf__dnnl_layout *dst, struct rlhf__dnnl_op **out);

// If shape->wei_packed is set, wei has the layout `packed`. If `packed` is NULL, the library
// chooses a layout and stores it in out_wei (NULL allowed; the caller destroys it).
int rlhf__dnnl_matmul_create(struct rlhf__dnnl *d, const struct rlhf__matmul *shape,
                             const struct rlhf__dnnl_layout *packed,
                             struct rlhf__dnnl_layout **out_wei, struct rlhf__dnnl_op **out);
void rlhf__dnnl_op_destroy(struct rlhf__dnnl_op *op);
uint64_t rlhf__dnnl_op_scratch(const struct rlhf__dnnl_op *op); // bytes of scratchpad
const char *rlhf__dnnl_op_name(const struct rlhf__dnnl_op *op); // implementation, e.g. "brg:..."

// Executes `op`. `scratch` must have at least op_scratch bytes and be 64-byte aligned.
int rlhf__dnnl_reorder(struct rlhf__dnnl *d, struct rlhf__dnnl_op *op, struct rlhf__dnnl_mem *src,
                       struct rlhf__dnnl_mem *dst, void *scratch);
int rlhf__dnnl_matmul(struct rlhf__dnnl *d, struct rlhf__dnnl_op *op, const void *src,
                      const struct rlhf__dnnl_mem *wei, const void *plain_wei, const float *bias,
                      void *dst, void *scratch);

#endif
