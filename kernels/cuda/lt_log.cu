// lt_log.cu: the lines of RLHF_CUDA_LT_LOG: the decisions about each shape of a library product.
#include "lt_plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *name_of(int32_t dtype) { return dtype == RLHF_BF16 ? "bf16" : "f32"; }

// "bf16 [rows, 768] x [768, 2304] + bias -> bf16", as the backend's caller sees it.
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
        uint64_t v = 0; // little-endian, as everything that CUDA runs on
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
