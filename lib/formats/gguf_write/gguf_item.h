// gguf_item.h: one tensor of a GGUF file, made from a tensor of a model or an adapter: its name,
// its dtype, and the order of its rows (weights/gguf_names.h).
#ifndef RLHF_FORMATS_GGUF_WRITE_GGUF_ITEM_H
#define RLHF_FORMATS_GGUF_WRITE_GGUF_ITEM_H

#include "gguf_write/gguf_config.h"

#include <signal.h>

struct rlhf__gguf_item {
    const struct rlhf__tensor *from;
    char name[RLHF__GGUF_NAME_CAP];
    int32_t rows, dtype;              // enum rlhf__gguf_rows; dtype in the file
    int64_t first, n_rows, n_columns; // first: its first row in `from`
    int64_t before; // of a tensor with tiled heads: rows (or columns) in front of the heads
    int32_t head;   // and those of a head; 0: heads are not tiled
    int32_t low;    // 1: a matrix B, the columns of whose matrix A are tiled
};

// Set item[0], and item[1] if `t` becomes two tensors, and *n to their number. `dtype` is that of
// matrices, -1 = unchanged; other tensors are F32. If `lora` is 1, `t` is the matrix B [outputs,
// rank] of an adapter, under the name of the weight that it changes. Errors: RLHF_E_INVALID (a
// tensor that the architecture lacks, or that does not fit the config). [main]
rlhf_status rlhf__gguf_item_make(const struct rlhf__gguf_config *, const struct rlhf__tensor *t,
                                 int32_t dtype, int lora, struct rlhf__gguf_item item[2], size_t *n,
                                 struct rlhf__error *err);

// Set the order of a matrix A [rank, inputs], whose item was copied from that of its matrix B: its
// columns are in the order of those of the weight in the file. Errors: RLHF_E_INVALID. [main]
rlhf_status rlhf__gguf_item_low(const struct rlhf__gguf_config *, struct rlhf__gguf_item *,
                                struct rlhf__error *err);

// Add the tensor to the list of the file. Errors: those of rlhf__gguf_tensor. [main]
rlhf_status rlhf__gguf_item_list(struct rlhf__gguf *, const struct rlhf__gguf_item *,
                                 struct rlhf__error *err);

// Append the tensor's data. Errors: RLHF_E_INVALID (a number that the dtype cannot hold),
// RLHF_E_IO, RLHF_E_CANCELLED, RLHF_E_NOMEM. [main]
rlhf_status rlhf__gguf_item_put(struct rlhf__gguf *, const struct rlhf__gguf_item *,
                                const struct rlhf__gguf_config *,
                                const volatile sig_atomic_t *cancelled, struct rlhf__error *err);

#endif
