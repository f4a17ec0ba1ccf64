// lt_log.cu: reports on the use of the library. Writes one line for each decision about a shape to
// the file RLHF_CUDA_LT_LOG, and writes the library's part of the context's detail.
#include "product/lt_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *name_of(int32_t dtype) { return dtype == RLHF_BF16 ? "bf16" : "f32"; }

// Prints "bf16 [rows, 768] x [768, 2304] + bias -> bf16", in the order of the backend's caller.
static void put_shape(FILE *f, const struct rlhf__lt_shape *s) {
    if (!s->k)
        fprintf(f, "%s [%lld, rows] x [rows, %lld]", name_of(s->dtype), (long long)s->n,
                (long long)s->m);
    else if (s->n)
        fprintf(f, "%s [%lld, %lld] x [%lld, %lld]", name_of(s->dtype), (long long)s->n,
                (long long)s->k, (long long)s->k, (long long)s->m);
    else
        fprintf(f, "%s [rows, %lld] x [%lld, %lld]%s", name_of(s->dtype), (long long)s->k,
                (long long)s->k, (long long)s->m, s->trans_a ? "" : " of the transpose");
    fprintf(f, "%s -> %s", s->bias ? " + bias" : "", name_of(s->out_dtype));
}

static void put_algo(FILE *f, struct rlhf__cuda_lt *lt, const rlhf__lt_algo *algo) {
    static const char *const names[] = {"algorithm", "tile",   "split", "reduction", "swizzle",
                                        "custom",    "stages", "shape", "cluster"};
    for (int i = 0; i <= RLHF__LT_CONFIG_CLUSTER; i++) {
        const size_t size = i == RLHF__LT_CONFIG_INNER || i == RLHF__LT_CONFIG_CLUSTER ? 2 : 4;
        uint64_t v = 0; // all hosts of CUDA are little-endian
        size_t written = 0;
        if (lt->api.cublasLtMatmulAlgoConfigGetAttribute(algo, i, &v, size, &written) ==
            RLHF__LT_SUCCESS)
            fprintf(f, "%s %s %llu", i ? "" : ",", names[i], (unsigned long long)v);
    }
}

void rlhf__lt_log(struct rlhf__cuda_lt *lt, const struct rlhf__lt_shape *s,
                  const rlhf__lt_algo *algo, const char *fmt, ...) {
    const char *path = getenv("RLHF_CUDA_LT_LOG");
    FILE *f = path && *path ? fopen(path, "a") : NULL;
    if (!f) return;
    put_shape(f, s);
    if (algo) put_algo(f, lt, algo);
    va_list ap;
    va_start(ap, fmt);
    fputs(": ", f);
    vfprintf(f, fmt, ap);
    va_end(ap);
    fputc('\n', f);
    fclose(f);
}

// ---- the context's detail ----

#define VERSION(v)                                                                                 \
    rlhf__lt_version_part((v), 0), rlhf__lt_version_part((v), 1), rlhf__lt_version_part((v), 2)

void rlhf__lt_detail(struct rlhf__cuda *cu, const char *fmt, ...) {
    const size_t at = rlhf__lt_of(cu)->detail_at;
    va_list ap;
    va_start(ap, fmt);
    const int n = snprintf(cu->detail + at, sizeof cu->detail - at, at ? ", " : "");
    vsnprintf(cu->detail + at + n, sizeof cu->detail - at - (size_t)n, fmt, ap);
    va_end(ap);
}

void rlhf__lt_say(struct rlhf__cuda *cu) {
    const struct rlhf__cuda_lt *lt = rlhf__lt_of(cu);
    char none[48] = "", inexact[48] = "", unlike[48] = "", no_room[64] = "";
    if (lt->offered_none)
        snprintf(none, sizeof none, ", %u for which it offers no algorithm", lt->offered_none);
    if (lt->not_exact)
        snprintf(inexact, sizeof inexact, ", %u on which it is not row exact", lt->not_exact);
    if (lt->not_same) snprintf(unlike, sizeof unlike, ", %u that it does not repeat", lt->not_same);
    if (lt->no_room)
        snprintf(no_room, sizeof no_room, ", %u with too little memory to check", lt->no_room);
    rlhf__lt_detail(cu, "cuBLASLt %llu.%llu.%llu%s%s%s%s%s%s", VERSION(lt->version),
                    lt->free ? ", not row exact (RLHF_CUDA_LT=free)" : "",
                    lt->offered_none || lt->not_exact || lt->not_same || lt->no_room
                        ? "; own products for shapes"
                        : "",
                    none, inexact, unlike, no_room);
}
