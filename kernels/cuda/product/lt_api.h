// lt_api.h: the part of cuBLASLt that this backend uses, in our own declarations, so that a build
// does not need NVIDIA's headers. Names, values and sizes are those of cublasLt.h (12 and 13). If
// the toolkit is installed, tests/cuda/lt_header.cpp compares each of them with that header.
//
// For C11 and C++17.
#ifndef RLHF_KERNELS_CUDA_PRODUCT_LT_API_H
#define RLHF_KERNELS_CUDA_PRODUCT_LT_API_H

#include <stddef.h>
#include <stdint.h>

struct CUstream_st;
typedef struct rlhf__lt_context *rlhf__lt_handle;
typedef struct rlhf__lt_desc_mem *rlhf__lt_desc;     // of a GEMM
typedef struct rlhf__lt_layout_mem *rlhf__lt_layout; // of a matrix
typedef struct rlhf__lt_pref_mem *rlhf__lt_pref;     // limits of the search
typedef int rlhf__lt_status;                         // 0: success

// X(our name, NVIDIA's name, value)
#define RLHF__LT_VALUES(X)                                                                         \
    X(RLHF__LT_SUCCESS, CUBLAS_STATUS_SUCCESS, 0)                                                  \
    X(RLHF__LT_NOT_INITIALIZED, CUBLAS_STATUS_NOT_INITIALIZED, 1)                                  \
    X(RLHF__LT_ALLOC_FAILED, CUBLAS_STATUS_ALLOC_FAILED, 3)                                        \
    X(RLHF__LT_INVALID_VALUE, CUBLAS_STATUS_INVALID_VALUE, 7)                                      \
    X(RLHF__LT_EXECUTION_FAILED, CUBLAS_STATUS_EXECUTION_FAILED, 13)                               \
    X(RLHF__LT_NOT_SUPPORTED, CUBLAS_STATUS_NOT_SUPPORTED, 15)                                     \
    X(RLHF__LT_R_32F, CUDA_R_32F, 0)                                                               \
    X(RLHF__LT_R_16BF, CUDA_R_16BF, 14)                                                            \
    X(RLHF__LT_COMPUTE_32F, CUBLAS_COMPUTE_32F, 68)                                                \
    X(RLHF__LT_OP_N, CUBLAS_OP_N, 0)                                                               \
    X(RLHF__LT_OP_T, CUBLAS_OP_T, 1)                                                               \
    X(RLHF__LT_LAYOUT_TYPE, CUBLASLT_MATRIX_LAYOUT_TYPE, 0)   /* uint32_t */                       \
    X(RLHF__LT_LAYOUT_ORDER, CUBLASLT_MATRIX_LAYOUT_ORDER, 1) /* int32_t */                        \
    X(RLHF__LT_LAYOUT_ROWS, CUBLASLT_MATRIX_LAYOUT_ROWS, 2)   /* uint64_t */                       \
    X(RLHF__LT_LAYOUT_COLS, CUBLASLT_MATRIX_LAYOUT_COLS, 3)   /* uint64_t */                       \
    X(RLHF__LT_LAYOUT_LD, CUBLASLT_MATRIX_LAYOUT_LD, 4)       /* int64_t */                        \
    X(RLHF__LT_ORDER_COL, CUBLASLT_ORDER_COL, 0)                                                   \
    X(RLHF__LT_DESC_TRANSA, CUBLASLT_MATMUL_DESC_TRANSA, 3)             /* int32_t */              \
    X(RLHF__LT_DESC_TRANSB, CUBLASLT_MATMUL_DESC_TRANSB, 4)             /* int32_t */              \
    X(RLHF__LT_DESC_EPILOGUE, CUBLASLT_MATMUL_DESC_EPILOGUE, 7)         /* uint32_t */             \
    X(RLHF__LT_DESC_BIAS, CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8)         /* const void * */         \
    X(RLHF__LT_DESC_BIAS_TYPE, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 26) /* int32_t */              \
    X(RLHF__LT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_DEFAULT, 1)                                     \
    X(RLHF__LT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BIAS, 4)                                           \
    X(RLHF__LT_PREF_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1)   /* uint64_t */       \
    X(RLHF__LT_PREF_REDUCTION, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3) /* uint32_t */       \
    X(RLHF__LT_PREF_ALIGN_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5)   /* uint32_t */       \
    X(RLHF__LT_PREF_ALIGN_B, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6)   /* uint32_t */       \
    X(RLHF__LT_PREF_ALIGN_C, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7)   /* uint32_t */       \
    X(RLHF__LT_PREF_ALIGN_D, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8)   /* uint32_t */       \
    X(RLHF__LT_PREF_IMPL, CUBLASLT_MATMUL_PREF_IMPL_MASK, 12)                 /* uint64_t */       \
    X(RLHF__LT_REDUCTION_NONE, CUBLASLT_REDUCTION_SCHEME_NONE, 0)                                  \
    X(RLHF__LT_REDUCTION_ALL, CUBLASLT_REDUCTION_SCHEME_MASK, 7)                                   \
    X(RLHF__LT_CONFIG_ID, CUBLASLT_ALGO_CONFIG_ID, 0)                      /* int32_t */           \
    X(RLHF__LT_CONFIG_TILE, CUBLASLT_ALGO_CONFIG_TILE_ID, 1)               /* uint32_t */          \
    X(RLHF__LT_CONFIG_SPLITK, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 2)          /* int32_t */           \
    X(RLHF__LT_CONFIG_REDUCTION, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 3) /* uint32_t */          \
    X(RLHF__LT_CONFIG_SWIZZLE, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4)      /* uint32_t */          \
    X(RLHF__LT_CONFIG_CUSTOM, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 5)       /* uint32_t */          \
    X(RLHF__LT_CONFIG_STAGES, CUBLASLT_ALGO_CONFIG_STAGES_ID, 6)           /* uint32_t */          \
    X(RLHF__LT_CONFIG_INNER, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 7)       /* uint16_t */          \
    X(RLHF__LT_CONFIG_CLUSTER, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 8)   /* uint16_t */          \
    X(RLHF__LT_CAP_IMPL, CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, 15)       /* uint64_t */          \
    X(RLHF__LT_CAP_ALIGN_A, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES, 16)   /* uint32_t */          \
    X(RLHF__LT_CAP_ALIGN_B, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_B_BYTES, 17)   /* uint32_t */          \
    X(RLHF__LT_CAP_ALIGN_C, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_C_BYTES, 18)   /* uint32_t */          \
    X(RLHF__LT_CAP_ALIGN_D, CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_D_BYTES, 19)   /* uint32_t */          \
    X(RLHF__LT_IMPL_FMA, CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA, 0x1)                                   \
    X(RLHF__LT_IMPL_TENSOR, CUBLASLT_NUMERICAL_IMPL_FLAGS_TENSOR_OP_MASK, 0xfe)                    \
    X(RLHF__LT_IMPL_SUM_32F, CUBLASLT_NUMERICAL_IMPL_FLAGS_ACCUMULATOR_32F, 0x200)                 \
    X(RLHF__LT_IMPL_IN_16BF, CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_16BF, 0x20000)                    \
    X(RLHF__LT_IMPL_IN_TF32, CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32, 0x40000)                    \
    X(RLHF__LT_IMPL_IN_32F, CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_32F, 0x80000)

enum rlhf__lt_value {
#define RLHF__LT_ENUM(ours, theirs, value) ours = value,
    RLHF__LT_VALUES(RLHF__LT_ENUM)
#undef RLHF__LT_ENUM
};

typedef struct rlhf__lt_algo {
    uint64_t data[8];
} rlhf__lt_algo;

typedef struct rlhf__lt_found {
    rlhf__lt_algo algo;
    size_t workspace; // bytes of workspace that it needs
    rlhf__lt_status state;
    float waves;
    int reserved[4];
} rlhf__lt_found;

// X(NVIDIA's name, result, parameters). Every function is looked up by its name when the library is
// opened.
#define RLHF__LT_FUNCTIONS(X)                                                                      \
    X(cublasLtGetVersion, size_t, (void))                                                          \
    X(cublasLtGetStatusName, const char *, (rlhf__lt_status))                                      \
    X(cublasLtCreate, rlhf__lt_status, (rlhf__lt_handle *))                                        \
    X(cublasLtDestroy, rlhf__lt_status, (rlhf__lt_handle))                                         \
    X(cublasLtMatrixLayoutCreate, rlhf__lt_status,                                                 \
      (rlhf__lt_layout *, int type, uint64_t rows, uint64_t cols, int64_t ld))                     \
    X(cublasLtMatrixLayoutDestroy, rlhf__lt_status, (rlhf__lt_layout))                             \
    X(cublasLtMatrixLayoutSetAttribute, rlhf__lt_status,                                           \
      (rlhf__lt_layout, int attribute, const void *, size_t))                                      \
    X(cublasLtMatmulDescCreate, rlhf__lt_status, (rlhf__lt_desc *, int compute, int scale_type))   \
    X(cublasLtMatmulDescDestroy, rlhf__lt_status, (rlhf__lt_desc))                                 \
    X(cublasLtMatmulDescSetAttribute, rlhf__lt_status,                                             \
      (rlhf__lt_desc, int attribute, const void *, size_t))                                        \
    X(cublasLtMatmulPreferenceCreate, rlhf__lt_status, (rlhf__lt_pref *))                          \
    X(cublasLtMatmulPreferenceDestroy, rlhf__lt_status, (rlhf__lt_pref))                           \
    X(cublasLtMatmulPreferenceSetAttribute, rlhf__lt_status,                                       \
      (rlhf__lt_pref, int attribute, const void *, size_t))                                        \
    X(cublasLtMatmulAlgoGetHeuristic, rlhf__lt_status,                                             \
      (rlhf__lt_handle, rlhf__lt_desc, rlhf__lt_layout a, rlhf__lt_layout b, rlhf__lt_layout c,    \
       rlhf__lt_layout d, rlhf__lt_pref, int wanted, rlhf__lt_found *, int *n))                    \
    X(cublasLtMatmulAlgoCheck, rlhf__lt_status,                                                    \
      (rlhf__lt_handle, rlhf__lt_desc, rlhf__lt_layout a, rlhf__lt_layout b, rlhf__lt_layout c,    \
       rlhf__lt_layout d, const rlhf__lt_algo *, rlhf__lt_found *))                                \
    X(cublasLtMatmulAlgoConfigGetAttribute, rlhf__lt_status,                                       \
      (const rlhf__lt_algo *, int attribute, void *, size_t, size_t *written))                     \
    X(cublasLtMatmulAlgoCapGetAttribute, rlhf__lt_status,                                          \
      (const rlhf__lt_algo *, int attribute, void *, size_t, size_t *written))                     \
    X(cublasLtMatmul, rlhf__lt_status,                                                             \
      (rlhf__lt_handle, rlhf__lt_desc, const void *alpha, const void *a, rlhf__lt_layout al,       \
       const void *b, rlhf__lt_layout bl, const void *beta, const void *c, rlhf__lt_layout cl,     \
       void *d, rlhf__lt_layout dl, const rlhf__lt_algo *, void *workspace, size_t bytes,          \
       struct CUstream_st *stream))

// The functions by name.
struct rlhf__lt_api {
#define RLHF__LT_MEMBER(name, result, params) result(*name) params;
    RLHF__LT_FUNCTIONS(RLHF__LT_MEMBER)
#undef RLHF__LT_MEMBER
};

#endif
