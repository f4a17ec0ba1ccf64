// lt_kit.h: shared by the tests of GEMMs by cuBLASLt: a CUDA backend on the fake library, GEMMs of
// given shapes, and a list of shapes that the library supports.
#ifndef RLHF_TESTS_LT_KIT_H
#define RLHF_TESTS_LT_KIT_H

#include "cuda/fake_lt.h"
#include "kernels/kit.h"

#include <stdbool.h>

struct lt_world {
    struct kit kit; // only its reference backend is used
    void *so_cuda, *so_fake;
    const rlhf_plugin *cuda;
    rlhf_compute *own; // without the library
    uint64_t (*products)(void);
    uint64_t (*largest)(void);
    int (*tile)(void);
    bool (*fake_cuda)(const char *settings);
    char fake[4096], lacking[4096];
};

// Opens a backend with RLHF_CUBLASLT, RLHF_CUDA_LT and FAKE_LT set to these values (NULL: unset).
rlhf_compute *lt_backend(struct lt_world *w, const char *file, const char *lt, const char *fake);
rlhf_compute *lt_with_fake(struct lt_world *w, const char *mode);

int lt_setup(void **state);
int lt_teardown(void **state);

enum lt_op { LINEAR, LINEAR_ADD, LINEAR_DX, LINEAR_DW };

struct lt_shape {
    enum lt_op op;
    uint32_t rows;
    int32_t k, n, dtype, out_dtype, flags, accumulate, bias;
    uint32_t shift; // offset of every operand from a multiple of 16 bytes, in elements
};

enum { F = RLHF_F32, B = RLHF_BF16, OI = RLHF_WEIGHT_OUT_IN };

// Shapes that the library supports; lt_taken[LT_TAKEN_DW] is a sum over rows.
enum { LT_TAKEN = 16, LT_TAKEN_DW = 10 };
extern const struct lt_shape lt_taken[LT_TAKEN];

// An op for op_run, which runs one GEMM. `shape` points to a struct lt_shape.
void lt_run(struct call *c, const void *shape, struct outputs *out);

void lt_same_bits(const struct outputs *a, const struct outputs *b);
// Asserts that the GEMM has the same bits on both backends.
void lt_compare_bits(rlhf_compute *a, rlhf_compute *b, const struct lt_shape *s);
// Asserts that the GEMM agrees with the reference.
void lt_matches(struct kit *k, const struct lt_shape *s);
// Asserts that the backend's detail ends with `text`.
void lt_ends_with(const rlhf_compute *c, const char *text);

#endif
